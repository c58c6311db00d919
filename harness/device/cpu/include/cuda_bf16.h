/*
 * The CPU device's cuda_bf16.h: bfloat16 and pairs of it, without the toolkit. Operators and the
 * intrinsics that both 16-bit formats share are in cpu_narrow.h.
 */
#ifndef CUDA_BF16_H
#define CUDA_BF16_H

#pragma GCC system_header

#include "cpu_narrow_more.h"

struct __attribute__((aligned(2))) __nv_bfloat16_raw {
    unsigned short x;
};

struct __attribute__((aligned(2))) __nv_bfloat16 {
    unsigned short __x;

    __nv_bfloat16() = default;
    __nv_bfloat16(float f) : __x(cpu::bf16_from_float(f))
    {
    }
    /* A double, or an integer beyond 24 bits, rounds once: through a float with an odd last bit. */
    __nv_bfloat16(double d) : __x(cpu::bf16_from_float(cpu::odd_float(d, false)))
    {
    }
    template <class I, std::enable_if_t<std::is_integral<I>::value, int> = 0>
    __nv_bfloat16(I i) : __nv_bfloat16(cpu::sticky(i))
    {
    }
    __nv_bfloat16(__nv_bfloat16_raw bits) : __x(bits.x)
    {
    }
    operator __nv_bfloat16_raw() const
    {
        return {__x};
    }
    operator float() const
    {
        return cpu::bf16_to_float(__x);
    }
    explicit operator bool() const
    {
        return (__x & 0x7fffu) != 0;
    }
};

struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b)
    {
    }
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

namespace cpu
{
template <> struct narrow<__nv_bfloat16> : std::true_type {
};
template <> struct pair_of<__nv_bfloat162> {
    using type = __nv_bfloat16;
};
inline __nv_bfloat16 bf16_of_bits(unsigned short u)
{
    __nv_bfloat16 h;
    h.__x = u;
    return h;
}
} // namespace cpu

static inline __nv_bfloat16 __float2bfloat16(float f)
{
    return __nv_bfloat16(f);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float f)
{
    return __nv_bfloat16(f);
}
static inline __nv_bfloat16 __double2bfloat16(double d)
{
    return __nv_bfloat16(d);
}
static inline float __bfloat162float(__nv_bfloat16 h)
{
    return (float)h;
}
static inline __nv_bfloat16 __int2bfloat16_rn(int i)
{
    return __nv_bfloat16(i);
}
static inline __nv_bfloat16 __uint2bfloat16_rn(unsigned i)
{
    return __nv_bfloat16(i);
}
static inline int __bfloat162int_rn(__nv_bfloat16 h)
{
    return __float2int_rn((float)h);
}
static inline int __bfloat162int_rz(__nv_bfloat16 h)
{
    return __float2int_rz((float)h);
}
static inline unsigned __bfloat162uint_rz(__nv_bfloat16 h)
{
    return __float2uint_rz((float)h);
}
static inline unsigned __bfloat162uint_rn(__nv_bfloat16 h)
{
    return __float2uint_rn((float)h);
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h)
{
    return h.__x;
}
static inline short __bfloat16_as_short(__nv_bfloat16 h)
{
    return (short)h.__x;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u)
{
    return cpu::bf16_of_bits(u);
}
static inline __nv_bfloat16 __short_as_bfloat16(short s)
{
    return cpu::bf16_of_bits((unsigned short)s);
}

static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return {a, b};
}
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return {a, b};
}
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a)
{
    return {a, a};
}
static inline __nv_bfloat162 __float2bfloat162_rn(float f)
{
    return {__nv_bfloat16(f), __nv_bfloat16(f)};
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 a)
{
    return {__nv_bfloat16(a.x), __nv_bfloat16(a.y)};
}
static inline float2 __bfloat1622float2(__nv_bfloat162 a)
{
    return {(float)a.x, (float)a.y};
}
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a)
{
    return a.x;
}
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a)
{
    return a.y;
}
static inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a)
{
    return {a.x, a.x};
}
static inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a)
{
    return {a.y, a.y};
}
static inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return {a.x, b.x};
}
static inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return {a.y, b.y};
}

CPU_NARROW_CONVERSIONS(__nv_bfloat16, bfloat16)
CPU_NARROW_TO_WIDE(__nv_bfloat16, bfloat16)

#endif
