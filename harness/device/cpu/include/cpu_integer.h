/* min and max as CUDA overloads them, bit counting, bit casts, conversions. */
#ifndef CPU_INTEGER_H
#define CPU_INTEGER_H

#pragma GCC system_header

#include <math.h>
#include <stdint.h>
#include <string.h>

/* One line a function keeps the macros readable. */
/* clang-format off */
#define CPU_MIN_MAX(T)                                                                             \
    static inline T min(T a, T b) { return b < a ? b : a; }                                        \
    static inline T max(T a, T b) { return a < b ? b : a; }
CPU_MIN_MAX(int)
CPU_MIN_MAX(unsigned)
CPU_MIN_MAX(long)
CPU_MIN_MAX(unsigned long)
CPU_MIN_MAX(long long)
CPU_MIN_MAX(unsigned long long)
#undef CPU_MIN_MAX
/* Of two different integer types: in the type that the usual conversions give. */
#define CPU_MIN_MAX(S, U)                                                                          \
    static inline U min(S a, U b) { return min((U)a, b); }                                         \
    static inline U min(U a, S b) { return min(a, (U)b); }                                         \
    static inline U max(S a, U b) { return max((U)a, b); }                                         \
    static inline U max(U a, S b) { return max(a, (U)b); }
CPU_MIN_MAX(int, unsigned)
CPU_MIN_MAX(long, unsigned long)
CPU_MIN_MAX(long long, unsigned long long)
#undef CPU_MIN_MAX
/* clang-format on */
/* A NaN operand gives the other one (IEEE 754 minNum), as fminf does. */
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return fmin(a, b);
}
static inline double max(double a, double b)
{
    return fmax(a, b);
}
static inline double min(float a, double b)
{
    return fmin((double)a, b);
}
static inline double min(double a, float b)
{
    return fmin(a, (double)b);
}
static inline double max(float a, double b)
{
    return fmax((double)a, b);
}
static inline double max(double a, float b)
{
    return fmax(a, (double)b);
}
static inline unsigned umin(unsigned a, unsigned b)
{
    return min(a, b);
}
static inline unsigned umax(unsigned a, unsigned b)
{
    return max(a, b);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (x >> i & 1u) << (31 - i);
    return r;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s = selector >> (4 * i) & 15u, b = (unsigned)(both >> (8 * (s & 7u))) & 255u;
        r |= (s & 8u ? (b & 128u ? 255u : 0u) : b) << (8 * i); /* bit 3 replicates the sign */
    }
    return r;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((uint64_t)hi << 32 | lo) << (n & 31u) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((uint64_t)hi << 32 | lo) >> (n & 31u));
}
/* The clamped forms shift by 32 at most, which leaves the other word. */
static inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n)
{
    return n >= 32u ? lo : __funnelshift_l(lo, hi, n);
}
static inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n)
{
    return n >= 32u ? hi : __funnelshift_r(lo, hi, n);
}
static inline unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
static inline int __rhadd(int a, int b)
{
    return (int)(((int64_t)a + b + 1) >> 1);
}
static inline unsigned __sad(int a, int b, unsigned c)
{
    return c + (unsigned)(a > b ? (int64_t)a - b : (int64_t)b - a);
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c)
{
    return c + (a > b ? a - b : b - a);
}
static inline int __mulhi(int a, int b)
{
    return (int)((int64_t)a * b >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline int __mul24(int a, int b)
{
    return (a << 8 >> 8) * (b << 8 >> 8);
}
static inline unsigned __umul24(unsigned a, unsigned b)
{
    return (a & 0xffffffu) * (b & 0xffffffu);
}
static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++)
        c += (int8_t)(a >> (8 * i)) * (int8_t)(b >> (8 * i));
    return c;
}

#define CPU_BIT_CAST(name, From, To)                                                               \
    static inline To name(From v)                                                                  \
    {                                                                                              \
        To r;                                                                                      \
        memcpy(&r, &v, sizeof r);                                                                  \
        return r;                                                                                  \
    }
CPU_BIT_CAST(__int_as_float, int, float)
CPU_BIT_CAST(__uint_as_float, unsigned, float)
CPU_BIT_CAST(__float_as_int, float, int)
CPU_BIT_CAST(__float_as_uint, float, unsigned)
CPU_BIT_CAST(__longlong_as_double, long long, double)
CPU_BIT_CAST(__double_as_longlong, double, long long)
#undef CPU_BIT_CAST
static inline double __hiloint2double(int hi, int lo)
{
    return __longlong_as_double((long long)((uint64_t)(unsigned)hi << 32 | (unsigned)lo));
}
static inline int __double2hiint(double x)
{
    return (int)(__double_as_longlong(x) >> 32);
}
static inline int __double2loint(double x)
{
    return (int)__double_as_longlong(x);
}

/* Float to integer: NaN gives 0 and values out of range saturate, as cvt.{s,u}32.f32 does. */
namespace cpu
{
template <class I> inline I to_integer_saturated(double x, double low, double high)
{
    if (x != x)
        return 0;
    return x <= low ? (I)low : x >= high ? (I)high : (I)x;
}
inline int to_int(double x)
{
    return to_integer_saturated<int>(x, -0x1p31, 0x1.fffffffcp30);
}
inline unsigned to_uint(double x)
{
    return to_integer_saturated<unsigned>(x, 0, 0x1.fffffffep31);
}
} // namespace cpu
static inline int __float2int_rn(float x)
{
    return cpu::to_int(rint((double)x));
}
static inline int __float2int_rz(float x)
{
    return cpu::to_int(trunc((double)x));
}
static inline int __float2int_rd(float x)
{
    return cpu::to_int(floor((double)x));
}
static inline int __float2int_ru(float x)
{
    return cpu::to_int(ceil((double)x));
}
static inline unsigned __float2uint_rn(float x)
{
    return cpu::to_uint(rint((double)x));
}
static inline unsigned __float2uint_rz(float x)
{
    return cpu::to_uint(trunc((double)x));
}
static inline float __int2float_rn(int x)
{
    return (float)x;
}
static inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}
static inline float __double2float_rn(double x)
{
    return (float)x;
}

#endif
