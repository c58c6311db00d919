/* fp64 values and bounds of the steps between the projections and the recurrence. */
#include "reference/kda_pointwise.h"

#include <math.h>

/* 1/sqrt as a root within 1 ulp and a division within 2, or as rsqrtf (2 ulp) alone. */
#define ROOT_ULPS 3.0

/* One ulp is at most 2u of a value. */
#define DIV_RELATIVE (2.0 * U_FP32 * KDA_DIV_ULPS)

/*
 * sigmoid_of() rounds its quotient to nearest; the declared division may err by 2 ulp. Flushing to
 * zero is allowed for: __fdividef returns 0 for a divisor beyond 2^126, where the quotient is
 * below 2^-126.
 */
struct bounded kda_sigmoid(struct bounded x)
{
    double ulps = kda_exp_ulps(fabs(x.value) + bounded_radius(x));
    struct bounded s = sigmoid_of(x, ulps, format_fp32_ftz);

    s.fixed += DIV_RELATIVE * (fabs(s.value) + bounded_radius(s));
    s.worst += DIV_RELATIVE * (fabs(s.value) + s.worst);
    return s;
}

/* The quotient x / (1 + exp(-x)) has the sigmoid's errors and lacks the product's rounding. */
struct bounded kda_silu(struct bounded x)
{
    return times(x, kda_sigmoid(x), format_fp32);
}

/*
 * 1 / sqrt(sum of squares / count + eps). Both factors of a square carry the SAME error, 2 x dx
 * and not the sqrt(2) x dx of independent ones, so the operands' part of the spread grows by
 * sqrt(2).
 */
static struct bounded inverse_root(const struct bounded *x, size_t n, double count, float eps)
{
    struct bounded sum = dot(x, 1, x, 1, n, (double)n, format_fp32);

    sum.spread *= sqrt(2.0);
    if (count > 1)
        sum = divide(sum, exactly(count), KDA_DIV_ULPS, format_fp32);
    return rsqrt_of(plus(sum, exactly((double)eps), format_fp32), ROOT_ULPS, format_fp32);
}

void kda_l2_norm(struct bounded *x, size_t n, float eps)
{
    struct bounded inverse = inverse_root(x, n, 1, eps);

    for (size_t i = 0; i < n; i++)
        x[i] = times(x[i], inverse, format_fp32);
}

struct bounded kda_gate_value(float g_raw, float dt_bias, float a_log, float lower_bound)
{
    struct bounded rate = exp_of(exactly((double)a_log), kda_exp_ulps((double)a_log), format_fp32);
    struct bounded shifted = plus(exactly((double)g_raw), exactly((double)dt_bias), format_fp32);
    struct bounded weight = kda_sigmoid(times(rate, shifted, format_fp32));

    return times(exactly((double)lower_bound), weight, format_fp32);
}

void kda_o_norm_row(const float *x, const float *gate, const float *weight, size_t n, float eps,
                    struct bounded *scratch, struct bounded *out)
{
    struct bounded inverse;

    for (size_t i = 0; i < n; i++)
        scratch[i] = exactly((double)x[i]);
    inverse = inverse_root(scratch, n, (double)n, eps);
    for (size_t i = 0; i < n; i++) {
        struct bounded normal = times(scratch[i], inverse, format_fp32);
        struct bounded scaled = times(normal, exactly((double)weight[i]), format_fp32);

        out[i] = times(scaled, kda_sigmoid(exactly((double)gate[i])), format_fp32);
    }
}
