/* Scalar operations in fp32 and bf16 against their bounds: rounding, products, exp, sigmoid,
   roots. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/bounds.h"

#define TRIALS 20000

static uint64_t seed = 7;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-53;
}

static float between(double low, double high)
{
    return (float)(low + (high - low) * uniform());
}

static float bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* An operand with an error: the exact value is `value`, the computed one `seen`, both within e. */
struct operand {
    struct bounded e;
    float seen;
};

static struct operand perturbed(float x, double relative)
{
    struct operand o;
    double size = relative * fabs((double)x);
    o.seen = (float)((double)x + 0.99 * size * (2.0 * uniform() - 1.0));
    size = fmax(size, fabs((double)o.seen - (double)x)); /* the rounding to float moves it too */
    o.e = (struct bounded){(double)x, size, 0.0, size};
    return o;
}

struct tally {
    double worst, likely;
};

static void check(struct tally *t, float got, struct bounded e)
{
    double lambda = bounds_lambda(TRIALS, BOUNDS_ALARM);
    double err = fabs((double)got - e.value);
    assert_true(err <= e.worst);
    assert_true(err <= bounded_likely(e, lambda));
    if (e.worst > 0.0)
        t->worst = fmax(t->worst, err / e.worst);
    t->likely = fmax(t->likely, bounded_likely(e, lambda));
}

static void test_rounding_error(void **state)
{
    (void)state;
    assert_true(rounding_error(1.0, format_fp32) == 0x1p-24 * FP64_SLACK);
    assert_true(rounding_error(1.999, format_fp32) == 0x1p-24 * FP64_SLACK);
    assert_true(rounding_error(2.0, format_fp32) == 0x1p-23 * FP64_SLACK);
    assert_true(rounding_error(1.5, format_bf16) == 0x1p-8 * FP64_SLACK);
    assert_true(rounding_error(0.0, format_fp32) == TINY_FP32);
    assert_true(rounding_error(0x1p-140, format_fp32) == TINY_FP32);
    assert_true(rounding_error(0x1p-140, format_fp32_ftz) == FTZ_FP32);
    assert_true(isinf(rounding_error(3.5e38, format_fp32)));
    assert_true(isinf(rounding_error((double)NAN, format_fp32)));
    assert_true(isinf(rounding_error(HUGE_VAL, format_fp32)));
}

static void test_lambda_matches_its_formula(void **state)
{
    (void)state;
    double lambda = bounds_lambda(1e6, 1e-9);
    assert_true(fabs(2.0 * exp(-lambda * lambda / 2.0) * 1e6 - 1e-9) < 1e-15);
    assert_true(bounds_lambda(1e15, BOUNDS_ALARM) < BOUNDS_LAMBDA_MAX);
}

static void test_rounding_to_bf16(void **state)
{
    (void)state;
    struct tally t = {0};
    for (int i = 0; i < TRIALS; i++) {
        float x = ldexpf(between(-2.0, 2.0), (int)(280.0 * uniform()) - 155);
        if (fabsf(x) < 3e38f)
            check(&t, bf16(x), rounded(exactly((double)x), format_bf16));
    }
    assert_true(t.worst > 0.99);
}

static void test_arithmetic(void **state)
{
    (void)state;
    struct tally t = {0};
    for (int i = 0; i < TRIALS; i++) {
        double relative = i % 3 ? 1e-6 : 0.0;
        struct operand a = perturbed(between(-3.0, 3.0), relative);
        struct operand b = perturbed(between(-3.0, 3.0), relative);
        struct operand c = perturbed(between(-0.1, 0.1), relative);
        check(&t, a.seen + b.seen, plus(a.e, b.e, format_fp32));
        check(&t, a.seen - b.seen, minus(a.e, b.e, format_fp32));
        check(&t, a.seen * b.seen, times(a.e, b.e, format_fp32));
        check(&t, a.seen * c.seen + b.seen, times_plus(a.e, c.e, b.e, format_fp32));
        check(&t, fmaf(a.seen, c.seen, b.seen), times_plus(a.e, c.e, b.e, format_fp32));
        if (fabsf(b.seen) > 0.01f)
            check(&t, a.seen / b.seen, divide(a.e, b.e, 0.5, format_fp32));
    }
    print_message("arithmetic: max error/worst %.3f\n", t.worst);
    assert_true(t.worst > 0.5);
}

/* libm's float functions are within 1 ulp: a bound for 2 ulp must hold and not be wide. */
static void test_functions(void **state)
{
    (void)state;
    struct tally t = {0};
    for (int i = 0; i < TRIALS; i++) {
        double relative = i % 3 ? 1e-6 : 0.0;
        struct operand x = perturbed(between(-110.0, 85.0), relative);
        check(&t, expf(x.seen), exp_of(x.e, 2.0, format_fp32));
        struct operand y = perturbed(between(-120.0, 120.0), relative);
        check(&t, 1.0f / (1.0f + expf(-y.seen)), sigmoid_of(y.e, 2.0, format_fp32));
        struct operand z =
            perturbed(ldexpf(between(0.5, 1.0), (int)(60.0 * uniform()) - 30), relative);
        check(&t, 1.0f / sqrtf(z.seen), rsqrt_of(z.e, 2.0, format_fp32));
        check(&t, sqrtf(z.seen), sqrt_of(z.e, 0.5, format_fp32));
    }
    print_message("functions: max error/worst %.3f\n", t.worst);
    assert_true(t.worst > 0.3);
}

/* Wide errors: the curvature matters, first order alone would be too small. */
static void test_second_order_terms(void **state)
{
    (void)state;
    struct bounded wide = {0.5, 1.0, 0.0, 1.0};
    for (double d = -1.0; d <= 1.0; d += 0.125) {
        double x = 0.5 + d;
        assert_true(fabs(exp(x) - exp(0.5)) <= exp_of(wide, 0.0, format_fp32).worst);
        assert_true(fabs(exp(x) - exp(0.5)) <= bounded_likely(exp_of(wide, 0.0, format_fp32), 1.0));
        double s = 1.0 / (1.0 + exp(-x)) - 1.0 / (1.0 + exp(-0.5));
        assert_true(fabs(s) <= sigmoid_of(wide, 0.0, format_fp32).worst);
        struct bounded product = times(wide, wide, format_fp32);
        assert_true(fabs(x * x - 0.25) <= product.worst);
        assert_true(fabs(x * x - 0.25) <= bounded_likely(product, 1.0));
    }
    struct bounded positive = {1.0, 0.75, 0.0, 0.75};
    for (double d = -0.75; d <= 0.75; d += 0.125) {
        double x = 1.0 + d;
        assert_true(fabs(1.0 / sqrt(x) - 1.0) <= rsqrt_of(positive, 0.0, format_fp32).worst);
        assert_true(fabs(sqrt(x) - 1.0) <= sqrt_of(positive, 0.0, format_fp32).worst);
        assert_true(fabs(2.0 / x - 2.0) <= divide(exactly(2.0), positive, 0.0, format_fp32).worst);
        assert_true(fabs(2.0 / x - 2.0) <=
                    bounded_likely(divide(exactly(2.0), positive, 0.0, format_fp32), 1.0));
    }
}

static void test_lost_bounds_are_infinite(void **state)
{
    (void)state;
    struct bounded around_zero = {0.1, 0.2, 0.1, 0.1};
    assert_true(isinf(rsqrt_of(around_zero, 2.0, format_fp32).worst));
    assert_true(isinf(sqrt_of(around_zero, 0.5, format_fp32).worst));
    assert_true(isinf(divide(exactly(1.0), around_zero, 0.5, format_fp32).worst));
    assert_true(isinf(exp_of(exactly(89.0), 2.0, format_fp32).worst));
    assert_true(isinf(times(exactly(1e30), exactly(1e30), format_fp32).worst));
    struct bounded lost = times(exactly(1e30), exactly(1e30), format_fp32);
    assert_true(isinf(times(lost, exactly(0.0), format_fp32).worst));
    assert_true(isinf(bounded_likely(lost, 5.0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding_error),
        cmocka_unit_test(test_lambda_matches_its_formula),
        cmocka_unit_test(test_rounding_to_bf16),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_second_order_terms),
        cmocka_unit_test(test_lost_bounds_are_infinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
