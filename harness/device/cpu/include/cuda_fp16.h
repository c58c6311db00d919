/*
 * The CPU device's cuda_fp16.h: IEEE binary16 and pairs of it, without the toolkit. Operators and
 * the intrinsics that both 16-bit formats share are in cpu_narrow.h.
 */
#ifndef CUDA_FP16_H
#define CUDA_FP16_H

#pragma GCC system_header

#include "cpu_narrow_more.h"

struct __attribute__((aligned(2))) __half_raw {
    unsigned short x;
};

struct __attribute__((aligned(2))) __half {
    unsigned short __x;

    __half() = default;
    __half(float f) : __x(cpu::half_from_float(f))
    {
    }
    /* A double, or an integer beyond 24 bits, rounds once: through a float with an odd last bit. */
    __half(double d) : __x(cpu::half_from_float(cpu::odd_float(d, false)))
    {
    }
    template <class I, std::enable_if_t<std::is_integral<I>::value, int> = 0>
    __half(I i) : __half(cpu::sticky(i))
    {
    }
    __half(__half_raw bits) : __x(bits.x)
    {
    }
    operator __half_raw() const
    {
        return {__x};
    }
    operator float() const
    {
        return cpu::half_to_float(__x);
    }
    explicit operator bool() const
    {
        return (__x & 0x7fffu) != 0;
    }
};

struct __attribute__((aligned(4))) __half2 {
    __half x, y;

    __half2() = default;
    __half2(__half a, __half b) : x(a), y(b)
    {
    }
};

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

namespace cpu
{
template <> struct narrow<__half> : std::true_type {
};
template <> struct pair_of<__half2> {
    using type = __half;
};
inline __half half_of_bits(unsigned short u)
{
    __half h;
    h.__x = u;
    return h;
}
} // namespace cpu

static inline __half __float2half(float f)
{
    return __half(f);
}
static inline __half __float2half_rn(float f)
{
    return __half(f);
}
static inline __half __double2half(double d)
{
    return __half(d);
}
static inline float __half2float(__half h)
{
    return (float)h;
}
static inline __half __int2half_rn(int i)
{
    return __half(i);
}
static inline __half __uint2half_rn(unsigned i)
{
    return __half(i);
}
static inline int __half2int_rn(__half h)
{
    return __float2int_rn((float)h);
}
static inline int __half2int_rz(__half h)
{
    return __float2int_rz((float)h);
}
static inline unsigned __half2uint_rz(__half h)
{
    return __float2uint_rz((float)h);
}
static inline unsigned __half2uint_rn(__half h)
{
    return __float2uint_rn((float)h);
}
static inline unsigned short __half_as_ushort(__half h)
{
    return h.__x;
}
static inline short __half_as_short(__half h)
{
    return (short)h.__x;
}
static inline __half __ushort_as_half(unsigned short u)
{
    return cpu::half_of_bits(u);
}
static inline __half __short_as_half(short s)
{
    return cpu::half_of_bits((unsigned short)s);
}

static inline __half2 make_half2(__half a, __half b)
{
    return {a, b};
}
static inline __half2 __halves2half2(__half a, __half b)
{
    return {a, b};
}
static inline __half2 __half2half2(__half a)
{
    return {a, a};
}
static inline __half2 __float2half2_rn(float f)
{
    return {__half(f), __half(f)};
}
static inline __half2 __floats2half2_rn(float a, float b)
{
    return {__half(a), __half(b)};
}
static inline __half2 __float22half2_rn(float2 a)
{
    return {__half(a.x), __half(a.y)};
}
static inline float2 __half22float2(__half2 a)
{
    return {(float)a.x, (float)a.y};
}
static inline __half __low2half(__half2 a)
{
    return a.x;
}
static inline __half __high2half(__half2 a)
{
    return a.y;
}
static inline __half2 __low2half2(__half2 a)
{
    return {a.x, a.x};
}
static inline __half2 __high2half2(__half2 a)
{
    return {a.y, a.y};
}
static inline __half2 __lows2half2(__half2 a, __half2 b)
{
    return {a.x, b.x};
}
static inline __half2 __highs2half2(__half2 a, __half2 b)
{
    return {a.y, b.y};
}

CPU_NARROW_CONVERSIONS(__half, half)
CPU_NARROW_TO_WIDE(__half, half)

#endif
