/*
 * Error bounds: how far a kernel that performs its DECLARED roundings, in any order and in any reduction
 * tree no deeper than declared, may be from the exact value.
 *
 * Every quantity a reference computes is a `struct bounded`: the fp64 value and two radii. Operations
 * propagate both:
 *   worst   adds magnitudes (a bound in the strict sense, second-order terms kept);
 *   likely  adds independent rounding errors in quadrature; it is a standard-deviation-like radius WITHOUT
 *           lambda until bounded_likely() multiplies by it, while errors that cannot be taken as independent
 *           (`fixed`: function approximations, a final rounding) add linearly and are not multiplied.
 * Model: N. Higham and T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci.
 * Comput. 41(5), 2019; gamma_n: N. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., ch. 3.
 */
#ifndef REFERENCE_BOUNDS_H
#define REFERENCE_BOUNDS_H

#include <stddef.h>

#define U_FP32 0x1p-24 /* unit roundoff: half an ulp, round to nearest even */
#define U_BF16 0x1p-8 /* 8 significant bits */
#define U_TF32 0x1p-11 /* 11 significant bits, round to nearest; truncating hardware: 2^-10 */
#define TINY_FP32 0x1p-150 /* half the smallest subnormal: absolute rounding error below the normal range */
#define TINY_BF16 0x1p-134
#define FTZ_FP32 0x1p-126  /* when a kernel may flush subnormals to zero */

struct bounded {
    double value;
    double worst;  /* >= |computed - value| always */
    double spread; /* quadrature part of the likely radius, before lambda */
    double fixed;  /* linear part of the likely radius */
};

/* A unit-roundoff format with its absolute floor. */
struct format {
    double u, tiny;
};
extern const struct format format_fp32, format_bf16;

/* gamma_n = n u / (1 - n u); infinite when n u >= 1. */
double gamma_n(double n, double u);

/* The factor lambda so that the probability that ANY of `values` independent deviations exceeds lambda
   spreads is at most `alarm`: sqrt(2 ln(2 values / alarm)), from 2 exp(-lambda^2/2) per value. */
double bounds_lambda(double values, double alarm);
#define BOUNDS_ALARM 1e-9 /* stated false-alarm probability per verdict */

struct bounded exactly(double value);                                   /* an operand: no error */
struct bounded rounded(struct bounded x, struct format f);              /* one rounding into f */
struct bounded plus(struct bounded a, struct bounded b, struct format f);  /* a + b, rounded */
struct bounded minus(struct bounded a, struct bounded b, struct format f);
struct bounded times(struct bounded a, struct bounded b, struct format f); /* a * b, rounded */
/* exp(x) by a function with `ulps` maximum error (CUDA Programming Guide, "Mathematical Functions": expf 2 ulp). */
struct bounded exp_of(struct bounded x, double ulps, struct format f);
struct bounded sigmoid_of(struct bounded x, double exp_ulps, struct format f);
struct bounded rsqrt_of(struct bounded x, double ulps, struct format f); /* rsqrtf 2 ulp */
struct bounded divide(struct bounded a, struct bounded b, double ulps, struct format f);

/* sum_i a_i b_i of n exact or bounded operands with a reduction no deeper than `depth` additions per term
   (n for a chain), multiply-adds fused or not. Arrays may alias. */
struct bounded dot(const struct bounded *a, size_t a_stride, const struct bounded *b, size_t b_stride,
                   size_t n, double depth, struct format f);

/* The two radii for a verdict; likely never exceeds worst. */
double bounded_likely(struct bounded x, double lambda);

#endif
