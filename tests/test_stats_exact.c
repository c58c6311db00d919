/* The statistics against values worked out by hand or by enumeration. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/rng.h"
#include "record/stats.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.17g is not %.17g", got, want);
}

static void medians_and_quantiles(void **state)
{
    static const double odd[] = {3, 1, 2};
    static const double even[] = {4, 1, 3, 2};
    static const double five[] = {10, 20, 30, 40, 50};
    static const double infinite[] = {1, INF64, INF64, INF64};

    (void)state;
    assert_true(stats_median(odd, 3) == 2.0);
    assert_true(stats_median(even, 4) == 2.5);
    assert_true(stats_quantile(five, 5, 0.0) == 10.0);
    assert_true(stats_quantile(five, 5, 1.0) == 50.0);
    near(stats_quantile(five, 5, 0.1), 14.0, 1e-12);
    near(stats_quantile(even, 4, 0.25), 1.75, 1e-12);
    assert_true(stats_quantile(infinite, 4, 0.5) == INF64);
    assert_true(stats_quantile(infinite, 4, 0.1) == INF64);
    assert_true(stats_quantile(infinite, 4, 0.0) == 1.0);
    assert_true(stats_mad(five, 5) == 10.0);
}

static void what_has_no_value_is_nan(void **state)
{
    static const double bad[] = {1, NAN64, 3};
    struct interval i = stats_median_interval(bad, 3, 0.95);

    (void)state;
    assert_true(isnan(stats_median(bad, 3)));
    assert_true(isnan(stats_median(bad, 0)));
    assert_true(isnan(stats_quantile(bad, 3, 0.5)));
    assert_true(isnan(stats_quantile(bad, 1, 1.5)));
    assert_true(isnan(stats_mad(bad, 3)));
    assert_true(isnan(i.low) && isnan(i.high));
    assert_true(isnan(stats_location(bad, 3)));
    assert_true(isnan(stats_location(bad, 0)));
    assert_true(isnan(stats_shift(bad, 3, bad, 1)));
    assert_true(isnan(stats_signed_rank_p(bad, 3, 0)));
    assert_true(isnan(stats_signed_rank_p(bad, 0, 0)));
    assert_true(isnan(stats_rank_sum_p(bad, 1, bad, 2, 0)));
    assert_true(isnan(stats_rank_sum_p(bad, 0, bad, 1, 0)));
}

static void median_interval_takes_the_binomial_ranks(void **state)
{
    /* n and k of the 95% interval [x_(k), x_(n+1-k)]: the binomial table. */
    static const struct {
        size_t n, k;
    } known[] = {{6, 1}, {10, 2}, {12, 3}, {20, 6}, {24, 7}, {30, 10}, {48, 17}, {100, 40}};
    double x[100];

    (void)state;
    for (size_t i = 0; i < 100; i++)
        x[i] = (double)((i * 37) % 100 + 1); /* 1..100 shuffled */
    for (size_t c = 0; c < COUNT(known); c++) {
        double line[100];
        struct interval got;

        for (size_t i = 0; i < known[c].n; i++)
            line[i] = (double)(i + 1);
        got = stats_median_interval(line, known[c].n, 0.95);
        assert_true(got.low == (double)known[c].k);
        assert_true(got.high == (double)(known[c].n + 1 - known[c].k));
    }
    assert_true(stats_median_interval(x, 100, 0.95).low == 40.0);
    assert_true(isinf(stats_median_interval(x, 5, 0.95).low));
    assert_true(isinf(stats_median_interval(x, 5, 0.95).high));
}

static void median_interval_holds_for_thousands_of_samples(void **state)
{
    enum { N = 5000 };
    static double line[N];
    struct interval got;

    (void)state;
    for (size_t i = 0; i < N; i++)
        line[i] = (double)(i + 1);
    got = stats_median_interval(line, N, 0.95);
    /* n/2 -+ 1.96 sqrt(n)/2 = 2500 -+ 69.3; 2^-5000 underflows, the ranks must not. */
    near(got.low, 2431.0, 1.0);
    near(got.high, 5001.0 - got.low, 0.0);
}

static void hodges_lehmann_estimates(void **state)
{
    static const double x[] = {1, 2, 4};
    static const double a[] = {1, 2, 3};
    static const double b[] = {3, 5, 9};

    (void)state;
    /* Averages 1, 1.5, 2, 2.5, 3, 4; differences 2 4 8 1 3 7 0 2 6. */
    assert_true(stats_location(x, 3) == 2.25);
    assert_true(stats_shift(a, 3, b, 3) == 3.0);
}

static void rank_tests_agree_with_enumeration(void **state)
{
    static const double plain[] = {0.3, -0.1, 0.7, 0.2, 0.9};
    static const double tied[] = {1, 2, 2, -2, 3, -1};
    static const double a[] = {1.1, 2.2, 3.3}, b[] = {2.5, 4.4, 5.5, 6.6};
    static const double ta[] = {1, 2, 2, 3}, tb[] = {2, 3, 3, 5};

    (void)state;
    near(stats_signed_rank_p(plain, 5, 0.0), 2.0 / 32, 1e-15);
    near(stats_signed_rank_p(tied, 6, 0.0), 13.0 / 64, 1e-15);
    near(stats_signed_rank_p(plain, 5, -10.0), 1.0 / 32, 1e-15);
    near(stats_signed_rank_p(plain, 5, 10.0), 1.0, 1e-15);
    near(stats_rank_sum_p(a, 3, b, 4, 0.0), 2.0 / 35, 1e-15);
    near(stats_rank_sum_p(ta, 4, tb, 4, 0.0), 10.0 / 70, 1e-15);
    near(stats_rank_sum_p(a, 3, b, 4, 100.0), 1.0, 1e-15);
}

/* Two textbook examples (Hollander and Wolfe, Nonparametric Statistical Methods, 1973): depression
   scales of nine patients (p. 29), permeability of chorioamniotic membranes (p. 69). The p are the
   book's to its four digits; these and those of the made-up rounds below are scipy 1.17.1's
   (wilcoxon, mannwhitneyu, alternative="greater", method="exact"). */
static void rank_tests_give_published_values(void **state)
{
    static const double first[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    static const double second[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    static const double term[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    static const double early[] = {1.15, 0.88, 0.90, 0.74, 1.21};
    static const double ratio[] = {0.031,  0.012, -0.004, 0.022, 0.017, 0.009,
                                   -0.013, 0.025, 0.019,  0.041, 0.003, 0.028};
    static const double base[] = {10.1, 10.4, 9.8, 10.2, 10.0, 10.6, 9.9, 10.3};
    static const double next[] = {10.5, 10.9, 10.25, 10.7, 10.35, 11.0, 10.15, 10.8};
    double drop[COUNT(first)];

    (void)state;
    for (size_t i = 0; i < COUNT(first); i++)
        drop[i] = first[i] - second[i];
    near(stats_signed_rank_p(drop, COUNT(drop), 0.0), 0.01953125, 1e-15);
    near(stats_location(drop, COUNT(drop)), 0.46, 1e-12);
    near(stats_rank_sum_p(early, COUNT(early), term, COUNT(term), 0.0), 0.1272061272061272, 1e-14);
    near(stats_shift(term, COUNT(term), early, COUNT(early)), -0.305, 1e-12);
    near(stats_signed_rank_p(ratio, COUNT(ratio), 0.0), 0.004638671875, 1e-15);
    near(stats_location(ratio, COUNT(ratio)), 0.017, 1e-15);
    near(stats_rank_sum_p(base, COUNT(base), next, COUNT(next), 0.0), 0.010334110334110334, 1e-15);
    near(stats_shift(base, COUNT(base), next, COUNT(next)), 0.4, 1e-14);
}

static void equal_samples_prove_nothing(void **state)
{
    static double same[100];

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++)
        same[i] = 4.0;
    assert_true(stats_signed_rank_p(same, 10, 4.0) >= 0.5);
    assert_true(stats_signed_rank_p(same, 100, 4.0) >= 0.5);
    assert_true(stats_rank_sum_p(same, 10, same, 10, 0.0) == 1.0);
    assert_true(stats_rank_sum_p(same, 50, same, 50, 0.0) == 1.0);
}

static void approximation_joins_the_exact_test(void **state)
{
    double x[STATS_EXACT + 1], a[STATS_EXACT + 1], b[STATS_EXACT + 1];
    size_t na = 0;
    size_t nb = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(x); i++) {
        size_t d = i % 7;

        x[i] = (double)(i + 1) * (d == 0 || d == 2 || d == 4 || d == 6 ? 1.0 : -1.0);
        d = i % 9;
        if (d == 1 || d == 4 || d == 6 || d == 8)
            b[nb++] = (double)(i + 1);
        else
            a[na++] = (double)(i + 1);
    }
    /* Exact values for these 65, by enumeration in integers; the kurtosis that the normal
       approximation leaves out is worth 1.2e-3 here. */
    near(stats_signed_rank_p(x, COUNT(x), 0.0), 0.17621288124972173, 1.5e-3);
    near(stats_rank_sum_p(a, na, b, nb, 0.0), 0.3740639944436933, 1.5e-3);
}

static void false_discovery_rate_as_published(void **state)
{
    /* The example of Benjamini and Hochberg (1995), section 4: four of fifteen at 5%. */
    static const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                               0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0};
    /* scipy 1.17.1: stats.false_discovery_control(p). */
    static const double adjusted[] = {0.0015,
                                      0.003,
                                      0.0095,
                                      0.035625,
                                      0.0603,
                                      0.06385714285714286,
                                      0.06385714285714286,
                                      0.0645,
                                      0.0765,
                                      0.486,
                                      0.5811818181818181,
                                      0.714875,
                                      0.7532307692307693,
                                      0.8132142857142857,
                                      1.0};
    double q[COUNT(p)];
    unsigned rejected = 0;

    (void)state;
    stats_fdr(p, COUNT(p), q);
    for (size_t i = 0; i < COUNT(p); i++)
        rejected += q[i] <= 0.05;
    assert_int_equal(rejected, 4);
    for (size_t i = 0; i < COUNT(p); i++)
        near(q[i], adjusted[i], 1e-12);
    for (size_t i = 1; i < COUNT(p); i++)
        assert_true(q[i] >= q[i - 1]);
}

static void false_discovery_skips_nan(void **state)
{
    static const double p[] = {0.01, NAN64, 0.04};
    double q[3];

    (void)state;
    stats_fdr(p, 3, q);
    near(q[0], 0.02, 1e-15); /* a family of two */
    assert_true(isnan(q[1]));
    near(q[2], 0.04, 1e-15);
    stats_fdr(p, 0, q);
}

/* scipy 1.17.1: norm.sf(sqrt(n / (n - 1)) * t.ppf((1 + confidence) / 2, n - 1)). */
static void bootstrap_tails_are_students(void **state)
{
    static const struct {
        size_t n;
        double confidence, tail;
    } known[] = {{3, 0.95, 6.8341373119412818e-08},  {6, 0.95, 0.0024318031746115667},
                 {7, 0.95, 0.0041091538156371437},   {12, 0.95, 0.010756614916552488},
                 {16, 0.95, 0.013855570404766664},   {64, 0.95, 0.021997526227984173},
                 {1000, 0.95, 0.024804305905564303}, {6, 0.90, 0.013643939327895023},
                 {13, 0.99, 0.00073824365359363578}};

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        near(stats_bootstrap_tail(known[i].n, known[i].confidence) / known[i].tail, 1.0, 1e-9);
    near(stats_bootstrap_tail(1, 0.95), 0.025, 1e-15);
    near(stats_bootstrap_tail(2, 0.95), 0.0, 1e-70); /* t is 12.7: beyond any resample */
}

static unsigned covered_of_1000(size_t n, const struct bootstrap *how)
{
    unsigned covered = 0;
    double x[16];

    for (uint64_t trial = 0; trial < 1000; trial++) {
        struct interval got;

        for (uint64_t i = 0; i < n; i++)
            x[i] = rng_normal(rng_key(trial, "cover"), i);
        got = stats_location_interval(x, n, how);
        covered += got.low <= 0.0 && 0.0 <= got.high;
    }
    return covered;
}

static void bootstrap_repeats_and_covers(void **state)
{
    static const double x[] = {0.3, -0.1, 0.7, 0.2, 0.9, -0.4, 0.1};
    struct bootstrap how = {.resamples = 299, .confidence = 0.95, .seed = 1};
    struct interval first = stats_location_interval(x, COUNT(x), &how);
    struct interval again = stats_location_interval(x, COUNT(x), &how);

    (void)state;
    assert_true(first.low == again.low && first.high == again.high);
    first = stats_shift_interval(x, COUNT(x), x, COUNT(x), &how);
    assert_true(first.low < 0.0 && first.high > 0.0);
    /* 950 of 1000 less 3.3 standard errors; plain percentiles give 860 and 920. The interval of 6
       cannot reach further than its extremes, which costs a percent. */
    assert_in_range(covered_of_1000(12, &how), 928, 980);
    assert_in_range(covered_of_1000(16, &how), 928, 980);
    assert_in_range(covered_of_1000(6, &how), 915, 980);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_quantiles),
        cmocka_unit_test(what_has_no_value_is_nan),
        cmocka_unit_test(median_interval_takes_the_binomial_ranks),
        cmocka_unit_test(median_interval_holds_for_thousands_of_samples),
        cmocka_unit_test(hodges_lehmann_estimates),
        cmocka_unit_test(rank_tests_agree_with_enumeration),
        cmocka_unit_test(rank_tests_give_published_values),
        cmocka_unit_test(equal_samples_prove_nothing),
        cmocka_unit_test(approximation_joins_the_exact_test),
        cmocka_unit_test(false_discovery_rate_as_published),
        cmocka_unit_test(false_discovery_skips_nan),
        cmocka_unit_test(bootstrap_tails_are_students),
        cmocka_unit_test(bootstrap_repeats_and_covers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
