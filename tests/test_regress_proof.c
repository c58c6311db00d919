/* Comparing record sets: a side that proves nothing, or less than before, is no OK. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/changes.h"
#include "report/compare_view.h"
#include "tests/scratch.h"
#include "tests/synthetic.h"

#define H200 "NVIDIA H200"

enum { BASE, NEW };

struct fixture {
    struct scratch scratch;
    struct synthetic side[2];
    struct record_set set[2];
    struct comparison_options opt;
    struct comparison c;
};

static int set_up(void **state)
{
    static const char *const names[] = {"base.jsonl", "new.jsonl"};
    struct fixture *f = xcalloc(1, sizeof *f);
    char path[300];

    scratch_open(&f->scratch);
    f->opt = (struct comparison_options){.regress = REGRESS_OPTIONS_INIT};
    f->opt.regress.bootstrap.resamples = 99;
    for (int i = 0; i < 2; i++) {
        scratch_path(&f->scratch, names[i], path, sizeof path);
        synthetic_open(&f->side[i], path, H200, 1.77e9 + 5.0 * i, (uint64_t)i + 1);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    comparison_release(&f->c);
    records_release(&f->set[BASE]);
    records_release(&f->set[NEW]);
    scratch_close(&f->scratch);
    free(f);
    return 0;
}

static void compare(struct fixture *f)
{
    static const char *const names[] = {"base.jsonl", "new.jsonl"};
    struct err err = ERR_INIT;
    char path[300];

    for (int i = 0; i < 2; i++) {
        synthetic_close(&f->side[i]);
        scratch_path(&f->scratch, names[i], path, sizeof path);
        if (records_read(path, &f->set[i], &err) < 0)
            fail_msg("%s", err.text);
    }
    if (comparison_make(&f->set[BASE], &f->set[NEW], &f->opt, &f->c, &err) < 0)
        fail_msg("%s", err.text);
}

static void must_say(const struct fixture *f, const char *what)
{
    struct text out;

    text_init(&out);
    comparison_view(VIEW_TEXT, &f->c, &f->opt.regress, &out);
    if (!strstr(out.data, what))
        fail_msg("\"%s\" is not in:\n%s", what, out.data);
    text_release(&out);
}

/* --- verdicts --------------------------------------------------------------------------------- */

/* A PASS with two outputs, and with the checks whose bits are given. */
static struct verify_record *two_outputs(uint32_t checks, enum verdict verdict)
{
    struct verify_record *r = synthetic_verify("op a=1", verdict);

    r->noutputs = 2;
    r->output[1] = r->output[0];
    snprintf(r->output[1].buffer, sizeof r->output[1].buffer, "state");
    r->checks_run = checks;
    return r;
}

static void a_buffer_that_is_no_longer_compared_is_worse(void **state)
{
    struct fixture *f = *state;
    struct verify_record *r = two_outputs(7, VERDICT_PASS);

    synthetic_put_verify(&f->side[BASE], two_outputs(7, VERDICT_PASS));
    r->noutputs = 1;
    synthetic_put_verify(&f->side[NEW], r);
    compare(f);
    assert_int_equal(comparison_worse(&f->c), 1);
    must_say(f, "proves less: state is no longer compared");
}

static void fewer_compared_elements_are_worse(void **state)
{
    struct fixture *f = *state;
    struct verify_record *r = two_outputs(7, VERDICT_PASS);

    synthetic_put_verify(&f->side[BASE], two_outputs(7, VERDICT_PASS));
    r->output[1].compared = 4095;
    synthetic_put_verify(&f->side[NEW], r);
    compare(f);
    assert_int_equal(comparison_worse(&f->c), 1);
    must_say(f, "proves less: of state 4095 elements are compared, they were 4096");
}

static void a_check_that_is_no_longer_carried_out_is_worse(void **state)
{
    struct fixture *f = *state;
    uint32_t fence = (uint32_t)1 << CHECK_FENCE;

    synthetic_put_verify(&f->side[BASE], two_outputs(7 | fence, VERDICT_PASS));
    synthetic_put_verify(&f->side[NEW], two_outputs(7, VERDICT_PASS));
    compare(f);
    assert_int_equal(comparison_worse(&f->c), 1);
    must_say(f, "proves less: the check fence is no longer carried out");
}

static void more_proof_is_no_change(void **state)
{
    struct fixture *f = *state;
    struct verify_record *r = two_outputs(3, VERDICT_PASS);

    r->noutputs = 1;
    r->output[0].compared = 1;
    synthetic_put_verify(&f->side[BASE], r);
    synthetic_put_verify(&f->side[NEW], two_outputs(7, VERDICT_PASS));
    compare(f);
    assert_int_equal(f->c.nverdicts, 0);
    assert_int_equal(comparison_worse(&f->c), 0);
}

/* What failed early ran fewer checks: its verdict says so already, once. */
static void a_failure_is_told_once(void **state)
{
    struct fixture *f = *state;

    synthetic_put_verify(&f->side[BASE], two_outputs(7, VERDICT_PASS));
    synthetic_put_verify(&f->side[NEW], two_outputs(1, VERDICT_FAIL));
    compare(f);
    assert_int_equal(f->c.nverdicts, 1);
    assert_string_equal(f->c.verdict[0].less, "");
}

/* --- times ------------------------------------------------------------------------------------ */

static void put_bench(struct fixture *f, int side, const char *text, bool valid)
{
    struct bench_record *r = synthetic_bench(&f->side[side], text, BENCH_COLD, 50.0);

    r->valid = valid;
    if (!valid)
        snprintf(r->reason, sizeof r->reason, "not timed: FAIL: wrong");
    synthetic_put_bench(&f->side[side], r);
}

static void rows_that_neither_side_timed_compare_nothing(void **state)
{
    struct fixture *f = *state;

    put_bench(f, BASE, "op a=1", false);
    put_bench(f, NEW, "op a=1", false);
    compare(f);
    assert_int_equal(f->c.ntimings, 1);
    assert_int_equal(comparison_worse(&f->c), 0);
    assert_true(comparison_empty(&f->c));
    must_say(f, "NOTHING TO COMPARE: ");
}

static void one_row_that_both_sides_timed_is_enough(void **state)
{
    struct fixture *f = *state;

    for (int side = 0; side < 2; side++) {
        put_bench(f, side, "op a=1", false);
        put_bench(f, side, "op a=2", true);
    }
    compare(f);
    assert_false(comparison_empty(&f->c));
    must_say(f, "OK: ");
}

/* As a new case that fails, which is told as worse from verdicts. */
static void a_new_row_that_is_not_valid_is_worse(void **state)
{
    struct fixture *f = *state;

    for (int side = 0; side < 2; side++)
        put_bench(f, side, "op a=1", true);
    put_bench(f, NEW, "op a=2", true);
    put_bench(f, NEW, "op a=3", false);
    compare(f);
    assert_int_equal(f->c.npresences, 2);
    assert_int_equal(comparison_worse(&f->c), 1);
    must_say(f, "\ntimed in the new only: op a=2 (cold)\n");
    must_say(f,
             "\nWORSE: timed in the new only: op a=3 (cold): not valid: not timed: FAIL: wrong\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_buffer_that_is_no_longer_compared_is_worse),
        TEST(fewer_compared_elements_are_worse),
        TEST(a_check_that_is_no_longer_carried_out_is_worse),
        TEST(more_proof_is_no_change),
        TEST(a_failure_is_told_once),
        TEST(rows_that_neither_side_timed_compare_nothing),
        TEST(one_row_that_both_sides_timed_is_enough),
        TEST(a_new_row_that_is_not_valid_is_worse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
