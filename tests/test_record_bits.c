/* Equal output bits on two devices: what is counted, what is left out, what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "report/bits_view.h"
#include "tests/scratch.h"
#include "tests/synthetic.h"

#define GPU "NVIDIA H200"
#define CPU "Some CPU (emulated)"

struct fixture {
    struct scratch scratch;
    char path[2][300];
    struct synthetic side[2]; /* base, new */
    struct record_set set[2];
    struct bits_comparison c;
    struct text text;
    struct err err;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    scratch_open(&f->scratch);
    scratch_path(&f->scratch, "cpu.jsonl", f->path[0], sizeof f->path[0]);
    scratch_path(&f->scratch, "gpu.jsonl", f->path[1], sizeof f->path[1]);
    synthetic_open(&f->side[0], f->path[0], CPU, 1.77e9, 1);
    synthetic_open(&f->side[1], f->path[1], GPU, 1.77e9, 2);
    text_init(&f->text);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    bits_release(&f->c);
    records_release(&f->set[0]);
    records_release(&f->set[1]);
    text_release(&f->text);
    scratch_close(&f->scratch);
    free(f);
    return 0;
}

/* A case whose buffers "output" and "state" hash to the given numbers. */
static struct verify_record *make(const char *text, unsigned output, unsigned state)
{
    struct verify_record *r = synthetic_verify(text, VERDICT_PASS);

    r->noutputs = 2;
    r->output[1] = r->output[0];
    snprintf(r->output[1].buffer, sizeof r->output[1].buffer, "state");
    snprintf(r->output[0].bits, sizeof r->output[0].bits, "%032x", output);
    snprintf(r->output[1].bits, sizeof r->output[1].bits, "%032x", state);
    return r;
}

static void put(struct fixture *f, int side, struct verify_record *r)
{
    synthetic_put_verify(&f->side[side], r);
}

/* Closes, reads and compares; returns what bits_compare() does. */
static int compare(struct fixture *f)
{
    for (int i = 0; i < 2; i++) {
        synthetic_close(&f->side[i]);
        if (records_read(f->path[i], &f->set[i], &f->err) < 0)
            fail_msg("%s", f->err.text);
    }
    return bits_compare(&f->set[0], &f->set[1], &f->c, &f->err);
}

static void counts_by_operator_and_buffer(void **state)
{
    struct fixture *f = *state;

    put(f, 0, make("zeta a=1", 1, 2));
    put(f, 1, make("zeta a=1", 1, 2));
    put(f, 0, make("alpha a=1", 1, 2));
    put(f, 1, make("alpha a=1", 1, 3));
    put(f, 0, make("alpha a=2", 4, 5));
    put(f, 1, make("alpha a=2", 4, 6));
    put(f, 0, make("alpha a=3", 7, 8));
    put(f, 1, make("alpha a=3", 9, 8));
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.cases, 4);
    assert_int_equal(f->c.left_out, 0);
    assert_int_equal(f->c.nrows, 4);
    assert_string_equal(f->c.row[0].op, "alpha");
    assert_string_equal(f->c.row[0].buffer, "output");
    assert_int_equal(f->c.row[0].equal, 2);
    assert_int_equal(f->c.row[0].of, 3);
    assert_string_equal(f->c.row[0].first_differ, "alpha a=3");
    assert_string_equal(f->c.row[1].buffer, "state");
    assert_int_equal(f->c.row[1].equal, 1);
    assert_string_equal(f->c.row[1].first_differ, "alpha a=1");
    assert_string_equal(f->c.row[2].op, "zeta");
    assert_int_equal(f->c.row[2].equal, 1);
    assert_null(f->c.row[2].first_differ);
    assert_int_equal(bits_equal(&f->c), 5);
    assert_int_equal(bits_compared(&f->c), 8);
    assert_string_equal(f->c.base->name, CPU);
    assert_string_equal(f->c.next->name, GPU);
}

static void only_what_both_sides_hold_is_compared(void **state)
{
    struct fixture *f = *state;
    struct verify_record *r;

    put(f, 0, make("op a=1", 1, 2)); /* new: skipped, so without outputs */
    r = synthetic_verify("op a=1", VERDICT_SKIP);
    r->noutputs = 0;
    put(f, 1, r);
    put(f, 0, make("op a=2", 1, 2)); /* base only */
    put(f, 1, make("op a=3", 1, 2)); /* new only */
    put(f, 0, make("op a=4", 1, 2)); /* one buffer missing */
    r = make("op a=4", 1, 2);
    r->noutputs = 1;
    put(f, 1, r);
    r = make("op a=5", 1, 2); /* nothing of "output" was compared with a golden */
    r->output[0].compared = 0;
    put(f, 0, r);
    put(f, 1, make("op a=5", 1, 2));
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.cases, 2);
    assert_int_equal(f->c.left_out, 3);
    assert_int_equal(bits_compared(&f->c), 2);
    assert_int_equal(bits_equal(&f->c), 2);
}

static void the_last_record_of_a_case_counts(void **state)
{
    struct fixture *f = *state;

    put(f, 0, make("op a=1", 1, 2));
    synthetic_close(&f->side[0]);
    synthetic_open(&f->side[0], f->path[0], CPU, 1.77e9, 3);
    put(f, 0, make("op a=1", 5, 6));
    put(f, 1, make("op a=1", 5, 6));
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.cases, 1);
    assert_int_equal(bits_equal(&f->c), 2);
    assert_int_equal(bits_compared(&f->c), 2);
}

/* Workers finish in any order: the example that is shown does not depend on it. */
static void the_example_is_the_first_by_text(void **state)
{
    static const char *const order[] = {"op a=2", "op a=3", "op a=1", "op a=4"};
    struct fixture *f = *state;

    for (int i = 0; i < 4; i++) {
        put(f, 0, make(order[i], 1, 2));
        put(f, 1, make(order[3 - i], 3, 2));
    }
    assert_int_equal(compare(f), 0);
    assert_string_equal(f->c.row[0].first_differ, "op a=1");
}

static void a_side_of_two_devices_is_refused(void **state)
{
    struct fixture *f = *state;

    put(f, 0, make("op a=1", 1, 2));
    synthetic_close(&f->side[0]);
    synthetic_open(&f->side[0], f->path[0], GPU, 1.77e9, 3);
    put(f, 0, make("op a=1", 1, 2));
    put(f, 1, make("op a=1", 1, 2));
    assert_int_equal(compare(f), -1);
    assert_int_equal(f->err.kind, ERR_INPUT);
    assert_non_null(strstr(f->err.text, "base records are of two devices"));
}

static void nothing_in_common_is_nothing_compared(void **state)
{
    struct fixture *f = *state;

    put(f, 0, make("op a=1", 1, 2));
    put(f, 1, make("op a=2", 1, 2));
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.cases, 0);
    assert_int_equal(f->c.nrows, 0);
    assert_int_equal(f->c.left_out, 2);
    bits_view(VIEW_TEXT, &f->c, &f->text);
    assert_non_null(strstr(f->text.data, "0 cases compared"));
}

static void views_show_the_counts(void **state)
{
    struct fixture *f = *state;
    json_t *json, *row;

    put(f, 0, make("op a=1", 1, 2));
    put(f, 1, make("op a=1", 1, 3));
    assert_int_equal(compare(f), 0);
    bits_view(VIEW_TEXT, &f->c, &f->text);
    assert_non_null(strstr(f->text.data, "1 of 2 buffers have equal bits"));
    text_clear(&f->text);
    bits_view(VIEW_MARKDOWN, &f->c, &f->text);
    assert_non_null(strstr(f->text.data, "| op | state | 0 | 1 | op a=1 |"));
    text_clear(&f->text);
    bits_json(&f->c, &f->text);
    json = json_loads(f->text.data, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "cases")), 1);
    assert_string_equal(json_string_value(json_object_get(json, "new_device")), GPU);
    row = json_array_get(json_object_get(json, "buffers"), 1);
    assert_string_equal(json_string_value(json_object_get(row, "buffer")), "state");
    assert_int_equal(json_integer_value(json_object_get(row, "equal")), 0);
    assert_int_equal(json_integer_value(json_object_get(row, "of")), 1);
    assert_string_equal(json_string_value(json_object_get(row, "first_differ")), "op a=1");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_by_operator_and_buffer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_what_both_sides_hold_is_compared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_record_of_a_case_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_example_is_the_first_by_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_side_of_two_devices_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_in_common_is_nothing_compared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(views_show_the_counts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
