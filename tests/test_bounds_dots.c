/*
 * Dot products and sums in fp32, in every order a kernel might take: the error never exceeds the
 * bounds, and an accumulator of 8 significant bits exceeds them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/bounds.h"

#define MAX_TERMS 1024
#define TRIALS    400

static uint64_t seed = 1;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-53;
}

static float bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* --- inputs: mild and hostile --------------------------------------------------------------- */

enum input {
    INPUT_RANDOM,
    INPUT_OFFSET,
    INPUT_EQUAL,
    INPUT_CANCEL,
    INPUT_WIDE,
    INPUT_TINY,
    INPUTS
};

static void fill(enum input kind, float *a, float *b, size_t n)
{
    float equal = (float)(0.1 + uniform());
    for (size_t i = 0; i < n; i++) {
        a[i] = (float)(2.0 * uniform() - 1.0);
        b[i] = (float)(2.0 * uniform() - 1.0);
        if (kind == INPUT_OFFSET)
            a[i] += 3.0f;
        if (kind == INPUT_EQUAL) /* every partial sum rounds in a correlated way */
            a[i] = b[i] = equal;
        if (kind == INPUT_CANCEL && i % 2 == 1) {
            a[i] = -a[i - 1];
            b[i] = b[i - 1] * (1.0f + 0x1p-20f);
        }
        if (kind == INPUT_WIDE)
            a[i] = ldexpf(a[i], (int)(40.0 * uniform()) - 20);
        if (kind == INPUT_TINY) { /* products below the normal range */
            a[i] = ldexpf(a[i], -70);
            b[i] = ldexpf(b[i], -70);
        }
    }
}

/* --- reductions -------------------------------------------------------------------------- */

struct plan {
    int fused;  /* multiply-add with one rounding */
    int narrow; /* round every accumulator to bf16: the planted fault */
};

static float accumulate(float sum, float x, float y, struct plan p)
{
    float r;
    if (p.fused) {
        r = fmaf(x, y, sum);
    } else {
        volatile float product = x * y;
        r = sum + product;
    }
    return p.narrow ? bf16(r) : r;
}

static float added(float x, float y, struct plan p)
{
    return p.narrow ? bf16(x + y) : x + y;
}

static float chain(const float *a, const float *b, size_t n, struct plan p)
{
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
        sum = accumulate(sum, a[i], b[i], p);
    return sum;
}

static float backward(const float *a, const float *b, size_t n, struct plan p)
{
    float sum = 0.0f;
    for (size_t i = n; i-- > 0;)
        sum = accumulate(sum, a[i], b[i], p);
    return sum;
}

static float pairwise(const float *a, const float *b, size_t n, struct plan p)
{
    if (n <= 2)
        return chain(a, b, n, p);
    size_t half = n / 2;
    return added(pairwise(a, b, half, p), pairwise(a + half, b + half, n - half, p), p);
}

/* 128 threads take every 128th term, a butterfly in each warp, then the four warps' sums in
   order. */
static float four_warps(const float *a, const float *b, size_t n, struct plan p)
{
    float lane[128];
    for (size_t t = 0; t < 128; t++) {
        lane[t] = 0.0f;
        for (size_t i = t; i < n; i += 128)
            lane[t] = accumulate(lane[t], a[i], b[i], p);
    }
    for (size_t offset = 16; offset > 0; offset /= 2) {
        float old[128];
        memcpy(old, lane, sizeof(old));
        for (size_t t = 0; t < 128; t++)
            lane[t] = added(old[t], old[t ^ offset], p);
    }
    return added(added(lane[0], lane[32], p), added(lane[64], lane[96], p), p);
}

static float (*const reductions[])(const float *, const float *, size_t,
                                   struct plan) = {chain, backward, pairwise, four_warps};

static struct bounded expected(const float *a, const float *b, size_t n)
{
    static double x[MAX_TERMS], y[MAX_TERMS];
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)a[i];
        y[i] = (double)b[i];
    }
    return dot_of_exact(x, 1, y, 1, n, (double)n, format_fp32);
}

/* --- tests ------------------------------------------------------------------------------- */

static void test_any_order_stays_within(void **state)
{
    (void)state;
    static float a[MAX_TERMS], b[MAX_TERMS];
    static const size_t terms[] = {1, 2, 3, 31, 128, 129, 1000};
    double lambda = bounds_lambda(1e4, BOUNDS_ALARM);
    double worst = 0.0;
    double likely = 0.0;
    for (int trial = 0; trial < TRIALS; trial++) {
        for (int kind = 0; kind < INPUTS; kind++) {
            size_t n = terms[trial % 7];
            fill((enum input)kind, a, b, n);
            struct bounded e = expected(a, b, n);
            for (int r = 0; r < 8; r++) {
                float got = reductions[r / 2](a, b, n, (struct plan){.fused = r % 2});
                double err = fabs((double)got - e.value);
                assert_true(err <= e.worst);
                assert_true(err <= bounded_likely(e, lambda));
                worst = fmax(worst, err / e.worst);
                likely = fmax(likely, err / bounded_likely(e, lambda));
            }
        }
    }
    print_message("max error/bound: worst %.3f likely %.3f\n", worst, likely);
    assert_true(worst > 0.01 && likely > 0.01);
}

static void test_bf16_accumulator_exceeds(void **state)
{
    (void)state;
    static float a[MAX_TERMS], b[MAX_TERMS];
    double lambda = bounds_lambda(1e4, BOUNDS_ALARM);
    int caught = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        fill(INPUT_RANDOM, a, b, 128);
        struct bounded e = expected(a, b, 128);
        float got = reductions[trial % 4](a, b, 128, (struct plan){.narrow = 1});
        double err = fabs((double)got - e.value);
        caught += err > e.worst && err > bounded_likely(e, lambda);
    }
    print_message("%d of %d beyond the worst case\n", caught, TRIALS);
    assert_true(caught > TRIALS * 9 / 10);
}

/* Operands that carry errors: the computed ones are perturbed within them. */
static void test_operand_errors_propagate(void **state)
{
    (void)state;
    static float a[MAX_TERMS], b[MAX_TERMS];
    static struct bounded x[MAX_TERMS], y[MAX_TERMS];
    for (int trial = 0; trial < TRIALS; trial++) {
        size_t n = 1 + (size_t)(uniform() * 200.0);
        fill((enum input)(trial % INPUTS), a, b, n);
        double sign = trial % 2 ? 1.0 : -1.0;
        for (size_t i = 0; i < n; i++) {
            double da = 1e-3 * uniform() * fabs((double)a[i]);
            double db = 1e-2 * uniform() * fabs((double)b[i]);
            x[i] = (struct bounded){(double)a[i], da, da / 4.0, 0.0};
            y[i] = (struct bounded){(double)b[i], db, db / 4.0, 0.0};
            /* all errors push the sum the same way, as far as they may */
            a[i] = (float)((double)a[i] + 0.999 * sign * copysign(da, (double)b[i]));
            b[i] = (float)((double)b[i] + 0.999 * sign * copysign(db, x[i].value));
        }
        struct bounded e = dot(x, 1, y, 1, n, (double)n, format_fp32);
        double err = fabs((double)chain(a, b, n, (struct plan){0}) - e.value);
        assert_true(err <= e.worst);
        assert_true(e.spread * 2.0 < e.worst || n < 3);
        assert_true(bounded_likely(e, 100.0) <= e.worst);
    }
}

static void test_sum_of_equals_dot_with_ones(void **state)
{
    (void)state;
    struct bounded t[5], one[5];
    for (int i = 0; i < 5; i++) {
        t[i] = (struct bounded){i - 1.5, 0.01 * i, 0.002 * i, 0.001};
        one[i] = exactly(1.0);
    }
    struct bounded s = sum_of(t, 1, 5, 5.0, format_fp32);
    struct bounded d = dot(t, 1, one, 1, 5, 5.0, format_fp32);
    assert_true(s.value == d.value && s.worst < d.worst && d.worst < s.worst * 1.001);
    assert_true(s.spread <= d.spread && s.fixed <= d.fixed);
}

static void test_overflow_is_no_bound(void **state)
{
    (void)state;
    double big[2] = {3e38, 3e38};
    double one[2] = {1.0, 1.0};
    assert_true(isinf(dot_of_exact(big, 1, one, 1, 2, 2.0, format_fp32).worst));
    double nan[2] = {(double)NAN, 1.0};
    struct bounded e = dot_of_exact(nan, 1, one, 1, 2, 2.0, format_fp32);
    assert_true(isinf(e.worst) && isinf(bounded_likely(e, 5.0)));
    assert_true(isinf(gamma_n(0x1p24, U_FP32)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_stays_within),
        cmocka_unit_test(test_bf16_accumulator_exceeds),
        cmocka_unit_test(test_operand_errors_propagate),
        cmocka_unit_test(test_sum_of_equals_dot_with_ones),
        cmocka_unit_test(test_overflow_is_no_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
