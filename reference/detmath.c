/*
 * Method, the same for all: reduce the argument exactly (error-free sums), sum the Taylor series of
 * the reduced argument until its remainder is below 2^-60, and keep the result as an unevaluated
 * sum of two doubles until the one final rounding. The coefficients are the series' own (1/n!,
 * 2/(2n+1)): nothing here was fitted, so nothing needs a source but Taylor.
 */
#include "reference/detmath.h"

#include <math.h>

/* ln 2 cut after 33 bits, so that k * LN2_HIGH is exact for |k| < 2^20, and the rest. */
#define LN2_HIGH    0x1.62e42feep-1
#define LN2_LOW     0x1.a39ef35793c76p-33
#define INVERSE_LN2 0x1.71547652b82fep+0
#define SQRT_HALF   0x1.6a09e667f3bcdp-1

/* Beyond this |x|, 1 + exp(-|x|) rounds to 1 with an error below 2^-57: exp(-40) < 2^-57. */
#define FLAT 40.0

/* Arguments of exp outside this range overflow or vanish: 1024 ln 2 and -1076 ln 2, outwards. */
#define EXP_OVERFLOW 709.79
#define EXP_VANISH   (-745.84)

/* The unevaluated sum hi + lo. */
struct twin {
    double hi, lo;
};

static struct twin two_sum(double a, double b)
{
    double s = a + b;
    double part = s - a;
    return (struct twin){s, (a - (s - part)) + (b - part)};
}

/* Requires |a| >= |b| or a = 0. */
static struct twin quick_sum(double a, double b)
{
    double s = a + b;
    return (struct twin){s, b - (s - a)};
}

/* a * b exactly (Dekker), for |a|, |b| well inside the exponent range. */
static struct twin two_product(double a, double b)
{
    const double splitter = 0x1p27 + 1.0;
    double p = a * b;
    double ta = splitter * a;
    double tb = splitter * b;
    double ah = ta - (ta - a);
    double bh = tb - (tb - b);
    double al = a - ah;
    double bl = b - bh;
    return (struct twin){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

/* (exp(r) - 1 - r) for |r| <= ln2/2: sum of r^n/n!, n = 2..14; the remainder is below 2^-62. */
static double exp_tail(double r)
{
    static const double inverse_factorial[] = {
        1.0 / 2.0,           1.0 / 6.0,        1.0 / 24.0,        1.0 / 120.0,
        1.0 / 720.0,         1.0 / 5040.0,     1.0 / 40320.0,     1.0 / 362880.0,
        1.0 / 3628800.0,     1.0 / 39916800.0, 1.0 / 479001600.0, 1.0 / 6227020800.0,
        1.0 / 87178291200.0,
    };
    double sum = 0.0;
    for (int n = 12; n >= 0; n--)
        sum = inverse_factorial[n] + r * sum;
    return r * r * sum;
}

/* exp(x) = (hi + lo) * 2^k for finite x within EXP_VANISH..EXP_OVERFLOW. */
static struct twin exp_twin(double x, int *k)
{
    *k = (int)(x * INVERSE_LN2 + (x < 0.0 ? -0.5 : 0.5));
    struct twin r = two_sum(x - *k * LN2_HIGH, -(*k * LN2_LOW));
    struct twin s = quick_sum(1.0, r.hi);
    return quick_sum(s.hi, s.lo + (exp_tail(r.hi) + r.lo * s.hi));
}

double det_exp(double x)
{
    if (!(x > EXP_VANISH))
        return x != x ? x : 0.0;
    if (x > EXP_OVERFLOW)
        return (double)INFINITY;
    int k;
    struct twin e = exp_twin(x, &k);
    return ldexp(e.hi + e.lo, k);
}

double det_expm1(double x)
{
    if (x == 0.0 || x != x)
        return x;
    if (x > EXP_OVERFLOW)
        return (double)INFINITY;
    if (x < -FLAT)
        return -1.0;
    int k;
    struct twin e = exp_twin(x, &k);
    if (k == 0)
        return x + exp_tail(x);
    if (k > 60) /* 1 is below half an ulp of exp(x) */
        return ldexp(e.hi + e.lo, k);
    struct twin less_one = two_sum(ldexp(e.hi, k), -1.0);
    return less_one.hi + (less_one.lo + ldexp(e.lo, k));
}

/*
 * k ln2 + log(1+f) + c for |f| <= 0.42 and a tiny correction c. With s = f/(2+f),
 * log(1+f) = 2 atanh(s) = 2s + s*R, R = sum 2 s^(2n)/(2n+1), and 2s = f - (f*f/2 - s*f*f/2):
 * written so, the leading term f is exact. s*s < 0.0302, so 12 terms leave less than 2^-62.
 */
static struct twin log_twin(int k, double f, double c)
{
    double s = f / (2.0 + f);
    double z = s * s;
    double r = 0.0;
    for (int n = 12; n >= 1; n--)
        r = z * (2.0 / (2 * n + 1) + r);
    double half_square = 0.5 * f * f;
    struct twin head = two_sum(k * LN2_HIGH, f);
    double rest = s * (half_square + r) + (k * LN2_LOW + c);
    return two_sum(head.hi, head.lo - (half_square - rest));
}

/* log(x + xl) for finite x > 0 and |xl| below an ulp of x. */
static struct twin log_sum(double x, double xl)
{
    int k;
    double m = frexp(x, &k);
    if (m < SQRT_HALF) {
        m *= 2.0;
        k--;
    }
    return log_twin(k, m - 1.0, xl / x);
}

/* log(1 + x + xl) for x > -1. */
static struct twin log1p_sum(double x, double xl)
{
    if (x > -0.29 && x < 0.41)
        return log_twin(0, x, xl / (1.0 + x));
    struct twin one_x = two_sum(1.0, x);
    return log_sum(one_x.hi, one_x.lo + xl);
}

double det_log(double x)
{
    if (!(x > 0.0))
        return x == 0.0 ? -(double)INFINITY : (double)NAN;
    if (x > 0x1.fffffffffffffp+1023)
        return x;
    struct twin l = log_sum(x, 0.0);
    return l.hi + l.lo;
}

double det_log1p(double x)
{
    if (!(x > -1.0))
        return x == -1.0 ? -(double)INFINITY : (double)NAN;
    if (x == 0.0 || x > 0x1.fffffffffffffp+1023) /* keeps the sign of zero, and infinity */
        return x;
    struct twin l = log1p_sum(x, 0.0);
    return l.hi + l.lo;
}

/* 1/(1+exp(-x)) as a sum of two doubles, |x| <= FLAT. With e = exp(-|x|) it is 1/(1+e) or
   e/(1+e). */
static struct twin sigmoid_twin(double x)
{
    int k;
    struct twin e = exp_twin(-fabs(x), &k);
    e.hi = ldexp(e.hi, k);
    e.lo = ldexp(e.lo, k);
    struct twin den = quick_sum(1.0, e.hi);
    den.lo += e.lo;
    struct twin num = x < 0.0 ? e : (struct twin){1.0, 0.0};
    double q = num.hi / den.hi;
    struct twin back = two_product(q, den.hi);
    double rest = ((num.hi - back.hi) - back.lo) + num.lo - q * den.lo;
    return (struct twin){q, rest / den.hi};
}

double det_sigmoid(double x)
{
    if (x > FLAT)
        return 1.0;
    if (!(x >= -FLAT))
        return det_exp(x);
    struct twin s = sigmoid_twin(x);
    return s.hi + s.lo;
}

double det_softplus(double x)
{
    if (x > FLAT)
        return x;
    if (!(x >= -FLAT))
        return det_exp(x); /* log(1+e) = e to within e*e/2 */
    int k;
    struct twin e = exp_twin(-fabs(x), &k);
    struct twin l = log1p_sum(ldexp(e.hi, k), ldexp(e.lo, k));
    if (x <= 0.0)
        return l.hi + l.lo;
    struct twin sum = two_sum(x, l.hi);
    return sum.hi + (sum.lo + l.lo);
}

double det_silu(double x)
{
    if (x > FLAT || x != x)
        return x;
    if (x < -FLAT) {
        if (x < EXP_VANISH - 10.0) /* |x| exp(x) is below half the smallest subnormal */
            return -0.0;
        int k;
        struct twin e = exp_twin(x, &k);
        struct twin p = two_product(x, e.hi);
        return ldexp(p.hi + (p.lo + x * e.lo), k);
    }
    struct twin s = sigmoid_twin(x);
    struct twin p = two_product(x, s.hi);
    return p.hi + (p.lo + x * s.lo);
}
