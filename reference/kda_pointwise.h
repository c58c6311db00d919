/*
 * The row-wise and elementwise steps of a KDA block, in fp64 with the bounds of an fp32 kernel.
 *
 * Declared computation: fp32 throughout, multiply-adds fused or not, sums in any tree no deeper
 * than their length; exp(x) within kda_exp_ulps(x), division, square root and reciprocal square
 * root within 2 ulp each (CUDA C++ Programming Guide, "Mathematical Functions": the defaults are
 * closer, -prec-div=false is 2 ulp). A bf16 result is rounded once at the end. Results are given
 * BEFORE that rounding; see rounded() of bounds.h.
 */
#ifndef REFERENCE_KDA_POINTWISE_H
#define REFERENCE_KDA_POINTWISE_H

#include <math.h>
#include <stddef.h>

#include "reference/bounds.h"

#define KDA_DIV_ULPS 2.0

/* exp(-104) is below half of the smallest subnormal number: from there on it is 0, or infinity. */
#define KDA_EXP_FARTHEST 104.0

/* What exp(x) may err by: expf has 2 ulp, __expf 2 + floor(|1.173 x|) (CUDA C++ Programming Guide,
   "Mathematical Functions"), and exp2f(x log2(e)) less: its argument is a product and a constant,
   each rounded, |x| u together twice, so 2 + |x| ulp. */
static inline double kda_exp_ulps(double x)
{
    double size = fabs(x);

    /* The conversion is the floor: neither negative nor large. */
    return 2.0 + (double)(int)(1.173 * (size < KDA_EXP_FARTHEST ? size : KDA_EXP_FARTHEST));
}

/* The same as a relative error: an ulp is at most 2u of a value. */
static inline double kda_exp_error(double x)
{
    return 2.0 * U_FP32 * kda_exp_ulps(x);
}

/* 1 / (1 + exp(-x)). */
struct bounded kda_sigmoid(struct bounded x);

/* x * sigmoid(x), or x / (1 + exp(-x)). */
struct bounded kda_silu(struct bounded x);

/* x[i] / sqrt(sum x^2 + eps), in place. */
void kda_l2_norm(struct bounded *x, size_t n, float eps);

/* The log decay lower_bound * sigmoid(exp(a_log) * (g_raw + dt_bias)). */
struct bounded kda_gate_value(float g_raw, float dt_bias, float a_log, float lower_bound);

/* out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i] * sigmoid(gate[i]); `scratch` holds n
   values. */
void kda_o_norm_row(const float *x, const float *gate, const float *weight, size_t n, float eps,
                    struct bounded *scratch, struct bounded *out);

#endif
