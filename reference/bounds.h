/*
 * Error bounds: how far a kernel that performs its DECLARED roundings, in any order and in any
 * reduction tree no deeper than declared, may be from the exact value.
 *
 * Every quantity a reference computes is a `struct bounded`: the fp64 value and two radii.
 * Operations propagate both:
 *
 *   worst   adds magnitudes (a bound in the strict sense, second-order terms kept);
 *   likely  adds independent rounding errors in quadrature; it is a standard-deviation-like radius
 *           WITHOUT lambda until bounded_likely() multiplies by it, while errors that cannot be
 *           taken as independent (`fixed`: function approximations, a final rounding, underflow)
 *           add linearly and are not multiplied.
 *
 * Operands of one operation are taken to have independent errors. Where they share one (x*x, a
 * value used twice) worst stays a bound and likely may be short by the square root of the number
 * of uses: a reference whose recurrence reuses values must follow the signed sensitivities
 * itself.
 *
 * An overflow of the format, a pole inside the interval or a lost bound makes both radii infinite,
 * which a judge must not take for a pass. Intermediate results may be fused into multiply-adds or
 * not.
 *
 * Model: N. Higham and T. Mary, "A new approach to probabilistic rounding error analysis", SIAM
 * J. Sci. Comput. 41(5), 2019; gamma_n: N. Higham, "Accuracy and Stability of Numerical
 * Algorithms", 2nd ed., ch. 3.
 */
#ifndef REFERENCE_BOUNDS_H
#define REFERENCE_BOUNDS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Unit roundoffs: half an ulp of 1, round to nearest even, for 24, 8 and 11 significant bits. */
#define U_FP32 0x1p-24
#define U_BF16 0x1p-8
#define U_TF32 0x1p-11 /* hardware that truncates its operands: 2^-10 */
/* Half the smallest subnormal: the absolute rounding error below the normal range. */
#define TINY_FP32 0x1p-150
#define TINY_BF16 0x1p-134
#define FTZ_FP32  0x1p-126 /* instead, when a kernel may flush subnormals to zero */

struct bounded {
    double value;
    double worst;  /* >= |computed - value| always */
    double spread; /* quadrature part of the likely radius, before lambda */
    double fixed;  /* linear part of the likely radius */
};

/* A unit-roundoff format with its absolute floor and its largest finite value (0: no limit). */
struct format {
    double u, tiny, max;
};
extern const struct format format_fp32, format_fp32_ftz, format_bf16, format_tf32;

/* gamma_n = n u / (1 - n u); infinite when n u >= 1. */
double gamma_n(double n, double u);

/* The factor lambda so that the probability that ANY of `values` independent deviations exceeds
   lambda spreads is at most `alarm`: sqrt(2 ln(2 values / alarm)), from 2 exp(-lambda^2/2) per
   value. */
double bounds_lambda(double values, double alarm);
#define BOUNDS_ALARM 1e-9 /* stated false-alarm probability per verdict */

struct bounded exactly(double value); /* an operand: no error */

/* One last rounding into f (a store): linear in the likely radius, half an ulp of x's binade. */
struct bounded rounded(struct bounded x, struct format f);

struct bounded plus(struct bounded a, struct bounded b, struct format f);  /* a + b, rounded */
struct bounded minus(struct bounded a, struct bounded b, struct format f); /* a - b, rounded */
struct bounded times(struct bounded a, struct bounded b, struct format f); /* a * b, rounded */
/* a * b + c with one rounding or two. */
struct bounded times_plus(struct bounded a, struct bounded b, struct bounded c, struct format f);

/* exp(x) by a function with `ulps` maximum error (CUDA Programming Guide, "Mathematical Functions":
   expf 2 ulp). */
struct bounded exp_of(struct bounded x, double ulps, struct format f);
/* 1/(1+exp(-x)) or exp(x)/(1+exp(x)); exp has `exp_ulps`, the sum and the quotient are rounded. */
struct bounded sigmoid_of(struct bounded x, double exp_ulps, struct format f);
struct bounded rsqrt_of(struct bounded x, double ulps, struct format f); /* rsqrtf 2 ulp */
struct bounded sqrt_of(struct bounded x, double ulps, struct format f);  /* sqrtf 0.5 ulp (IEEE) */
/* a / b; 0.5 ulp for the IEEE quotient, 2 for __fdividef. */
struct bounded divide(struct bounded a, struct bounded b, double ulps, struct format f);

/* sum_i a_i b_i of n exact or bounded operands with a reduction no deeper than `depth` additions
   per term (n for a chain), multiply-adds fused or not. Arrays may alias; strides in elements. */
struct bounded dot(const struct bounded *a, size_t a_stride, const struct bounded *b,
                   size_t b_stride, size_t n, double depth, struct format f);
/* The same for operands without error: what a GEMM over stored values needs, and much faster. */
struct bounded dot_of_exact(const double *a, size_t a_stride, const double *b, size_t b_stride,
                            size_t n, double depth, struct format f);
/* sum_i a_i likewise. */
struct bounded sum_of(const struct bounded *a, size_t stride, size_t n, double depth,
                      struct format f);

/* The references round too, in fp64: per operation at most 2^-53 of the value, which is below 2^-27
   of any rounding error of fp32 (2^-25 of the value at least). Bounds widen by this factor. */
#define FP64_SLACK (1.0 + 0x1p-26)

/* Half the distance between neighbours of f in the binade of `magnitude`: no rounding of a value
   up to there errs more. Infinite when the magnitude is past f.max or NaN. */
static inline double rounding_error(double magnitude, struct format f)
{
    /* Clearing a double's significand leaves the power of two that starts its binade. */
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof(bits));
    bits &= 0x7ff0000000000000u;
    double binade;
    memcpy(&binade, &bits, sizeof(binade));
    double half_ulp = binade * f.u * FP64_SLACK;
    half_ulp = half_ulp > f.tiny ? half_ulp : f.tiny;
    return magnitude <= (f.max > 0.0 ? f.max : DBL_MAX) ? half_ulp : HUGE_VAL;
}

/* What to expect of |error| in second-order terms: worst, or BOUNDS_LAMBDA_MAX * spread + fixed. */
double bounded_radius(struct bounded x);
#define BOUNDS_LAMBDA_MAX 16.0 /* no lambda is larger: 2 exp(-16^2/2) is below 1e-55 per value */

/* The two radii for a verdict; likely never exceeds worst. */
double bounded_likely(struct bounded x, double lambda);

#endif
