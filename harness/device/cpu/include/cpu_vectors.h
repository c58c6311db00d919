/* CUDA's built-in vector types, with their sizes and alignments (Programming Guide, "Built-in
   Vector Types"), and dim3. */
#ifndef CPU_VECTORS_H
#define CPU_VECTORS_H

#pragma GCC system_header

#include <stdint.h>

/* One line a function keeps the macros readable. */
/* clang-format off */
#define CPU_VECTOR(name, T, align2, align4)                                                        \
    struct name##1 { T x; };                                                                       \
    struct alignas(align2) name##2 { T x, y; };                                                    \
    struct name##3 { T x, y, z; };                                                                 \
    struct alignas(align4) name##4 { T x, y, z, w; };                                              \
    CPU_MAKE_VECTOR(name, T)

#define CPU_MAKE_VECTOR(name, T)                                                                   \
    static inline name##1 make_##name##1(T x) { return {x}; }                                      \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                              \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                      \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
/* clang-format on */

CPU_VECTOR(char, signed char, 2, 4)
CPU_VECTOR(uchar, unsigned char, 2, 4)
CPU_VECTOR(short, short, 4, 8)
CPU_VECTOR(ushort, unsigned short, 4, 8)
CPU_VECTOR(int, int, 8, 16)
CPU_VECTOR(uint, unsigned int, 8, 16)
CPU_VECTOR(long, long, 16, 16)
CPU_VECTOR(ulong, unsigned long, 16, 16)
CPU_VECTOR(longlong, long long, 16, 16)
CPU_VECTOR(ulonglong, unsigned long long, 16, 16)
CPU_VECTOR(float, float, 8, 16)
CPU_VECTOR(double, double, 16, 16)

#undef CPU_VECTOR
#undef CPU_MAKE_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int a = 1, unsigned int b = 1, unsigned int c = 1) : x(a), y(b), z(c)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
    constexpr operator uint3() const
    {
        return {x, y, z};
    }
};

#endif
