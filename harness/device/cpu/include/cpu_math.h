/*
 * The math functions of CUDA C++ that kernels use. Each single-precision function is evaluated in
 * double by cpu_elementary.h and rounded once, so it is within 0.5001 ulp and has the same bits
 * everywhere; the fast forms (__expf and so on) are the accurate ones. The C library's float
 * functions of the same names are replaced inside the module, so std::exp(float) comes here too.
 * Its double functions are not.
 */
#ifndef CPU_MATH_H
#define CPU_MATH_H

#pragma GCC system_header

#include <stdint.h>
#include <string.h>

#include <cmath>

#include "cpu_elementary.h"

/* Definitions under the C library's names: the module keeps them local, so they win over libm at
   link. */
#define CPU_LIBM   extern "C" inline __attribute__((always_inline, used))
#define CPU_INLINE static inline __attribute__((always_inline))

namespace cpu
{
constexpr float infinity = __builtin_inff();

/* |x| too large for the plain path, or not a number. */
__attribute__((noinline, cold)) inline float exp_edge(float x, float overflow)
{
    if (x != x)
        return x + x;
    return x > overflow ? infinity : 0.0f;
}

/* `rounded once` below the normal range too: the double is exact enough and converts to a
   subnormal. */
CPU_INLINE float exp_single(float x)
{
    if (__builtin_expect(!(std::fabs(x) < 104.0f), 0))
        return exp_edge(x, 0.0f);
    return (float)exp_double((double)x);
}

CPU_INLINE float exp2_single(float x)
{
    if (__builtin_expect(!(std::fabs(x) < 151.0f), 0))
        return exp_edge(x, 0.0f);
    return (float)exp2_double((double)x);
}

CPU_INLINE float log_scaled(float x, double scale)
{
    if (x > 0.0f && x < infinity)
        return (float)(log_double((double)x) * scale);
    return x == 0.0f ? -infinity : x < 0.0f ? __builtin_nanf("") : x + x;
}

inline float tanh_single(float x)
{
    if (!(std::fabs(x) < 10.0f)) /* 1 - tanh(10) < 2^-27 */
        return x != x ? x + x : std::copysign(1.0f, x);
    if (std::fabs(x) < 0x1p-13f) /* x - x^3/3: x to within 2^-27 of itself, and -0 stays */
        return x;
    double em = expm1_double(2.0 * (double)x);
    return (float)(em / (em + 2.0));
}

/* The sign and the special cases of C99 F.10.4.4; the rest is exp(y log|x|). */
inline float pow_single(float x, float y)
{
    bool y_integer = std::floor(y) == y && std::fabs(y) < infinity;
    bool odd = y_integer && std::fabs(y) < 0x1p24f && ((int64_t)y & 1);

    if (y == 0.0f || x == 1.0f || (x == -1.0f && std::fabs(y) == infinity))
        return 1.0f;
    if (x != x || y != y)
        return x + y;
    if (x == 0.0f || std::fabs(x) == infinity) {
        float r = (y > 0.0f) == (x == 0.0f) ? 0.0f : infinity;
        return odd ? std::copysign(r, x) : r;
    }
    if (std::fabs(y) == infinity)
        return (y > 0.0f) == (std::fabs(x) > 1.0f) ? infinity : 0.0f;
    if (x < 0.0f && !y_integer)
        return __builtin_nanf("");
    double e = (double)y * log_double(std::fabs((double)x));
    float r = (float)exp_double(e > 200.0 ? 200.0 : e < -200.0 ? -200.0 : e);
    return x < 0.0f && odd ? -r : r;
}

inline float sine_single(float x, int quadrant)
{
    if (!(std::fabs(x) < infinity))
        return x - x; /* NaN */
    return x == 0.0f && !quadrant ? x : (float)sine_double((double)x, quadrant);
}
} // namespace cpu

CPU_LIBM float expf(float x) noexcept
{
    return cpu::exp_single(x);
}
CPU_LIBM float exp2f(float x) noexcept
{
    return cpu::exp2_single(x);
}
CPU_LIBM float exp10f(float x) noexcept
{
    if (!(std::fabs(x) < 46.0f))
        return cpu::exp_edge(x, 0.0f);
    return (float)cpu::exp_double((double)x * 0x1.26bb1bbb55516p+1); /* ln 10 */
}
CPU_LIBM float expm1f(float x) noexcept
{
    if (!(std::fabs(x) < 104.0f))
        return x < 0.0f ? -1.0f : cpu::exp_edge(x, 0.0f);
    return std::fabs(x) < 0x1p-26f ? x : (float)cpu::expm1_double((double)x);
}
CPU_LIBM float logf(float x) noexcept
{
    return cpu::log_scaled(x, 1.0);
}
CPU_LIBM float log2f(float x) noexcept
{
    return cpu::log_scaled(x, 0x1.71547652b82fep+0);
}
CPU_LIBM float log10f(float x) noexcept
{
    return cpu::log_scaled(x, 0x1.bcb7b1526e50ep-2);
}
CPU_LIBM float log1pf(float x) noexcept
{
    if (!(x > -1.0f && x < cpu::infinity))
        return x == -1.0f ? -cpu::infinity : x < -1.0f ? __builtin_nanf("") : x + x;
    return std::fabs(x) < 0x1p-26f ? x : (float)cpu::log1p_double((double)x);
}
CPU_LIBM float tanhf(float x) noexcept
{
    return cpu::tanh_single(x);
}
CPU_LIBM float powf(float x, float y) noexcept
{
    return cpu::pow_single(x, y);
}
CPU_LIBM float sinf(float x) noexcept
{
    return cpu::sine_single(x, 0);
}
CPU_LIBM float cosf(float x) noexcept
{
    return cpu::sine_single(x, 1);
}
CPU_LIBM void sincosf(float x, float *s, float *c) noexcept
{
    *s = cpu::sine_single(x, 0);
    *c = cpu::sine_single(x, 1);
}
CPU_LIBM float tanf(float x) noexcept
{
    if (!(std::fabs(x) < cpu::infinity))
        return x - x;
    return x == 0.0f ? x : (float)(cpu::sine_double((double)x, 0) / cpu::sine_double((double)x, 1));
}
CPU_LIBM float sinhf(float x) noexcept
{
    double a = std::fabs((double)x), e;

    if (!(a < 104.0) || a < 0x1p-13)
        return x != x || a < 1.0 ? x : std::copysign(cpu::infinity, x);
    e = cpu::expm1_double(a);
    return std::copysign((float)(0.5 * (e + e / (e + 1.0))), x);
}
CPU_LIBM float coshf(float x) noexcept
{
    double a = std::fabs((double)x), e;

    if (!(a < 104.0))
        return (float)(a + a);
    e = cpu::exp_double(a);
    return (float)(0.5 * (e + 1.0 / e));
}
CPU_LIBM float erff(float x) noexcept
{
    return x != x || x == 0.0f ? x : (float)cpu::erf_double((double)x);
}
CPU_LIBM float erfcf(float x) noexcept
{
    if (!(x < 2.0f))
        return x != x ? x : x > 11.0f ? 0.0f : (float)cpu::erfc_tail((double)x);
    return (float)(1.0 - cpu::erf_double((double)x));
}

/* The larger and the smaller; of a number and a NaN the number; of two zeros +0 is the larger (PTX
   ISA, max). libm leaves the sign of zero open. */
CPU_LIBM float fmaxf(float a, float b) noexcept
{
    if (a == b)
        return std::signbit(a) ? b : a;
    return a > b || b != b ? a : b;
}
CPU_LIBM float fminf(float a, float b) noexcept
{
    if (a == b)
        return std::signbit(a) ? a : b;
    return a < b || b != b ? a : b;
}

CPU_INLINE float rsqrtf(float x)
{
    return (float)(1.0 / __builtin_sqrt((double)x));
}
CPU_INLINE double rsqrt(double x)
{
    return 1.0 / __builtin_sqrt(x);
}
CPU_INLINE float rsqrt(float x)
{
    return rsqrtf(x);
}
CPU_INLINE float normcdff(float x)
{
    return 0.5f * erfcf(x * -0x1.6a09e6p-1f);
}

/* glibc declares these names, so the fast forms are macros. */
#define __expf(...)    expf(__VA_ARGS__)
#define __exp10f(...)  exp10f(__VA_ARGS__)
#define __logf(...)    logf(__VA_ARGS__)
#define __log2f(...)   log2f(__VA_ARGS__)
#define __log10f(...)  log10f(__VA_ARGS__)
#define __sinf(...)    sinf(__VA_ARGS__)
#define __cosf(...)    cosf(__VA_ARGS__)
#define __tanf(...)    tanf(__VA_ARGS__)
#define __powf(...)    powf(__VA_ARGS__)
#define __sincosf(...) sincosf(__VA_ARGS__)
#define __tanhf(...)   tanhf(__VA_ARGS__)
CPU_INLINE float __fdividef(float a, float b)
{
    return a / b;
}
CPU_INLINE float fdividef(float a, float b)
{
    return a / b;
}
CPU_INLINE float __saturatef(float x)
{
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

CPU_INLINE float __fadd_rn(float a, float b)
{
    return a + b;
}
CPU_INLINE float __fsub_rn(float a, float b)
{
    return a - b;
}
CPU_INLINE float __fmul_rn(float a, float b)
{
    return a * b;
}
CPU_INLINE float __fdiv_rn(float a, float b)
{
    return a / b;
}
CPU_INLINE float __frcp_rn(float x)
{
    return 1.0f / x;
}
CPU_INLINE float __fsqrt_rn(float x)
{
    return __builtin_sqrtf(x);
}
CPU_INLINE float __frsqrt_rn(float x)
{
    return rsqrtf(x);
}
CPU_INLINE float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
CPU_INLINE double __dadd_rn(double a, double b)
{
    return a + b;
}
CPU_INLINE double __dmul_rn(double a, double b)
{
    return a * b;
}
CPU_INLINE double __dsub_rn(double a, double b)
{
    return a - b;
}
CPU_INLINE double __ddiv_rn(double a, double b)
{
    return a / b;
}
CPU_INLINE double __drcp_rn(double a)
{
    return 1.0 / a;
}
CPU_INLINE double __dsqrt_rn(double a)
{
    return __builtin_sqrt(a);
}
CPU_INLINE double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}

#include "cpu_integer.h"

#endif
