/* The interval of the median of samples that came in rounds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "record/stats.h"

#include <cmocka.h>

#define GROUPS  13
#define PER     10
#define SAMPLES (GROUPS * PER)
#define DRAWS   299

static const struct bootstrap how = {.resamples = DRAWS, .confidence = 0.95, .seed = 1};

static void one_group_has_the_interval_of_its_samples(void **state)
{
    double x[24];
    unsigned group[24] = {0};
    struct interval plain, got;

    (void)state;
    for (size_t i = 0; i < 24; i++)
        x[i] = (double)((i * 7) % 24 + 1);
    plain = stats_median_interval(x, 24, 0.95);
    got = stats_grouped_median_interval(x, group, 24, &how);
    assert_true(got.low == 7 && got.high == 18); /* the binomial table */
    assert_true(got.low == plain.low && got.high == plain.high);
    got = stats_grouped_median_interval(x, group, 5, &how);
    assert_true(isinf(got.low) && isinf(got.high));
    got = stats_grouped_median_interval(x, group, 0, &how);
    assert_true(isnan(got.low) && isnan(got.high));
    x[3] = NAN64;
    got = stats_grouped_median_interval(x, group, 24, &how);
    assert_true(isnan(got.low) && isnan(got.high));
}

/* Of two groups the tail is empty: the interval reaches to both, whatever the samples say. */
static void two_groups_reach_to_both(void **state)
{
    double x[40];
    unsigned group[40];
    struct interval got;

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        group[i] = i < 30 ? 7 : 3; /* labels are labels */
        x[i] = i < 30 ? 1.0 : 2.0;
    }
    assert_true(stats_median_interval(x, 40, 0.95).high == 1.0);
    got = stats_grouped_median_interval(x, group, 40, &how);
    assert_true(got.low == 1.0 && got.high == 2.0);
}

/* The same draws, each put together and its median taken. */
static struct interval put_together(const double *x, const size_t *sizes, size_t groups)
{
    uint64_t key = rng_key(how.seed, "groups");
    double estimate[DRAWS], pool[8 * GROUPS * GROUPS];
    double tail = stats_bootstrap_tail(groups, how.confidence);

    for (uint64_t r = 0; r < DRAWS; r++) {
        size_t n = 0;

        for (size_t k = 0; k < groups; k++) {
            size_t g = rng_below(key, r * groups + k, groups), from = 0;

            for (size_t i = 0; i < g; i++)
                from += sizes[i];
            memcpy(&pool[n], &x[from], sizes[g] * sizeof *pool);
            n += sizes[g];
        }
        estimate[r] = stats_median(pool, n);
    }
    return (struct interval){stats_quantile(estimate, DRAWS, tail),
                             stats_quantile(estimate, DRAWS, 1 - tail)};
}

static void weights_give_the_median_of_what_was_drawn(void **state)
{
    double x[8 * GROUPS];
    unsigned group[8 * GROUPS];

    (void)state;
    for (uint64_t trial = 0; trial < 50; trial++) {
        uint64_t key = rng_key(trial, "weights");
        size_t sizes[GROUPS], n = 0;
        struct interval plain, expected, got;

        for (unsigned g = 0; g < GROUPS; g++) { /* uneven, some with ties */
            sizes[g] = 1 + rng_below(key, 1000 + g, 8);
            for (size_t k = 0; k < sizes[g]; k++, n++) {
                group[n] = 100 - g;
                x[n] = floor(8 * (rng_normal(key, g) + rng_normal(key, 100 + n))) / 8;
            }
        }
        plain = stats_median_interval(x, n, 0.95);
        expected = put_together(x, sizes, GROUPS);
        got = stats_grouped_median_interval(x, group, n, &how);
        assert_true(got.low == fmin(plain.low, expected.low));
        assert_true(got.high == fmax(plain.high, expected.high));
    }
}

/* Rounds that differ ten times as much as the samples of one. */
static void it_covers_where_the_samples_alone_do_not(void **state)
{
    unsigned covered = 0, plain_covered = 0;
    unsigned group[SAMPLES];
    double x[SAMPLES];

    (void)state;
    for (uint64_t trial = 0; trial < 1000; trial++) {
        uint64_t key = rng_key(trial, "groups cover");
        struct interval got, plain;

        for (unsigned i = 0; i < SAMPLES; i++) {
            group[i] = i / PER;
            x[i] = rng_normal(key, group[i]) + 0.1 * rng_normal(key, 1000 + i);
        }
        got = stats_grouped_median_interval(x, group, SAMPLES, &how);
        plain = stats_median_interval(x, SAMPLES, 0.95);
        covered += got.low <= 0 && 0 <= got.high;
        plain_covered += plain.low <= 0 && 0 <= plain.high;
    }
    assert_in_range(covered, 928, 990); /* 950 less 3.3 standard errors */
    assert_in_range(plain_covered, 0, 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_group_has_the_interval_of_its_samples),
        cmocka_unit_test(two_groups_reach_to_both),
        cmocka_unit_test(weights_give_the_median_of_what_was_drawn),
        cmocka_unit_test(it_covers_where_the_samples_alone_do_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
