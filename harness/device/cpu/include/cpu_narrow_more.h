/*
 * What bf16 and fp16 have besides arithmetic (cpu_narrow.h): conversions with a rounding direction,
 * saturation, rounding to integers, comparisons of pairs and of numbers that may be NaN.
 */
#ifndef CPU_NARROW_MORE_H
#define CPU_NARROW_MORE_H

#pragma GCC system_header

#include "cpu_narrow.h"
#include "cpu_rounding.h"

namespace cpu
{
/* x in the direction. Each of the 16-bit formats orders its magnitudes like integers. */
template <class T> inline T narrowed(double x, toward way)
{
    T h(x);
    int move = std::fabs(x) < __builtin_inf() ? correction((double)(float)h, x, 0.0, way) : 0;

    if (!move)
        return h;
    if (!(h.__x & 0x7fffu))
        h.__x = move > 0 ? 1u : 0x8001u;
    else
        h.__x = (unsigned short)((move > 0) == !(h.__x >> 15) ? h.__x + 1u : h.__x - 1u);
    return h;
}

/* 16-bit integers saturate like the others; a NaN gives 0 (PTX ISA, cvt). */
template <class I> inline I short_of(double x)
{
    using limits = std::numeric_limits<I>;

    if (x != x)
        return 0;
    return x >= (double)limits::max()   ? limits::max()
           : x <= (double)limits::min() ? limits::min()
                                        : (I)x;
}

/* To [0, 1], a NaN to +0. */
template <class T> inline T unit(T a)
{
    return T(__saturatef((float)a));
}

/* Negative to 0; a NaN stays one. */
template <class T> inline T relu(T a)
{
    return (float)a < 0.0f ? T(0.0f) : a;
}
} // namespace cpu

/* One line a function keeps the macros readable. */
/* clang-format off */
#define CPU_NARROW_3(name, name2, expr)                                                            \
    template <class T, cpu::if_narrow<T> = 0> inline T name(T a, T b, T c) { return T(expr); }     \
    template <class P, class T = cpu::element<P>> inline P name2(P a, P b, P c)                    \
    { return P(name(a.x, b.x, c.x), name(a.y, b.y, c.y)); }
CPU_NARROW_1(hexp10, h2exp10, exp10f((float)a))
CPU_NARROW_1(hlog10, h2log10, log10f((float)a))
CPU_NARROW_1(hsin, h2sin, sinf((float)a))
CPU_NARROW_1(hcos, h2cos, cosf((float)a))
CPU_NARROW_1(hfloor, h2floor, floorf((float)a))
CPU_NARROW_1(hceil, h2ceil, ceilf((float)a))
CPU_NARROW_1(htrunc, h2trunc, truncf((float)a))
CPU_NARROW_1(hrint, h2rint, rintf((float)a))
CPU_NARROW_2(__hadd_sat, __hadd2_sat, cpu::unit(a + b))
CPU_NARROW_2(__hsub_sat, __hsub2_sat, cpu::unit(a - b))
CPU_NARROW_2(__hmul_sat, __hmul2_sat, cpu::unit(a * b))
CPU_NARROW_3(__hfma_sat, __hfma2_sat, cpu::unit(__hfma(a, b, c)))
CPU_NARROW_3(__hfma_relu, __hfma2_relu, cpu::relu(__hfma(a, b, c)))
#undef CPU_NARROW_1
#undef CPU_NARROW_2
#undef CPU_NARROW_3

/* Unordered: true when one is a NaN. Pairwise: 1.0 or 0.0 an element, a mask, or both at once. */
#define CPU_NARROW_COMPARE(op, name)                                                               \
    template <class T, cpu::if_narrow<T> = 0> inline bool __h##name##u(T a, T b)                   \
    { return a != a || b != b || a op b; }                                                         \
    CPU_NARROW_PAIR(__h##name##2, __hb##name##2, a.x op b.x, a.y op b.y)                           \
    CPU_NARROW_PAIR(__h##name##u2, __hb##name##u2, __h##name##u(a.x, b.x), __h##name##u(a.y, b.y))
#define CPU_NARROW_PAIR(name, both, low, high)                                                     \
    template <class P, class T = cpu::element<P>> inline P name(P a, P b)                          \
    { return P(T((low) ? 1.0f : 0.0f), T((high) ? 1.0f : 0.0f)); }                                 \
    template <class P, class T = cpu::element<P>> inline bool both(P a, P b)                       \
    { return (low) && (high); }                                                                    \
    template <class P, class T = cpu::element<P>> inline unsigned name##_mask(P a, P b)            \
    { return ((low) ? 0xffffu : 0u) | ((high) ? 0xffff0000u : 0u); }
CPU_NARROW_COMPARE(==, eq)
CPU_NARROW_COMPARE(!=, ne)
CPU_NARROW_COMPARE(<, lt)
CPU_NARROW_COMPARE(<=, le)
CPU_NARROW_COMPARE(>, gt)
CPU_NARROW_COMPARE(>=, ge)
#undef CPU_NARROW_COMPARE
#undef CPU_NARROW_PAIR

/* For one format: its conversions to and from float and integers; T its type, in names `n`. */
#define CPU_NARROW_CONVERSIONS(T, n)                                                               \
    CPU_NARROW_FROM(T, __float2##n, float, (double)v)                                              \
    CPU_NARROW_FROM(T, __int2##n, int, (double)v)                                                  \
    CPU_NARROW_FROM(T, __uint2##n, unsigned, (double)v)                                            \
    CPU_NARROW_FROM_ALL(T, __short2##n, short)                                                     \
    CPU_NARROW_FROM_ALL(T, __ushort2##n, unsigned short)                                           \
    CPU_NARROW_FROM_ALL(T, __ll2##n, long long)                                                    \
    CPU_NARROW_FROM_ALL(T, __ull2##n, unsigned long long)
#define CPU_NARROW_FROM(T, name, F, exact)                                                         \
    static inline T name##_rz(F v) { return cpu::narrowed<T>(exact, cpu::zero); }                  \
    static inline T name##_rd(F v) { return cpu::narrowed<T>(exact, cpu::down); }                  \
    static inline T name##_ru(F v) { return cpu::narrowed<T>(exact, cpu::up); }
#define CPU_NARROW_FROM_ALL(T, name, I)                                                            \
    static inline T name##_rn(I v) { return T(cpu::sticky(v)); }                                   \
    CPU_NARROW_FROM(T, name, I, cpu::sticky(v))
#define CPU_NARROW_TO(T, name, I, to)                                                              \
    static inline I name##_rd(T h) { return to(floor((double)(float)h)); }                         \
    static inline I name##_ru(T h) { return to(ceil((double)(float)h)); }
#define CPU_NARROW_TO_ALL(T, name, I, to)                                                          \
    static inline I name##_rn(T h) { return to(rint((double)(float)h)); }                          \
    static inline I name##_rz(T h) { return to(trunc((double)(float)h)); }                         \
    CPU_NARROW_TO(T, name, I, to)
#define CPU_NARROW_TO_WIDE(T, n)                                                                   \
    CPU_NARROW_TO_ALL(T, __##n##2short, short, cpu::short_of<short>)                               \
    CPU_NARROW_TO_ALL(T, __##n##2ushort, unsigned short, cpu::short_of<unsigned short>)            \
    CPU_NARROW_TO_ALL(T, __##n##2ll, long long, cpu::saturated<long long>)                         \
    CPU_NARROW_TO_ALL(T, __##n##2ull, unsigned long long, cpu::saturated<unsigned long long>)      \
    CPU_NARROW_TO(T, __##n##2int, int, cpu::to_int)                                                \
    CPU_NARROW_TO(T, __##n##2uint, unsigned, cpu::to_uint)
/* clang-format on */

template <class P, class T = cpu::element<P>> inline P __hmax2_nan(P a, P b)
{
    return P(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y));
}
template <class P, class T = cpu::element<P>> inline P __hmin2_nan(P a, P b)
{
    return P(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y));
}
template <class P, class T = cpu::element<P>> inline P __hisnan2(P a)
{
    return P(T(__hisnan(a.x) ? 1.0f : 0.0f), T(__hisnan(a.y) ? 1.0f : 0.0f));
}
/* a b + c of complex numbers, four fused steps (CUDA Math API, __hcmadd). */
template <class P, class T = cpu::element<P>> inline P __hcmadd(P a, P b, P c)
{
    return P(__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));
}

#endif
