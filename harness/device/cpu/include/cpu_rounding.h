/*
 * Arithmetic and conversions with a rounding direction in their name: _rz towards zero, _rd down,
 * _ru up. The exact result is a double and a rest smaller than half its last bit, found without
 * error (T. Dekker 1971); the nearest float is then moved by one where it lies on the wrong side.
 * Products of floats are exact in double. A quotient or root is not, but lies at least 2^-49 of
 * itself away from any float that it does not equal, so its double lies on the same side.
 */
#ifndef CPU_ROUNDING_H
#define CPU_ROUNDING_H

#pragma GCC system_header

#include "cpu_math.h"

namespace cpu
{
enum toward { zero, down, up };

/* The next float above or below. */
inline float neighbour(float f, bool above)
{
    uint32_t u = __float_as_uint(f);

    if (!(u << 1))
        return __uint_as_float(above ? 1u : 0x80000001u);
    return __uint_as_float(above == !(u >> 31) ? u + 1u : u - 1u);
}

/* Has a nearest value `got` of the exact s + rest to be moved: 1 up, -1 down, 0 no? */
inline int correction(double got, double s, double rest, toward way)
{
    bool above = got > s || (got == s && rest < 0.0), below = got < s || (got == s && rest > 0.0);

    if (above && (way == down || (way == zero && s > 0.0)))
        return -1;
    return below && (way == up || (way == zero && s < 0.0)) ? 1 : 0;
}

inline float rounded(double s, double rest, toward way)
{
    float f = (float)s;
    int move = std::fabs(s) < __builtin_inf() ? correction((double)f, s, rest, way) : 0;

    return move ? neighbour(f, move > 0) : f;
}

/* a + b. An exact 0 of addends other than two equal zeros is -0 when rounding down (IEEE 754,
   6.3). */
inline float rounded_sum(double a, double b, toward way)
{
    double s = a + b, t = s - a;

    if (s == 0.0)
        return std::signbit(a) == std::signbit(b) ? (float)s : way == down ? -0.0f : 0.0f;
    return rounded(s, (a - (s - t)) + (b - t), way);
}

/* An integer as a double that rounds, to any format of fewer than 40 bits and in any direction, as
   the integer does: what lies beyond 53 bits sets the last that is kept. */
template <class I> inline double sticky(I i)
{
    bool negative = i < 0;
    uint64_t u = negative ? 0 - (uint64_t)i : (uint64_t)i;

    if (u >> 53)
        u = (u >> 12 | ((u & 0xfffu) != 0)) << 12;
    return negative ? -(double)u : (double)u;
}

/* cvt to 64 bits, and from double to any: a NaN gives the sign bit alone (PTX ISA, cvt). */
template <class I> inline I saturated(double x)
{
    using limits = std::numeric_limits<I>;
    constexpr double beyond = sizeof(I) == 8 ? (limits::is_signed ? 0x1p63 : 0x1p64)
                                             : (limits::is_signed ? 0x1p31 : 0x1p32);

    if (x != x)
        return (I)(1ull << (8 * sizeof(I) - 1));
    return x >= beyond ? limits::max() : x <= (double)limits::min() ? limits::min() : (I)x;
}
} // namespace cpu

/* One line a function keeps the macros readable. */
/* clang-format off */
#define CPU_DIRECTED(name, params, expr)                                                           \
    CPU_INLINE float name##_rz params { constexpr cpu::toward way = cpu::zero; return expr; }      \
    CPU_INLINE float name##_rd params { constexpr cpu::toward way = cpu::down; return expr; }      \
    CPU_INLINE float name##_ru params { constexpr cpu::toward way = cpu::up; return expr; }
CPU_DIRECTED(__fadd, (float a, float b), cpu::rounded_sum((double)a, (double)b, way))
CPU_DIRECTED(__fsub, (float a, float b), cpu::rounded_sum((double)a, -(double)b, way))
CPU_DIRECTED(__fmul, (float a, float b), cpu::rounded((double)a * (double)b, 0.0, way))
CPU_DIRECTED(__fmaf, (float a, float b, float c),
             cpu::rounded_sum((double)a * (double)b, (double)c, way))
CPU_DIRECTED(__fdiv, (float a, float b), cpu::rounded((double)a / (double)b, 0.0, way))
CPU_DIRECTED(__frcp, (float a), cpu::rounded(1.0 / (double)a, 0.0, way))
CPU_DIRECTED(__fsqrt, (float a), cpu::rounded(__builtin_sqrt((double)a), 0.0, way))
CPU_DIRECTED(__double2float, (double a), cpu::rounded(a, 0.0, way))
CPU_DIRECTED(__int2float, (int a), cpu::rounded(cpu::sticky(a), 0.0, way))
CPU_DIRECTED(__uint2float, (unsigned a), cpu::rounded(cpu::sticky(a), 0.0, way))
CPU_DIRECTED(__ll2float, (long long a), cpu::rounded(cpu::sticky(a), 0.0, way))
CPU_DIRECTED(__ull2float, (unsigned long long a), cpu::rounded(cpu::sticky(a), 0.0, way))
#undef CPU_DIRECTED

#define CPU_TO_INTEGER(from, F, to, T)                                                             \
    CPU_INLINE T __##from##2##to##_rn(F x) { return cpu::saturated<T>(rint((double)x)); }          \
    CPU_TO_INTEGER_DIRECTED(from, F, to, T)
#define CPU_TO_INTEGER_DIRECTED(from, F, to, T)                                                    \
    CPU_INLINE T __##from##2##to##_rz(F x) { return cpu::saturated<T>(trunc((double)x)); }         \
    CPU_INLINE T __##from##2##to##_rd(F x) { return cpu::saturated<T>(floor((double)x)); }         \
    CPU_INLINE T __##from##2##to##_ru(F x) { return cpu::saturated<T>(ceil((double)x)); }
CPU_TO_INTEGER(float, float, ll, long long)
CPU_TO_INTEGER(float, float, ull, unsigned long long)
CPU_TO_INTEGER(double, double, int, int)
CPU_TO_INTEGER(double, double, uint, unsigned)
CPU_TO_INTEGER(double, double, ll, long long)
CPU_TO_INTEGER(double, double, ull, unsigned long long)
#undef CPU_TO_INTEGER
#undef CPU_TO_INTEGER_DIRECTED
/* clang-format on */

static inline unsigned __float2uint_rd(float x)
{
    return cpu::to_uint(floor((double)x));
}
static inline unsigned __float2uint_ru(float x)
{
    return cpu::to_uint(ceil((double)x));
}
static inline float __ll2float_rn(long long x)
{
    return (float)x;
}
static inline float __ull2float_rn(unsigned long long x)
{
    return (float)x;
}

#endif
