/*
 * fp32 models in plain C of the kernels between the projections and the recurrence: right ones,
 * which no bound may call wrong, and wrong ones, which every bound must.
 */
#ifndef TESTS_KDA_STEP_MODELS_H
#define TESTS_KDA_STEP_MODELS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"
#include "problem/dtype.h"
#include "reference/bounds.h"
#include "reference/detmath.h"

/* How a right kernel may do its arithmetic. */
struct arithmetic {
    enum { SUM_CHAIN, SUM_REVERSE, SUM_PAIRS } sum;
    bool fused;      /* multiply-adds with one rounding */
    bool reciprocal; /* x * rsqrtf(y), x * (1 / y) instead of the quotients */
    int ulps;        /* functions off by this many ulps: -2..2 as declared */
};

static inline float off_by(float x, int ulps)
{
    for (; ulps > 0; ulps--)
        x = nextafterf(x, HUGE_VALF);
    for (; ulps < 0; ulps++)
        x = nextafterf(x, -HUGE_VALF);
    return x;
}

static inline float model_exp(struct arithmetic m, float x)
{
    float y = (float)det_exp((double)x);

    return isfinite(y) && y > 0 ? off_by(y, m.ulps) : y;
}

static inline float model_quotient(struct arithmetic m, float a, float b)
{
    float q = m.reciprocal ? a * (1.0f / b) : a / b;

    return isfinite(q) && q != 0 && !m.reciprocal ? off_by(q, m.ulps) : q;
}

static inline float model_sigmoid(struct arithmetic m, float x)
{
    return model_quotient(m, 1.0f, 1.0f + model_exp(m, -x));
}

static inline float model_silu(struct arithmetic m, float x)
{
    if (m.reciprocal)
        return x * model_sigmoid(m, x);
    return model_quotient(m, x, 1.0f + model_exp(m, -x));
}

static inline float model_over_root(struct arithmetic m, float x, float square)
{
    if (m.reciprocal)
        return x * off_by((float)(1.0 / sqrt((double)square)), m.ulps);
    return model_quotient(m, x, sqrtf(square));
}

static inline float multiply_add(struct arithmetic m, float a, float b, float c)
{
    return m.fused ? fmaf(a, b, c) : a * b + c;
}

/* sum a[i] b[i]. */
static inline float model_dot(struct arithmetic m, const float *a, const float *b, size_t n)
{
    float sum = 0.0f;

    if (m.sum == SUM_PAIRS && n > 2)
        return model_dot(m, a, b, n / 2) + model_dot(m, a + n / 2, b + n / 2, n - n / 2);
    for (size_t i = 0; i < n; i++) {
        size_t at = m.sum == SUM_REVERSE ? n - 1 - i : i;

        sum = multiply_add(m, a[at], b[at], sum);
    }
    return sum;
}

static inline float to_bf16(float x)
{
    return bf16_to_float(bf16_from_float(x));
}

/* Every combination of a right kernel's choices; false at the end. */
static inline bool arithmetic_next(struct arithmetic *m, unsigned *step)
{
    static const int ulps[] = {0, 2, -2};
    unsigned i = (*step)++;

    *m = (struct arithmetic){.sum = i % 3, .fused = i / 3 % 2, .reciprocal = i / 6 % 2};
    m->ulps = ulps[i / 12 % 3];
    return i < 36;
}

/* How far a computed value is, in units of the bound that judges it. */
static inline double error_ratio(float computed, struct bounded b, double lambda)
{
    double error = fabs((double)computed - b.value), bound = bounded_likely(b, lambda);

    if (error == 0)
        return 0;
    return error <= HUGE_VAL && bound > 0 ? error / bound : HUGE_VAL;
}

#endif
