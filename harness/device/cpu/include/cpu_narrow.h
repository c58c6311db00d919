/*
 * The 16-bit floating-point formats: conversions, and the operators and intrinsics that bf16 and
 * fp16 have in common (cuda_bf16.h, cuda_fp16.h add the types and what each has alone).
 *
 * A sum, product, quotient or root of two such values computed in float and rounded to 16 bits
 * equals the exact result rounded once: 24 >= 2 p + 2 for p = 8 and 11 (S. Figueroa, "When is
 * double rounding innocuous?", SIGNUM 1995). The fused multiply-add is not among these and goes
 * through round to odd.
 */
#ifndef CPU_NARROW_H
#define CPU_NARROW_H

#pragma GCC system_header

#include <stdint.h>
#include <string.h>

#include <cmath>
#include <type_traits>

#include "cpu_atomics.h"
#include "cpu_math.h"
#include "cpu_vectors.h"

namespace cpu
{
/* To nearest, ties to even; every NaN becomes 0x7fff, as on the device. */
CPU_INLINE uint16_t bf16_from_float(float f)
{
    uint32_t u = __float_as_uint(f);

    if (__builtin_expect((u & 0x7fffffffu) > 0x7f800000u, 0))
        return 0x7fff;
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

CPU_INLINE float bf16_to_float(uint16_t h)
{
    return __uint_as_float((uint32_t)h << 16);
}

inline uint16_t half_from_float(float f)
{
    uint32_t u = __float_as_uint(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;

    if (a > 0x7f800000u)
        return 0x7fff;
    if (a >= 0x47800000u) /* 2^16 and up */
        return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) { /* below 2^-14: in units of 2^-24, which adding 2^-1 rounds to */
        float units = __uint_as_float(a) + 0.5f;
        return (uint16_t)(sign | (__float_as_uint(units) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13));
}

inline float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7fffu;

    if (a >= 0x7c00u)
        return __uint_as_float(sign | 0x7f800000u | (a & 0x3ffu) << 13);
    if (a < 0x400u)
        return std::copysign((float)a * 0x1p-24f, __uint_as_float(sign | 0x3f800000u));
    return __uint_as_float(sign | ((a << 13) + 0x38000000u));
}

/* A double as the float that rounds to the same 16-bit value: inexact results get an odd last
   bit. */
inline float odd_float(double x, bool inexact)
{
    float f = (float)x;
    double back = (double)f;

    if (x != x || (back == x && !inexact))
        return f;
    if (std::fabs(back) > std::fabs(x)) /* towards zero first */
        f = __uint_as_float(__float_as_uint(f) - 1u);
    return __uint_as_float(__float_as_uint(f) | 1u);
}

/* a*b + c exactly enough that rounding it to 16 bits rounds once. The product is exact in
   double. */
inline float fma_for_narrow(float a, float b, float c)
{
    double p = (double)a * (double)b, s = p + (double)c, t = s - p;
    double lost = (p - (s - t)) + ((double)c - t);

    if (lost != 0.0 && std::fabs(s) < 0x1p1000) { /* what lies beyond the double: to odd as well */
        uint64_t u = bits64(s);
        bool away = (lost < 0.0) == (s > 0.0); /* rounding went away from zero */

        return odd_float(double_of((u - (away ? 1u : 0u)) | 1u), true);
    }
    return odd_float(s, false);
}

/* Traits: `narrow<T>::value` for the 16-bit types, `pair_of<P>::type` is the element of a pair. */
template <class T> struct narrow : std::false_type {
};
template <class P> struct pair_of {
};
template <class T> using if_narrow = std::enable_if_t<narrow<T>::value, int>;
template <class P> using element = typename pair_of<P>::type;

template <class P, class F> inline P each(P a, F f)
{
    return P(f(a.x), f(a.y));
}
template <class P, class F> inline P each(P a, P b, F f)
{
    return P(f(a.x, b.x), f(a.y, b.y));
}
} // namespace cpu

/* One line a function keeps the macros readable. */
/* clang-format off */
#define CPU_NARROW_OPERATOR(op)                                                                    \
    template <class T, cpu::if_narrow<T> = 0> inline T operator op(T a, T b)                       \
    { return T((float)a op(float) b); }                                                            \
    template <class P, class T = cpu::element<P>> inline P operator op(P a, P b)                   \
    { return P(a.x op b.x, a.y op b.y); }                                                          \
    template <class T, cpu::if_narrow<T> = 0> inline T &operator op##=(T &a, T b)                  \
    { return a = a op b; }
CPU_NARROW_OPERATOR(+)
CPU_NARROW_OPERATOR(-)
CPU_NARROW_OPERATOR(*)
CPU_NARROW_OPERATOR(/)
#undef CPU_NARROW_OPERATOR
#define CPU_NARROW_ASSIGN(op)                                                                      \
    template <class P, class T = cpu::element<P>> inline P &operator op##=(P &a, P b)              \
    { return a = a op b; }
CPU_NARROW_ASSIGN(+)
CPU_NARROW_ASSIGN(-)
CPU_NARROW_ASSIGN(*)
CPU_NARROW_ASSIGN(/)
#undef CPU_NARROW_ASSIGN
#define CPU_NARROW_COMPARE(op, name)                                                               \
    template <class T, cpu::if_narrow<T> = 0> inline bool operator op(T a, T b)                    \
    { return (float)a op(float) b; }                                                               \
    template <class T, cpu::if_narrow<T> = 0> inline bool name(T a, T b) { return a op b; }
CPU_NARROW_COMPARE(==, __heq)
CPU_NARROW_COMPARE(!=, __hne)
CPU_NARROW_COMPARE(<, __hlt)
CPU_NARROW_COMPARE(<=, __hle)
CPU_NARROW_COMPARE(>, __hgt)
CPU_NARROW_COMPARE(>=, __hge)
#undef CPU_NARROW_COMPARE

template <class T, cpu::if_narrow<T> = 0> inline T operator-(T a)
{
    a.__x ^= 0x8000u;
    return a;
}
template <class P, class T = cpu::element<P>> inline P operator-(P a)
{
    return P(-a.x, -a.y);
}

/* One- and two-operand intrinsics, scalar and pairwise. */
#define CPU_NARROW_1(name, name2, expr)                                                            \
    template <class T, cpu::if_narrow<T> = 0> inline T name(T a) { return T(expr); }               \
    template <class P, class T = cpu::element<P>> inline P name2(P a)                              \
    { return P(name(a.x), name(a.y)); }
#define CPU_NARROW_2(name, name2, expr)                                                            \
    template <class T, cpu::if_narrow<T> = 0> inline T name(T a, T b) { return T(expr); }          \
    template <class P, class T = cpu::element<P>> inline P name2(P a, P b)                         \
    { return P(name(a.x, b.x), name(a.y, b.y)); }
CPU_NARROW_1(__hneg, __hneg2, -a)
CPU_NARROW_1(__habs, __habs2, std::fabs((float)a))
CPU_NARROW_1(hexp, h2exp, expf((float)a))
CPU_NARROW_1(hexp2, h2exp2, exp2f((float)a))
CPU_NARROW_1(hlog, h2log, logf((float)a))
CPU_NARROW_1(hlog2, h2log2, log2f((float)a))
CPU_NARROW_1(hsqrt, h2sqrt, __builtin_sqrtf((float)a))
CPU_NARROW_1(hrsqrt, h2rsqrt, rsqrtf((float)a))
CPU_NARROW_1(hrcp, h2rcp, 1.0f / (float)a)
CPU_NARROW_1(htanh, h2tanh, tanhf((float)a))
CPU_NARROW_2(__hadd, __hadd2, a + b)
CPU_NARROW_2(__hadd_rn, __hadd2_rn, a + b)
CPU_NARROW_2(__hsub, __hsub2, a - b)
CPU_NARROW_2(__hsub_rn, __hsub2_rn, a - b)
CPU_NARROW_2(__hmul, __hmul2, a * b)
CPU_NARROW_2(__hmul_rn, __hmul2_rn, a * b)
CPU_NARROW_2(__hdiv, __h2div, a / b)
CPU_NARROW_2(__hmax, __hmax2, fmaxf((float)a, (float)b))
CPU_NARROW_2(__hmin, __hmin2, fminf((float)a, (float)b))
/* cpu_narrow_more.h ends their life. */
/* clang-format on */

template <class T, cpu::if_narrow<T> = 0> inline T __hmax_nan(T a, T b)
{
    return a != a || b != b ? T(__builtin_nanf("")) : __hmax(a, b);
}
template <class T, cpu::if_narrow<T> = 0> inline T __hmin_nan(T a, T b)
{
    return a != a || b != b ? T(__builtin_nanf("")) : __hmin(a, b);
}
template <class T, cpu::if_narrow<T> = 0> inline bool __hisnan(T a)
{
    return a != a;
}
template <class T, cpu::if_narrow<T> = 0> inline int __hisinf(T a)
{
    return std::fabs((float)a) == cpu::infinity ? ((float)a < 0.0f ? -1 : 1) : 0;
}
template <class T, cpu::if_narrow<T> = 0> inline T __hfma(T a, T b, T c)
{
    return T(cpu::fma_for_narrow((float)a, (float)b, (float)c));
}
template <class P, class T = cpu::element<P>> inline P __hfma2(P a, P b, P c)
{
    return P(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}

template <class P, class T = cpu::element<P>> inline float __low2float(P a)
{
    return (float)a.x;
}
template <class P, class T = cpu::element<P>> inline float __high2float(P a)
{
    return (float)a.y;
}
template <class P, class T = cpu::element<P>> inline P __lowhigh2highlow(P a)
{
    return P(a.y, a.x);
}

template <class T, cpu::if_narrow<T> = 0> inline T atomicAdd(T *p, T v)
{
    return cpu::atomic_update(p, [v](T old) -> T { return old + v; });
}
template <class P, class T = cpu::element<P>> inline P atomicAdd(P *p, P v)
{
    return cpu::atomic_update(p, [v](P old) -> P { return old + v; });
}

#endif
