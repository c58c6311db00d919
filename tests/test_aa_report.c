/* A/A comparisons: equal sides are not called, a side that differs is (the negative control), and
   what was reported is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench_view.h"
#include "tests/synthetic.h"

#include <cmocka.h> /* last, as everywhere in the tests */

#define ROWS 5

/* The rounds of both sides lie one second apart: paired. */
static void add(struct aa *a, unsigned repeat, unsigned side, unsigned row, double us)
{
    const struct synthetic made = {
        .seed = 2 * repeat + side, .noise = 1e-3, .start_s = 1e9 + 1000 * repeat + side};
    struct bench_record *r;
    char text[40];

    snprintf(text, sizeof text, "toy n=%u", row);
    r = synthetic_bench(&made, text, BENCH_HOT, us);
    aa_add(a, repeat, side, r);
    free(r->sample);
    free(r);
}

/* `slow` is the repeat in which row 2 of the second side takes 5% longer. */
static void fill(struct aa *a, unsigned repeats, unsigned slow)
{
    aa_init(a, repeats);
    for (unsigned k = 0; k < repeats; k++)
        for (unsigned row = 0; row < ROWS; row++)
            for (unsigned side = 0; side < 2; side++)
                add(a, k, side, row, side && k == slow && row == 2 ? 105 : 100);
}

static void test_equal_sides_are_not_called(void **data)
{
    struct aa a;

    (void)data;
    fill(&a, 3, 3);
    for (unsigned k = 0; k < 3; k++)
        aa_report(&a, k);
    assert_int_equal(a.reported, 3);
    assert_int_equal(a.called, 0);
    assert_int_equal(a.count[CHANGE_SAME], 3 * ROWS);
    assert_int_equal(a.ndetectable, 3 * ROWS);
    for (size_t i = 0; i < a.ndetectable; i++)
        assert_true(a.detectable[i] > 0.01 &&
                    a.detectable[i] < 0.02); /* the margin and little more */
    aa_release(&a);
}

static void test_a_difference_is_called(void **data)
{
    struct aa a;

    (void)data;
    fill(&a, 2, 1);
    aa_report(&a, 0);
    assert_int_equal(a.called, 0);
    aa_report(&a, 1);
    aa_total(&a);
    assert_int_equal(a.called, 1);
    assert_int_equal(a.count[CHANGE_SLOWER], 1);
    assert_int_equal(a.count[CHANGE_SAME], 2 * ROWS - 1);
    aa_release(&a);
}

/* A run that is cut off has not measured all repeats: what is there is judged. */
static void test_repeats_stand_alone(void **data)
{
    struct aa a;

    (void)data;
    fill(&a, 4, 0);
    aa_report(&a, 2);
    assert_int_equal(a.reported, 1);
    assert_int_equal(a.called, 0);
    aa_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_sides_are_not_called),
        cmocka_unit_test(test_a_difference_is_called),
        cmocka_unit_test(test_repeats_stand_alone),
    };

    return cmocka_run_group_tests_name("A/A comparisons", tests, NULL, NULL);
}
