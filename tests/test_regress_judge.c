/* The judgement of a suite: what must be called is called, what must not be is not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/rng.h"
#include "record/regress.h"

#define ROUNDS 12

/* A suite of cases with `rounds` rounds each; the k-th rounds of both sides lie side by side
   in time. */
struct suite {
    size_t count;
    struct rounds *base, *next;
    struct regress_input *in;
    struct regress_result *out;
};

static void suite_open(struct suite *s, size_t count)
{
    s->count = count;
    s->base = xcalloc(count, sizeof *s->base);
    s->next = xcalloc(count, sizeof *s->next);
    s->in = xcalloc(count, sizeof *s->in);
    s->out = xcalloc(count, sizeof *s->out);
    for (size_t i = 0; i < count; i++)
        s->in[i] = (struct regress_input){&s->base[i], &s->next[i]};
}

static void suite_close(struct suite *s)
{
    free(s->base);
    free(s->next);
    free(s->in);
    free(s->out);
}

/* Rounds around 100 us with relative scatter `noise`, drifting over the rounds by `drift` on
   both sides, `slower` on the new one. */
static void fill_case(struct suite *s, size_t i, unsigned rounds, uint64_t seed, double noise,
                      double drift, double slower)
{
    uint64_t key = rng_key(seed, "case");

    s->base[i].count = s->next[i].count = rounds;
    for (unsigned k = 0; k < rounds; k++) {
        double common = 100.0 * (1.0 + drift * k / rounds);
        uint64_t at = (i * REGRESS_MAX_ROUNDS + k) * 2;

        s->base[i].us[k] = common * (1.0 + noise * rng_normal(key, at));
        s->next[i].us[k] = common * (1.0 + noise * rng_normal(key, at + 1)) * (1.0 + slower);
        s->base[i].first_s[k] = s->base[i].last_s[k] = 10.0 * k;
        s->next[i].first_s[k] = s->next[i].last_s[k] = 10.0 * k + 5.0;
    }
}

static struct regress_options options(double threshold)
{
    struct regress_options opt = REGRESS_OPTIONS_INIT;

    opt.threshold = threshold;
    opt.bootstrap.resamples = 99;
    return opt;
}

static struct regress_result judge_one(unsigned rounds, double noise, double drift, double slower)
{
    struct regress_options opt = options(0.01);
    struct regress_result r;
    struct suite s;

    suite_open(&s, 1);
    fill_case(&s, 0, rounds, 1, noise, drift, slower);
    regress_judge(s.in, 1, &opt, s.out);
    r = s.out[0];
    suite_close(&s);
    return r;
}

static void clear_changes_are_called(void **state)
{
    struct regress_result slow = judge_one(ROUNDS, 0.003, 0.0, 0.03);
    struct regress_result fast = judge_one(ROUNDS, 0.003, 0.0, -0.03);
    struct regress_result same = judge_one(ROUNDS, 0.003, 0.0, 0.0);

    (void)state;
    assert_int_equal(slow.change, CHANGE_SLOWER);
    assert_true(slow.paired && slow.effect > 0.027 && slow.effect < 0.033);
    assert_true(slow.interval.low < slow.effect && slow.effect < slow.interval.high);
    assert_int_equal(fast.change, CHANGE_FASTER);
    assert_int_equal(same.change, CHANGE_SAME);
    assert_true(same.detectable > 0.01 && same.detectable < 0.03);
    assert_string_equal(change_name(slow.change), "SLOWER");
}

static void drift_that_hits_both_sides_cancels(void **state)
{
    (void)state;
    /* 30% over the run, ten times the effect: pooled samples could not see it. */
    assert_int_equal(judge_one(ROUNDS, 0.003, 0.3, 0.03).change, CHANGE_SLOWER);
    assert_int_equal(judge_one(ROUNDS, 0.003, 0.3, 0.0).change, CHANGE_SAME);
}

static void what_is_below_the_threshold_is_not_called(void **state)
{
    (void)state;
    /* Half a percent with hardly any noise: significant against zero, and still not worth a
       call. */
    assert_int_equal(judge_one(ROUNDS, 0.0001, 0.0, 0.005).change, CHANGE_SAME);
}

static void scatter_and_few_rounds_are_unsure(void **state)
{
    struct regress_result noisy = judge_one(ROUNDS, 0.2, 0.0, 0.0);
    struct regress_result few = judge_one(5, 0.001, 0.0, 0.5);

    (void)state;
    assert_int_equal(noisy.change, CHANGE_UNSURE);
    assert_true(noisy.detectable > 0.1 && isfinite(noisy.detectable));
    assert_int_equal(few.change, CHANGE_UNSURE);
    assert_non_null(strstr(few.reason, "record at least 6"));
    assert_true(isinf(few.detectable));
    assert_int_equal(judge_one(6, 0.001, 0.0, 0.5).change, CHANGE_SLOWER);
}

static void rounds_needed_follow_from_the_suite(void **state)
{
    (void)state;
    assert_int_equal(regress_rounds_needed(1, 0.05), 6);
    assert_int_equal(regress_rounds_needed(102, 0.05), 12);
    assert_int_equal(regress_rounds_needed(103, 0.05), 13);
}

static void runs_apart_get_a_margin_from_their_own_spread(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, 1);
    for (int times_kept = 0; times_kept < 2; times_kept++) {
        fill_case(&s, 0, ROUNDS, 3, 0.001, 0.1, 0.05);
        for (unsigned k = 0; k < ROUNDS; k++) {
            s.next[0].first_s[k] = s.next[0].last_s[k] = times_kept ? 1000.0 + k : NAN64;
        }
        regress_judge(s.in, 1, &opt, s.out);
        assert_false(s.out[0].paired);
        /* 5% slower, but the machine moves by 9% within each run. */
        assert_int_equal(s.out[0].change, CHANGE_UNSURE);
        assert_non_null(strstr(s.out[0].reason, "not interleaved"));
        assert_true(s.out[0].margin > 0.09);
    }
    fill_case(&s, 0, ROUNDS, 3, 0.001, 0.1, 0.5);
    s.next[0].count--; /* unequal numbers of rounds cannot be pairs */
    regress_judge(s.in, 1, &opt, s.out);
    assert_false(s.out[0].paired);
    assert_int_equal(s.out[0].change, CHANGE_SLOWER);
    suite_close(&s);
}

static void differences_of_a_tick_are_refused(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, 1);
    fill_case(&s, 0, ROUNDS, 4, 0.0001, 0.0, 0.03);
    s.base[0].tick_us = s.next[0].tick_us = 2.0; /* the effect is 3 us: 1.5 ticks */
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_UNSURE);
    assert_non_null(strstr(s.out[0].reason, "ticks of the event timer"));
    s.base[0].tick_us = s.next[0].tick_us = 1.0;
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_SLOWER);
    suite_close(&s);
}

/* A tick of the timer can hide a change as well as feign one. */
static void what_a_tick_can_hide_is_not_the_same(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, 1);
    fill_case(&s, 0, ROUNDS, 4, 0.0, 0.0, 0.0); /* 100 us, every time */
    s.base[0].tick_us = s.next[0].tick_us = 1.5;
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_UNSURE);
    assert_string_equal(s.out[0].reason,
                        "the event timer's steps can hide 1.5%: time more launches per sample");
    assert_true(s.out[0].detectable == 0.03); /* two ticks of 1.5 us are called, less is not */
    s.next[0].tick_us = 0.0;                  /* the coarser side counts */
    s.base[0].tick_us = 0.75;
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_SAME);
    assert_true(s.out[0].detectable == 0.015);
    s.base[0].tick_us = 0.0; /* not known */
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_SAME);
    assert_true(s.out[0].detectable >= 0.01 && s.out[0].detectable < 0.0101);
    /* Rounds that scatter over the steps average them out: 99, 100, 101 in turn, on both sides. */
    for (unsigned k = 0; k < ROUNDS; k++)
        s.base[0].us[k] = s.next[0].us[k] = 99.0 + k % 3;
    s.base[0].tick_us = 2.0; /* the middle half lies between 99 and 101 */
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_SAME);
    s.base[0].tick_us = 2.01;
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_UNSURE);
    suite_close(&s);
}

/* --- rounds that one side lost ---------------------------------------------------------------- */

static void lose_round(struct rounds *r, unsigned lost)
{
    for (unsigned k = lost; k + 1 < r->count; k++) {
        r->us[k] = r->us[k + 1];
        r->first_s[k] = r->first_s[k + 1];
        r->last_s[k] = r->last_s[k + 1];
        r->number[k] = r->number[k + 1];
    }
    r->count--;
}

/* 36% of drift, 3% a round, and no other scatter: what is not a pair shows at once. */
static void fill_numbered(struct suite *s, double slower)
{
    fill_case(s, 0, ROUNDS, 6, 0.0, 0.36, slower);
    s->base[0].numbered = s->next[0].numbered = true;
    for (unsigned k = 0; k < ROUNDS; k++)
        s->base[0].number[k] = s->next[0].number[k] = 2 * k + 1;
}

static void lost_rounds_do_not_shift_the_others(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, 1);
    fill_numbered(&s, 0.0);
    lose_round(&s.base[0], 0);
    lose_round(&s.next[0], ROUNDS - 1);
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_SAME);
    assert_true(s.out[0].paired && s.out[0].effect == 0.0 && s.out[0].interval.low == 0.0);
    assert_true(s.out[0].base_us == 116.5); /* median of rounds 1 to 10: 103 to 130 */
    /* Negative control: known by their order alone, each is paired with the round before. */
    s.base[0].numbered = false;
    regress_judge(s.in, 1, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_FASTER);
    suite_close(&s);
}

static void a_lost_round_leaves_pairs(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, 1);
    fill_numbered(&s, 0.05);
    lose_round(&s.next[0], 7);
    regress_judge(s.in, 1, &opt, s.out);
    assert_true(s.out[0].paired);
    assert_int_equal(s.out[0].change, CHANGE_SLOWER);
    assert_true(fabs(s.out[0].effect - 0.05) < 1e-12);
    assert_true(s.out[0].p == 2.0 / 2048); /* eleven pairs */
    while (s.next[0].count > 6)            /* half of the base's: too much is lost */
        lose_round(&s.next[0], 0);
    regress_judge(s.in, 1, &opt, s.out);
    assert_false(s.out[0].paired);
    suite_close(&s);
}

/* --- the error rates of whole suites ---------------------------------------------------------- */

#define SUITES 60
#define CASES  40

static void nothing_changed_means_hardly_any_call(void **state)
{
    struct regress_options opt = options(0.0); /* the hardest: no margin helps */
    unsigned suites_with_a_call = 0;
    struct suite s;

    (void)state;
    suite_open(&s, CASES);
    for (uint64_t trial = 0; trial < SUITES; trial++) {
        unsigned calls = 0;

        for (size_t i = 0; i < CASES; i++)
            fill_case(&s, i, ROUNDS, 100 + trial, 0.01, 0.05, 0.0);
        regress_judge(s.in, CASES, &opt, s.out);
        for (size_t i = 0; i < CASES; i++)
            calls += s.out[i].change == CHANGE_SLOWER || s.out[i].change == CHANGE_FASTER;
        suites_with_a_call += calls > 0;
    }
    /* At most 5% of the suites: 3 expected of 60, 8 is beyond 99%. */
    assert_in_range(suites_with_a_call, 0, 8);
    suite_close(&s);
}

static void with_the_threshold_nothing_is_called_at_all(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, CASES);
    for (uint64_t trial = 0; trial < 20; trial++) {
        for (size_t i = 0; i < CASES; i++)
            fill_case(&s, i, ROUNDS, 500 + trial, 0.005, 0.05, 0.0);
        regress_judge(s.in, CASES, &opt, s.out);
        for (size_t i = 0; i < CASES; i++)
            assert_true(s.out[i].change == CHANGE_SAME || s.out[i].change == CHANGE_UNSURE);
    }
    suite_close(&s);
}

static void false_calls_are_a_small_share_of_all_calls(void **state)
{
    struct regress_options opt = options(0.0);
    double false_share = 0.0;
    unsigned found = 0;
    struct suite s;

    (void)state;
    suite_open(&s, CASES);
    for (uint64_t trial = 0; trial < SUITES; trial++) {
        unsigned calls = 0;
        unsigned wrong = 0;

        for (size_t i = 0; i < CASES; i++)
            fill_case(&s, i, ROUNDS, 900 + trial, 0.01, 0.0, i % 4 == 0 ? 0.03 : 0.0);
        regress_judge(s.in, CASES, &opt, s.out);
        for (size_t i = 0; i < CASES; i++) {
            bool called = s.out[i].change == CHANGE_SLOWER || s.out[i].change == CHANGE_FASTER;

            calls += called;
            wrong += called && i % 4 != 0;
            found += called && i % 4 == 0;
        }
        false_share += calls ? (double)wrong / calls / SUITES : 0.0;
    }
    assert_true(false_share <= 0.06); /* 5% and the error of so few suites */
    assert_true(found > SUITES * CASES / 4 * 9 / 10);
    suite_close(&s);
}

static void one_planted_slowdown_is_found_every_time(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, CASES);
    for (uint64_t trial = 0; trial < 20; trial++) {
        for (size_t i = 0; i < CASES; i++)
            fill_case(&s, i, ROUNDS, 2000 + trial, 0.005, 0.02, i == trial ? 0.03 : 0.0);
        regress_judge(s.in, CASES, &opt, s.out);
        for (size_t i = 0; i < CASES; i++)
            assert_true((s.out[i].change == CHANGE_SLOWER) == (i == trial));
    }
    suite_close(&s);
}

/* --- sides that must not be used -------------------------------------------------------------- */

static void invalid_sides_are_invalid_and_no_hypotheses(void **state)
{
    struct regress_options opt = options(0.01);
    struct suite s;

    (void)state;
    suite_open(&s, 2);
    fill_case(&s, 0, ROUNDS, 5, 0.003, 0.0, 0.03);
    fill_case(&s, 1, ROUNDS, 5, 0.003, 0.0, 0.03);
    snprintf(s.next[1].invalid, sizeof s.next[1].invalid, "launch failed");
    regress_judge(s.in, 2, &opt, s.out);
    assert_int_equal(s.out[0].change, CHANGE_SLOWER);
    assert_true(s.out[0].q == s.out[0].p); /* a family of one */
    assert_int_equal(s.out[1].change, CHANGE_INVALID);
    assert_string_equal(s.out[1].reason, "new: launch failed");
    assert_true(isnan(s.out[1].effect));
    suite_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clear_changes_are_called),
        cmocka_unit_test(drift_that_hits_both_sides_cancels),
        cmocka_unit_test(what_is_below_the_threshold_is_not_called),
        cmocka_unit_test(scatter_and_few_rounds_are_unsure),
        cmocka_unit_test(rounds_needed_follow_from_the_suite),
        cmocka_unit_test(runs_apart_get_a_margin_from_their_own_spread),
        cmocka_unit_test(differences_of_a_tick_are_refused),
        cmocka_unit_test(what_a_tick_can_hide_is_not_the_same),
        cmocka_unit_test(lost_rounds_do_not_shift_the_others),
        cmocka_unit_test(a_lost_round_leaves_pairs),
        cmocka_unit_test(nothing_changed_means_hardly_any_call),
        cmocka_unit_test(with_the_threshold_nothing_is_called_at_all),
        cmocka_unit_test(false_calls_are_a_small_share_of_all_calls),
        cmocka_unit_test(one_planted_slowdown_is_found_every_time),
        cmocka_unit_test(invalid_sides_are_invalid_and_no_hypotheses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
