/*
 * Elementary functions in double with the same bits on every machine and compiler: libm picks its
 * code by processor, so none of it is used. Single-precision results (cpu_math.h) are these rounded
 * once; each is within 2^-36 of the exact value, relatively, before that rounding.
 */
#ifndef CPU_ELEMENTARY_H
#define CPU_ELEMENTARY_H

#pragma GCC system_header

#include <stdint.h>
#include <string.h>

namespace cpu
{
/* 2^(i/128), rounded to nearest. */
static const double exp2_table[128] = {
    0x1.0000000000000p+0, 0x1.0163da9fb3335p+0, 0x1.02c9a3e778061p+0, 0x1.04315e86e7f85p+0,
    0x1.059b0d3158574p+0, 0x1.0706b29ddf6dep+0, 0x1.0874518759bc8p+0, 0x1.09e3ecac6f383p+0,
    0x1.0b5586cf9890fp+0, 0x1.0cc922b7247f7p+0, 0x1.0e3ec32d3d1a2p+0, 0x1.0fb66affed31bp+0,
    0x1.11301d0125b51p+0, 0x1.12abdc06c31ccp+0, 0x1.1429aaea92de0p+0, 0x1.15a98c8a58e51p+0,
    0x1.172b83c7d517bp+0, 0x1.18af9388c8deap+0, 0x1.1a35beb6fcb75p+0, 0x1.1bbe084045cd4p+0,
    0x1.1d4873168b9aap+0, 0x1.1ed5022fcd91dp+0, 0x1.2063b88628cd6p+0, 0x1.21f49917ddc96p+0,
    0x1.2387a6e756238p+0, 0x1.251ce4fb2a63fp+0, 0x1.26b4565e27cddp+0, 0x1.284dfe1f56381p+0,
    0x1.29e9df51fdee1p+0, 0x1.2b87fd0dad990p+0, 0x1.2d285a6e4030bp+0, 0x1.2ecafa93e2f56p+0,
    0x1.306fe0a31b715p+0, 0x1.32170fc4cd831p+0, 0x1.33c08b26416ffp+0, 0x1.356c55f929ff1p+0,
    0x1.371a7373aa9cbp+0, 0x1.38cae6d05d866p+0, 0x1.3a7db34e59ff7p+0, 0x1.3c32dc313a8e5p+0,
    0x1.3dea64c123422p+0, 0x1.3fa4504ac801cp+0, 0x1.4160a21f72e2ap+0, 0x1.431f5d950a897p+0,
    0x1.44e086061892dp+0, 0x1.46a41ed1d0057p+0, 0x1.486a2b5c13cd0p+0, 0x1.4a32af0d7d3dep+0,
    0x1.4bfdad5362a27p+0, 0x1.4dcb299fddd0dp+0, 0x1.4f9b2769d2ca7p+0, 0x1.516daa2cf6642p+0,
    0x1.5342b569d4f82p+0, 0x1.551a4ca5d920fp+0, 0x1.56f4736b527dap+0, 0x1.58d12d497c7fdp+0,
    0x1.5ab07dd485429p+0, 0x1.5c9268a5946b7p+0, 0x1.5e76f15ad2148p+0, 0x1.605e1b976dc09p+0,
    0x1.6247eb03a5585p+0, 0x1.6434634ccc320p+0, 0x1.6623882552225p+0, 0x1.68155d44ca973p+0,
    0x1.6a09e667f3bcdp+0, 0x1.6c012750bdabfp+0, 0x1.6dfb23c651a2fp+0, 0x1.6ff7df9519484p+0,
    0x1.71f75e8ec5f74p+0, 0x1.73f9a48a58174p+0, 0x1.75feb564267c9p+0, 0x1.780694fde5d3fp+0,
    0x1.7a11473eb0187p+0, 0x1.7c1ed0130c132p+0, 0x1.7e2f336cf4e62p+0, 0x1.80427543e1a12p+0,
    0x1.82589994cce13p+0, 0x1.8471a4623c7adp+0, 0x1.868d99b4492edp+0, 0x1.88ac7d98a6699p+0,
    0x1.8ace5422aa0dbp+0, 0x1.8cf3216b5448cp+0, 0x1.8f1ae99157736p+0, 0x1.9145b0b91ffc6p+0,
    0x1.93737b0cdc5e5p+0, 0x1.95a44cbc8520fp+0, 0x1.97d829fde4e50p+0, 0x1.9a0f170ca07bap+0,
    0x1.9c49182a3f090p+0, 0x1.9e86319e32323p+0, 0x1.a0c667b5de565p+0, 0x1.a309bec4a2d33p+0,
    0x1.a5503b23e255dp+0, 0x1.a799e1330b358p+0, 0x1.a9e6b5579fdbfp+0, 0x1.ac36bbfd3f37ap+0,
    0x1.ae89f995ad3adp+0, 0x1.b0e07298db666p+0, 0x1.b33a2b84f15fbp+0, 0x1.b59728de5593ap+0,
    0x1.b7f76f2fb5e47p+0, 0x1.ba5b030a1064ap+0, 0x1.bcc1e904bc1d2p+0, 0x1.bf2c25bd71e09p+0,
    0x1.c199bdd85529cp+0, 0x1.c40ab5fffd07ap+0, 0x1.c67f12e57d14bp+0, 0x1.c8f6d9406e7b5p+0,
    0x1.cb720dcef9069p+0, 0x1.cdf0b555dc3fap+0, 0x1.d072d4a07897cp+0, 0x1.d2f87080d89f2p+0,
    0x1.d5818dcfba487p+0, 0x1.d80e316c98398p+0, 0x1.da9e603db3285p+0, 0x1.dd321f301b460p+0,
    0x1.dfc97337b9b5fp+0, 0x1.e264614f5a129p+0, 0x1.e502ee78b3ff6p+0, 0x1.e7a51fbc74c83p+0,
    0x1.ea4afa2a490dap+0, 0x1.ecf482d8e67f1p+0, 0x1.efa1bee615a27p+0, 0x1.f252b376bba97p+0,
    0x1.f50765b6e4540p+0, 0x1.f7bfdad9cbe14p+0, 0x1.fa7c1819e90d8p+0, 0x1.fd3c22b8f71f1p+0};

inline uint64_t bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

inline double double_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

constexpr double log_2 = 0x1.62e42fefa39efp-1; /* ln 2 */
constexpr double to_integer = 0x1.8p52;        /* adding it rounds to an integer in the low bits */

/* e^r 2^(k/128) for |r| <= ln 2 / 256, k in the low bits of kd = k + to_integer: the Taylor
   polynomial of degree 3 leaves r^4/24 < 2^-38. The caller keeps k/128 within the exponents of a
   double. */
__attribute__((always_inline)) inline double exp_reduced(double r, double kd)
{
    int64_t k = (int64_t)(bits64(kd) << 12) >> 12;
    double p = (1.0 + r) + r * r * (0.5 + r * (1.0 / 6.0));
    uint64_t scale;

    memcpy(&scale, &exp2_table[k & 127], sizeof scale);
    return p * double_of(scale + ((uint64_t)(k >> 7) << 52));
}

/* For |x| < 700. */
__attribute__((always_inline)) inline double exp_double(double x)
{
    double kd = x * 0x1.71547652b82fep+7 + to_integer;                    /* 128 / ln 2 */
    return exp_reduced(x - (kd - to_integer) * 0x1.62e42fefa39efp-8, kd); /* ln 2 / 128 */
}

/* For |x| < 1000. */
__attribute__((always_inline)) inline double exp2_double(double x)
{
    double kd = x * 128.0 + to_integer;
    return exp_reduced((x - (kd - to_integer) * (1.0 / 128.0)) * log_2, kd);
}

/* e^x - 1 for |x| < 700: its Taylor series to x^13 below 1/2, where the difference would cancel. */
inline double expm1_double(double x)
{
    if (x > 0.5 || x < -0.5)
        return exp_double(x) - 1.0;
    double sum = 0.0;
    for (int n = 13; n > 0; n--)
        sum = (sum + 1.0) * x / n;
    return sum;
}

/* 2 atanh(t) for |t| < 0.18: the series in t^2 to t^27. */
inline double atanh_series(double t)
{
    double t2 = t * t, sum = 0.0;
    for (int n = 27; n > 1; n -= 2)
        sum = (sum + 1.0 / n) * t2;
    return 2.0 * (t + t * sum);
}

/* For positive normal x: x = m 2^e, m in [sqrt(1/2), sqrt(2)). */
inline double log_double(double x)
{
    uint64_t u = bits64(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    int e = (int)(u >> 52) - 1023;
    double m = double_of((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    return atanh_series((m - 1.0) / (m + 1.0)) + e * log_2;
}

/* log(1 + x) for x > -1. */
inline double log1p_double(double x)
{
    if (x > -0.25 && x < 0.25)
        return atanh_series(x / (2.0 + x));
    return log_double(1.0 + x);
}

/* erf by the series 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!!, all terms of one sign; 1 from
   6 on (erfc(6) < 2^-52). */
inline double erf_double(double x)
{
    double a = x < 0 ? -x : x, term = a, sum = a;

    if (a >= 6.0)
        return x < 0 ? -1.0 : 1.0;
    for (int n = 1; n < 160 && term > sum * 0x1p-60; n++)
        sum += term *= 2.0 * a * a / (2 * n + 1);
    sum *= 0x1.20dd750429b6dp+0 * exp_double(-a * a); /* 2 / sqrt(pi) */
    return x < 0 ? -sum : sum;
}

/* erfc for x >= 2 by its continued fraction, evaluated from the 60th partial quotient. */
inline double erfc_tail(double x)
{
    double f = x;

    for (int n = 60; n > 0; n--)
        f = x + (n * 0.5) / f;
    return exp_double(-x * x) / (f * 0x1.c5bf891b4ef6bp+0); /* sqrt(pi) */
}

/* sine (quadrant 0) or cosine (quadrant 1) of x. Reduction by pi/2 in three parts of 33 bits: exact
   enough below 2^20; beyond, the remainder loses the bits that x has above it. */
inline double sine_double(double x, int quadrant)
{
    double kd = x * 0x1.45f306dc9c883p-1 + to_integer, k = kd - to_integer; /* 2 / pi */
    int64_t q = ((int64_t)(bits64(kd) << 12) >> 12) + quadrant;
    double r = ((x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69;
    double r2 = r * r, sum = 0.0;
    int odd = (int)(q & 1);

    for (int n = 20 + 1 - odd; n > 1; n -= 2)
        sum = -(sum + 1.0) * r2 / (n * (n - 1));
    sum = odd ? 1.0 + sum : r + r * sum;
    return q & 2 ? -sum : sum;
}
} // namespace cpu

#endif
