/* The judge is tested with planted numbers: each wrong one must be caught by the check that is
   meant for it, and each right one must pass. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/number.h"
#include "measure/judge.h"
#include "toy_problem.h"

#include <cmocka.h> /* last: its macro expect_value would hide golden.h's function */

struct fixture {
    struct problem p;
    struct golden g;
    void *data[4];
    struct verify_record rec;
};

static struct fixture *fixture_of(const char *text)
{
    struct fixture *f = calloc(1, sizeof(*f));
    toy_problem_init(&f->p, text);
    toy_golden_init(&f->g, &f->p);
    toy_outcome_init(&f->p, &f->g, f->data);
    return f;
}

static int set_up(void **state)
{
    *state = fixture_of("toy");
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < f->p.count; i++)
        free(f->data[i]);
    golden_release(&f->g);
    problem_release(&f->p);
    free(f);
    return 0;
}

#define RAN(check) (1u << (check))
#define ALL_RAN    ((1u << CHECK_COUNT) - 1)

static enum verdict verdict_with(struct fixture *f, uint32_t ran, enum check found,
                                 const char *text)
{
    struct buffer_stats stats[4];
    struct evidence ev = {.checks_run = ran, .stats = stats};
    for (unsigned i = 0; i < f->p.count; i++)
        compare_buffer(&f->p.buffer[i], &f->g.of[i], f->p.buffer[i].init, f->data[i], &stats[i]);
    ev.found[found] = text;
    judge(&f->p, &ev, &f->rec);
    return f->rec.verdict;
}

static enum verdict verdict(struct fixture *f)
{
    return verdict_with(f, ALL_RAN, CHECK_LAUNCH, NULL);
}

static void expect_fail(struct fixture *f, const char *check, const char *where)
{
    assert_int_equal(verdict(f), VERDICT_FAIL);
    assert_string_equal(f->rec.failed_check, check);
    if (strstr(f->rec.reason, where) == NULL)
        fail_msg("'%s' does not name '%s'", f->rec.reason, where);
}

static void put(struct fixture *f, int buffer, size_t i, double value)
{
    dtype_store(f->p.buffer[buffer].dtype, f->data[buffer], i, value);
}

/* --- right ------------------------------------------------------------------------------------ */

static void a_right_outcome_passes(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(verdict(f), VERDICT_PASS);
    assert_string_equal(f->rec.reason, "");
    put(f, TOY_Y, TOY_N - 1, (double)NAN);   /* FREE */
    ((uint32_t *)f->data[TOY_WORK])[3] = 17; /* scratch */
    assert_int_equal(verdict(f), VERDICT_PASS);
}

static void exactly_at_the_bound_passes_and_beyond_fails(void **state)
{
    struct fixture *f = *state;
    put(f, TOY_Y, 12, 13.25);
    assert_int_equal(verdict(f), VERDICT_PASS);
    put(f, TOY_Y, 12, (double)nextafterf(13.25f, 14.0f));
    expect_fail(f, "golden", "y[row=1 col=2]");
    put(f, TOY_Y, 12, 12.75);
    assert_int_equal(verdict(f), VERDICT_PASS);
    put(f, TOY_Y, 12, (double)nextafterf(12.75f, 12.0f));
    expect_fail(f, "golden", "y[row=1 col=2]");
}

static void the_smaller_of_the_two_bounds_counts(void **state)
{
    struct fixture *f = *state;
    (expect_value)(&f->g.of[TOY_Y], 5, 6.0, 0.125, 0.25);
    put(f, TOY_Y, 5, 6.1875);
    expect_fail(f, "golden", "y[row=0 col=5]");
}

static void a_zero_bound_means_equal(void **state)
{
    struct fixture *f = *state;
    (expect_value)(&f->g.of[TOY_Y], 5, 6.0, 0.0, 0.0);
    assert_int_equal(verdict(f), VERDICT_PASS);
    put(f, TOY_Y, 5, (double)nextafterf(6.0f, 7.0f));
    expect_fail(f, "golden", "error/bound inf");
}

/* --- wrong ------------------------------------------------------------------------------------ */

static void nan_and_infinity_never_pass(void **state)
{
    struct fixture *f = *state;
    static const double bad[] = {NAN64, -NAN64, INF64, -INF64};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put(f, TOY_Y, 29, bad[i]);
        expect_fail(f, "golden", "y[row=2 col=9]");
        put(f, TOY_Y, 29, 30.0);
        put(f, TOY_STATE, 0, bad[i]);
        expect_fail(f, "golden", "state[row=0 col=0]");
        put(f, TOY_STATE, 0, 2.0);
    }
    assert_int_equal(verdict(f), VERDICT_PASS);
}

/* NaN must also win over a large finite error when the worst element is named. */
static void the_worst_element_is_named(void **state)
{
    struct fixture *f = *state;
    put(f, TOY_Y, 3, 1000.0);
    put(f, TOY_Y, 4, 6.0);
    expect_fail(f, "golden", "y[row=0 col=3] is 1000, golden 4, bound 0.25, error/bound 3.98e+03");
    put(f, TOY_Y, 7, NAN64);
    expect_fail(f, "golden", "y[row=0 col=7]");
    expect_fail(f, "golden", "1 of them NaN");
}

static void one_exact_bit_counts(void **state)
{
    struct fixture *f = *state;
    ((uint32_t *)f->data[TOY_Y])[31] ^= 1;
    expect_fail(f, "golden", "y[row=3 col=1] is ");
    expect_fail(f, "golden", "and must be the same bits (1 of ");
    put(f, TOY_Y, 31, 123.0);
    expect_fail(f, "golden", "y[row=3 col=1] is 123, golden ");
}

static void what_was_not_written_is_found(void **state)
{
    struct fixture *f = *state;
    memcpy((float *)f->data[TOY_Y] + 17, (float *)f->p.buffer[TOY_Y].init + 17, sizeof(float));
    expect_fail(f, "coverage", "y[row=1 col=7] was never written (1 of 39 elements)");
    f->rec.verdict = VERDICT_PASS;
    memcpy(f->data[TOY_Y], f->p.buffer[TOY_Y].init, f->p.buffer[TOY_Y].bytes);
    expect_fail(f, "coverage", "39 of 39");
}

static void what_must_stay_is_watched(void **state)
{
    struct fixture *f = *state;
    put(f, TOY_STATE, 11, -1.0000001);
    expect_fail(f, "keep", "state[row=1 col=1]");
}

static void inputs_are_watched(void **state)
{
    struct fixture *f = *state;
    put(f, TOY_X, 39, 38.0);
    expect_fail(f, "inputs", "x[row=3 col=9]");
}

static void a_negative_zero_is_not_a_kept_zero(void **state)
{
    struct fixture *f = *state;
    put(f, TOY_X, 0, -0.0);
    expect_fail(f, "inputs", "x[row=0 col=0]");
}

static void findings_of_the_runner_fail_in_their_order(void **state)
{
    struct fixture *f = *state;
    static const enum check checks[] = {CHECK_LAUNCH, CHECK_FENCE, CHECK_REPEAT, CHECK_SCHEDULE,
                                        CHECK_IDENTITY};
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        assert_int_equal(verdict_with(f, ALL_RAN, checks[i], "planted"), VERDICT_FAIL);
        assert_string_equal(f->rec.failed_check, check_name(checks[i]));
        assert_string_equal(f->rec.reason, "planted");
    }
    put(f, TOY_X, 0, 5.0);
    put(f, TOY_Y, 0, 5.0);
    assert_int_equal(verdict_with(f, ALL_RAN, CHECK_FENCE, "planted"), VERDICT_FAIL);
    assert_string_equal(f->rec.failed_check, "fence");
    assert_int_equal(verdict_with(f, ALL_RAN, CHECK_IDENTITY, "planted"), VERDICT_FAIL);
    assert_string_equal(f->rec.failed_check, "inputs");
}

/* --- mistrusted ------------------------------------------------------------------------------- */

static void expect_mistrust(struct fixture *f, const char *why)
{
    assert_int_equal(verdict(f), VERDICT_MISTRUST);
    if (strstr(f->rec.reason, why) == NULL)
        fail_msg("'%s' does not say '%s'", f->rec.reason, why);
}

static void unbounded_goldens_are_mistrusted(void **state)
{
    struct fixture *f = *state;
    static const double bad[][3] = {{6.0, INF64, INF64}, {6.0, NAN64, 0.1}, {6.0, 0.1, NAN64},
                                    {6.0, -1.0, 0.1},    {NAN64, 0.1, 0.1}, {INF64, 0.1, 0.1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (expect_value)(&f->g.of[TOY_Y], 5, bad[i][0], bad[i][1], bad[i][2]);
        expect_mistrust(f, "y[row=0 col=5] has no finite value or bound (1 of 30 values)");
    }
    put(f, TOY_Y, 6, 0.0); /* a failure elsewhere still fails */
    assert_int_equal(verdict(f), VERDICT_FAIL);
}

static void missing_bounds_are_mistrusted(void **state)
{
    struct fixture *f = *state;
    f->g.of[TOY_Y].value[5] = NAN64; /* VALUE, but nothing was ever stored for it */
    f->g.of[TOY_Y].worst[5] = f->g.of[TOY_Y].likely[5] = (float)NAN64;
    expect_mistrust(f, "no finite value or bound");
}

static void set_values(struct fixture *f, int buffer, double value, double bound, size_t from,
                       size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (expectation_at(&f->g.of[buffer], i) != EXPECT_VALUE)
            continue;
        (expect_value)(&f->g.of[buffer], i, value, bound, bound);
        put(f, buffer, i, value);
    }
}

static void mostly_zero_goldens_are_mistrusted(void **state)
{
    struct fixture *f = *state;
    set_values(f, TOY_Y, 0.0, 0.0, 0, 28);
    assert_int_equal(verdict(f), VERDICT_PASS); /* 28 of 30: 93% */
    set_values(f, TOY_Y, 0.0, 0.0, 0, 29);
    expect_mistrust(f, "29 of 30 goldens of y are zero");
}

static void zeros_a_case_asks_for_are_trusted(void **state)
{
    (void)state;
    void *held = fixture_of("toy input=zero");
    struct fixture *f = held;
    set_values(f, TOY_Y, 0.0, 0x1p-149, 0, TOY_N);
    assert_int_equal(verdict(f), VERDICT_PASS);
    put(f, TOY_Y, 3, 0x1p-100); /* and still are zeros */
    assert_int_equal(verdict(f), VERDICT_FAIL);
    tear_down(&held);
}

/* Whatever the case says about zeros. */
static void bounds_too_wide_to_prove_anything_are_mistrusted(void **state)
{
    (void)state;
    void *held = fixture_of("toy input=zero");
    struct fixture *f = held;
    set_values(f, TOY_Y, 0.0, 1e-3, 0, TOY_N); /* zeros, within a bound that is no zero's */
    expect_mistrust(f, "the bounds of y are too wide to prove anything");
    set_values(f, TOY_Y, 1e-4, 1e-3, 0, TOY_N);
    expect_mistrust(f, "the bounds of y");
    set_values(f, TOY_Y, 1.0, 0.75, 0, TOY_N);
    assert_int_equal(verdict(f), VERDICT_PASS);
    set_values(f, TOY_Y, 0.5, 0.75, 0, 22); /* 8 of 30 are sharp, but the rest is not proven */
    expect_mistrust(f, "1.12 of the golden's norm, and only 8 of 30");
    set_values(f, TOY_Y, 1e6, 0.5, 0, 1); /* one large value hides none of the blind ones */
    set_values(f, TOY_Y, 0.25, 0.5, 1, TOY_N);
    expect_mistrust(f, "only 1 of 30 values exceed theirs");
    tear_down(&held);
}

/* Bounds derived per column also hold for its small elements, which they then exceed. */
static void small_elements_of_a_proven_buffer_are_no_defect(void **state)
{
    (void)state;
    void *held = fixture_of("toy input=zero");
    struct fixture *f = held;
    set_values(f, TOY_Y, 1e-30, 1e-6, 0, TOY_N);
    set_values(f, TOY_Y, 1.0, 1e-6, 20, TOY_N); /* 10 of 30 are what the rest is measured against */
    assert_int_equal(verdict(f), VERDICT_PASS);
    set_values(f, TOY_Y, 0.0, 0.0, 0, TOY_N);
    set_values(f, TOY_Y, 0x1p-90, 0x1p-80, 0, 1); /* one at the edge of underflow among zeros */
    assert_int_equal(verdict(f), VERDICT_PASS);
    tear_down(&held);
}

static void doing_nothing_must_not_be_enough(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < TOY_N; i++)
        f->g.of[TOY_Y].expect[i] = EXPECT_KEEP;
    memcpy(f->data[TOY_Y], f->p.buffer[TOY_Y].init, f->p.buffer[TOY_Y].bytes);
    assert_int_equal(verdict(f), VERDICT_PASS);
    set_values(f, TOY_STATE, -1.0, 0.25, 0, TOY_N); /* what it holds before */
    expect_mistrust(f, "a kernel that does not write state would pass");
}

static void one_idle_buffer_is_enough_to_mistrust(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(verdict(f), VERDICT_PASS);
    set_values(f, TOY_STATE, -1.0, 0.25, 0, TOY_N); /* what it holds before; y is as it was */
    expect_mistrust(f, "does not write state would pass");
    set_values(f, TOY_STATE, 1.0, 0.25, 0, 1); /* one element of it has to change */
    assert_int_equal(verdict(f), VERDICT_PASS);
}

static void keeping_everything_is_a_contract(void **state)
{
    struct fixture *f = *state;
    for (int b = TOY_Y; b <= TOY_STATE; b++) {
        memset(f->g.of[b].expect, EXPECT_KEEP, TOY_N);
        memcpy(f->data[b], f->p.buffer[b].init, f->p.buffer[b].bytes);
    }
    assert_int_equal(verdict(f), VERDICT_PASS);
    put(f, TOY_STATE, 0, 2.0);
    expect_fail(f, "keep", "state[row=0 col=0]");
    for (int b = TOY_Y; b <= TOY_STATE; b++)
        memset(f->g.of[b].expect, EXPECT_FREE, TOY_N);
    expect_mistrust(f, "no element is compared");
}

static void nothing_compared_is_no_pass(void **state)
{
    struct fixture *f = *state;
    struct evidence ev = {.checks_run = ALL_RAN, .stats = NULL};
    judge(&f->p, &ev, &f->rec);
    assert_int_equal(f->rec.verdict, VERDICT_MISTRUST);
    assert_int_equal(verdict_with(f, ALL_RAN & ~RAN(CHECK_GOLDEN), CHECK_LAUNCH, NULL),
                     VERDICT_MISTRUST);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void the_record_gets_the_numbers(void **state)
{
    struct fixture *f = *state;
    struct buffer_stats s;
    struct output_stat out;
    put(f, TOY_Y, 12, 13.125);
    compare_buffer(&f->p.buffer[TOY_Y], &f->g.of[TOY_Y], f->p.buffer[TOY_Y].init, f->data[TOY_Y],
                   &s);
    judge_output(&f->p.buffer[TOY_Y], &s, &out);
    assert_string_equal(out.buffer, "y");
    assert_int_equal(out.compared, 39);
    assert_true(out.max_error == 0.125 && out.ratio_likely == 0.5 && out.ratio_worst == 0.25);
    assert_true(out.value == 13.125 && out.golden == 13.0 && out.bound == 0.25);
    assert_string_equal(out.where, "y[row=1 col=2]");
    assert_int_equal(s.values + s.exacts + s.keeps + s.frees, TOY_N);
    put(f, TOY_Y, 0, NAN64);
    compare_buffer(&f->p.buffer[TOY_Y], &f->g.of[TOY_Y], f->p.buffer[TOY_Y].init, f->data[TOY_Y],
                   &s);
    assert_true(isinf(s.max_error) && isinf(s.ratio_likely) && isinf(s.ratio_worst));
    assert_int_equal(s.nans.count, 1);
}

static void runs_differ_where_it_matters_only(void **state)
{
    struct fixture *f = *state;
    const struct buffer *b = &f->p.buffer[TOY_Y];
    float other[TOY_N];
    size_t at = 0;
    memcpy(other, f->data[TOY_Y], sizeof(other));
    assert_true(compare_runs(b, &f->g.of[TOY_Y], f->data[TOY_Y], other, &at));
    other[TOY_N - 1] += 1.0f; /* FREE */
    assert_true(compare_runs(b, &f->g.of[TOY_Y], f->data[TOY_Y], other, &at));
    other[22] = nextafterf(other[22], 0.0f);
    assert_false(compare_runs(b, &f->g.of[TOY_Y], f->data[TOY_Y], other, &at));
    assert_int_equal(at, 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_right_outcome_passes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(exactly_at_the_bound_passes_and_beyond_fails, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_smaller_of_the_two_bounds_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_zero_bound_means_equal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nan_and_infinity_never_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_worst_element_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_exact_bit_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_written_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_must_stay_is_watched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(inputs_are_watched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_negative_zero_is_not_a_kept_zero, set_up, tear_down),
        cmocka_unit_test_setup_teardown(findings_of_the_runner_fail_in_their_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(unbounded_goldens_are_mistrusted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_bounds_are_mistrusted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mostly_zero_goldens_are_mistrusted, set_up, tear_down),
        cmocka_unit_test(zeros_a_case_asks_for_are_trusted),
        cmocka_unit_test(bounds_too_wide_to_prove_anything_are_mistrusted),
        cmocka_unit_test(small_elements_of_a_proven_buffer_are_no_defect),
        cmocka_unit_test_setup_teardown(doing_nothing_must_not_be_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_idle_buffer_is_enough_to_mistrust, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeping_everything_is_a_contract, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_compared_is_no_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_record_gets_the_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_differ_where_it_matters_only, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
