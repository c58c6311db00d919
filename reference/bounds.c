/*
 * The likely radius rests on Hoeffding's inequality: for independent, mean-zero errors with |e_i|
 * <= c_i, P(|sum e_i| > lambda sqrt(sum c_i^2)) <= 2 exp(-lambda^2/2). A sum in floating point
 * errs by the sum over its additions of delta * (partial sum), every partial sum is at most S =
 * sum |t_i|, and each level of a reduction tree has partial sums whose squares add up to at most
 * S^2: `depth` levels and the products' own roundings make a spread of sqrt(depth + 1) u S,
 * whatever the order.
 */
#include "reference/bounds.h"

#include "reference/detmath.h"

/* Largest finite values: (2 - 2^-23) 2^127, (2 - 2^-7) 2^127, (2 - 2^-10) 2^127. */
const struct format format_fp32 = {U_FP32, TINY_FP32, 0x1.fffffep127};
const struct format format_fp32_ftz = {U_FP32, FTZ_FP32, 0x1.fffffep127};
const struct format format_bf16 = {U_BF16, TINY_BF16, 0x1.fep127};
const struct format format_tf32 = {U_TF32, 0x1p-137, 0x1.ffcp127};

/* Above it, the reference's own fp64 sums are given their worst case too: n additions, n
   products. */
#define U_FP64 0x1p-53

double gamma_n(double n, double u)
{
    double nu = n * u;
    return nu < 1.0 ? nu / (1.0 - nu) : HUGE_VAL;
}

double bounds_lambda(double values, double alarm)
{
    return sqrt(2.0 * det_log(2.0 * values / alarm));
}

double bounded_radius(struct bounded x)
{
    double likely = BOUNDS_LAMBDA_MAX * x.spread + x.fixed;
    return likely < x.worst ? likely : x.worst;
}

double bounded_likely(struct bounded x, double lambda)
{
    double likely = lambda * x.spread + x.fixed;
    return likely < x.worst ? likely : x.worst;
}

static double quadrature(double a, double b)
{
    return sqrt(a * a + b * b);
}

/* Anything that is not a finite bound is an infinite one. */
static struct bounded checked(struct bounded x)
{
    if (!(x.worst < HUGE_VAL) || !(x.spread < HUGE_VAL) || !(x.fixed < HUGE_VAL))
        x.worst = x.spread = x.fixed = HUGE_VAL;
    return x;
}

/* x plus the error of one intermediate rounding of its computed value. */
static struct bounded step(struct bounded x, struct format f)
{
    x.spread = quadrature(x.spread, rounding_error(fabs(x.value) + bounded_radius(x), f));
    x.worst += rounding_error(fabs(x.value) + x.worst, f);
    return checked(x);
}

/* x computed by a function with a relative error: linear, since such errors are systematic.
   `floor` is its absolute error where the result is subnormal. */
static struct bounded approximated(struct bounded x, double relative, double floor, struct format f)
{
    x.fixed += relative * (fabs(x.value) + bounded_radius(x)) + floor;
    x.worst += relative * (fabs(x.value) + x.worst) + floor;
    if (!(fabs(x.value) + x.worst <= (f.max > 0.0 ? f.max : DBL_MAX)))
        x.worst = HUGE_VAL;
    return checked(x);
}

struct bounded exactly(double value)
{
    return (struct bounded){.value = value};
}

struct bounded rounded(struct bounded x, struct format f)
{
    x.fixed += rounding_error(fabs(x.value) + bounded_radius(x), f);
    x.worst += rounding_error(fabs(x.value) + x.worst, f);
    return checked(x);
}

/* a + b without a rounding. */
static struct bounded exact_sum(struct bounded a, struct bounded b)
{
    return (struct bounded){
        .value = a.value + b.value,
        .worst = a.worst + b.worst,
        .spread = quadrature(a.spread, b.spread),
        .fixed = a.fixed + b.fixed,
    };
}

/* a * b without a rounding: errors a db + b da + da db, the last one as large as it is likely to
   be. */
static struct bounded exact_product(struct bounded a, struct bounded b)
{
    double x = fabs(a.value);
    double y = fabs(b.value);
    return (struct bounded){
        .value = a.value * b.value,
        .worst = x * b.worst + y * a.worst + a.worst * b.worst,
        .spread = quadrature(x * b.spread, y * a.spread),
        .fixed = x * b.fixed + y * a.fixed + bounded_radius(a) * bounded_radius(b),
    };
}

static struct bounded negated(struct bounded a)
{
    a.value = -a.value;
    return a;
}

struct bounded plus(struct bounded a, struct bounded b, struct format f)
{
    return step(exact_sum(a, b), f);
}

struct bounded minus(struct bounded a, struct bounded b, struct format f)
{
    return step(exact_sum(a, negated(b)), f);
}

struct bounded times(struct bounded a, struct bounded b, struct format f)
{
    return step(exact_product(a, b), f);
}

/* Fused, the product's rounding is missing: the bound of the separate form covers both. */
struct bounded times_plus(struct bounded a, struct bounded b, struct bounded c, struct format f)
{
    return plus(times(a, b, f), c, f);
}

/*
 * A smooth function's value y and derivative bound: |f(x+d) - f(x)| <= reach(|d|) for every |d| <
 * worst, slope = |f'(x)|. The likely radius takes the slope for the spread and, linearly, what
 * the curvature adds within the likely radius.
 */
static struct bounded through(struct bounded x, double y, double slope,
                              double (*reach)(double, double), double at)
{
    double r = bounded_radius(x);
    double bend = r > 0.0 ? reach(at, r) - slope * r : 0.0;
    return (struct bounded){
        .value = y,
        .worst = x.worst > 0.0 ? reach(at, x.worst) : 0.0,
        .spread = slope * x.spread,
        .fixed = slope * x.fixed + (bend > 0.0 ? bend : 0.0),
    };
}

/* The relative error of `ulps` units in the last place: one ulp is at most 2u of the value. */
static double relative_ulps(double ulps, struct format f)
{
    return 2.0 * f.u * ulps * FP64_SLACK;
}

/* exp(x+d) - exp(x) is largest for d > 0; `at` is exp(x). */
static double exp_reach(double at, double d)
{
    return at * det_expm1(d);
}

struct bounded exp_of(struct bounded x, double ulps, struct format f)
{
    double y = det_exp(x.value);
    return approximated(through(x, y, y, exp_reach, y), relative_ulps(ulps, f), 2.0 * ulps * f.tiny,
                        f);
}

/* sigmoid' = s(1-s) changes by at most a factor exp(|d|); `at` is s(1-s). And no sigmoid leaves
   (0, 1). */
static double sigmoid_reach(double at, double d)
{
    double reach = at * det_expm1(d);
    return reach < 1.0 ? reach : 1.0;
}

struct bounded sigmoid_of(struct bounded x, double exp_ulps, struct format f)
{
    double s = det_sigmoid(x.value);
    double complement = det_sigmoid(-x.value);
    struct bounded y = through(x, s, s * complement, sigmoid_reach, s * complement);
    /* exp's relative error acts like an error of x; then a sum and a quotient, each rounded. */
    double relative = (1.0 + relative_ulps(exp_ulps, f)) / ((1.0 - f.u) * (1.0 - f.u)) - 1.0;
    double of_exp = relative_ulps(exp_ulps, f) * complement;
    relative = relative - relative_ulps(exp_ulps, f) + of_exp;
    /* exp(-x) overflows where s is below 1/max: the result may be 0. */
    double lost = f.max > 0.0 && s < 2.0 / f.max ? s : 0.0;
    return approximated(y, relative, lost + 2.0 * (exp_ulps + 1.0) * f.tiny, f);
}

/* 1/sqrt(x-d) - 1/sqrt(x), the larger side; infinite at the pole. */
static double rsqrt_reach(double at, double d)
{
    return d < at ? 1.0 / sqrt(at - d) - 1.0 / sqrt(at) : HUGE_VAL;
}

struct bounded rsqrt_of(struct bounded x, double ulps, struct format f)
{
    if (!(x.value > 0.0))
        return (struct bounded){1.0 / sqrt(x.value), HUGE_VAL, HUGE_VAL, HUGE_VAL};
    double y = 1.0 / sqrt(x.value);
    struct bounded b = through(x, y, 0.5 * y / x.value, rsqrt_reach, x.value);
    return approximated(b, relative_ulps(ulps, f), 2.0 * ulps * f.tiny, f);
}

/* sqrt(x) - sqrt(x-d), the larger side; below zero the computed root is NaN. */
static double sqrt_reach(double at, double d)
{
    return d <= at ? d / (sqrt(at) + sqrt(at - d)) : HUGE_VAL;
}

struct bounded sqrt_of(struct bounded x, double ulps, struct format f)
{
    double y = sqrt(x.value);
    double slope = y > 0.0 ? 0.5 / y : 0.0;
    struct bounded b = through(x, y, slope, sqrt_reach, x.value);
    return approximated(b, relative_ulps(ulps, f), 2.0 * ulps * f.tiny, f);
}

/* (a+da)/(b+db) - a/b = (da - (a/b) db) / (b+db). */
struct bounded divide(struct bounded a, struct bounded b, double ulps, struct format f)
{
    double q = a.value / b.value;
    double den = fabs(b.value) - b.worst;
    double likely_den = fabs(b.value) - bounded_radius(b);
    if (!(den > 0.0))
        return (struct bounded){q, HUGE_VAL, HUGE_VAL, HUGE_VAL};
    struct bounded y = {
        .value = q,
        .worst = (a.worst + fabs(q) * b.worst) / den,
        .spread = quadrature(a.spread, fabs(q) * b.spread) / likely_den,
        .fixed = (a.fixed + fabs(q) * b.fixed) / likely_den,
    };
    return approximated(y, relative_ulps(ulps, f), 2.0 * ulps * f.tiny, f);
}

/* A sum of n terms whose magnitudes add up to `magnitude` (errors included) in a tree of `depth`,
   each term made by `products` roundings (0 or 1) first; y holds the value and the operands' own
   errors. */
static struct bounded reduced(struct bounded y, double magnitude, double likely_magnitude, size_t n,
                              double depth, double products, struct format f)
{
    double floor = products * (double)n * f.tiny + 2.0 * (double)n * U_FP64 * magnitude;
    y.worst += gamma_n(depth + products, f.u) * magnitude + floor;
    y.spread = quadrature(y.spread, sqrt(depth + products) * f.u * likely_magnitude);
    y.fixed += floor;
    if (!(magnitude + y.worst <= (f.max > 0.0 ? f.max : DBL_MAX)))
        y.worst = HUGE_VAL;
    return checked(y);
}

struct bounded dot(const struct bounded *a, size_t a_stride, const struct bounded *b,
                   size_t b_stride, size_t n, double depth, struct format f)
{
    struct bounded y = exactly(0.0);
    double squares = 0.0;
    double magnitude = 0.0;
    double likely_magnitude = 0.0;
    for (size_t i = 0; i < n; i++) {
        struct bounded t = exact_product(a[i * a_stride], b[i * b_stride]);
        y.value += t.value;
        y.worst += t.worst;
        y.fixed += t.fixed;
        squares += t.spread * t.spread;
        magnitude += fabs(t.value) + t.worst;
        likely_magnitude += fabs(t.value) + bounded_radius(t);
    }
    y.spread = sqrt(squares);
    return reduced(y, magnitude, likely_magnitude, n, depth, 1.0, f);
}

struct bounded dot_of_exact(const double *a, size_t a_stride, const double *b, size_t b_stride,
                            size_t n, double depth, struct format f)
{
    struct bounded y = exactly(0.0);
    double magnitude = 0.0;
    for (size_t i = 0; i < n; i++) {
        double t = a[i * a_stride] * b[i * b_stride];
        y.value += t;
        magnitude += fabs(t);
    }
    return reduced(y, magnitude, magnitude, n, depth, 1.0, f);
}

struct bounded sum_of(const struct bounded *a, size_t stride, size_t n, double depth,
                      struct format f)
{
    struct bounded y = exactly(0.0);
    double squares = 0.0;
    double magnitude = 0.0;
    double likely_magnitude = 0.0;
    for (size_t i = 0; i < n; i++) {
        const struct bounded *t = &a[i * stride];
        y.value += t->value;
        y.worst += t->worst;
        y.fixed += t->fixed;
        squares += t->spread * t->spread;
        magnitude += fabs(t->value) + t->worst;
        likely_magnitude += fabs(t->value) + bounded_radius(*t);
    }
    y.spread = sqrt(squares);
    return reduced(y, magnitude, likely_magnitude, n, depth, 0.0, f);
}
