/*
 * The bytes of the cost models, proven: each operator's kernels run on the CPU device as modules
 * that report every access, and the compulsory bytes that the model states must be bytes that a run
 * touches. Were a model above them, the floor would be too high and a right kernel "faster than
 * possible"; where it is below, the table says by how much and why.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/case_select.h"
#include "device/kernel_set.h"
#include "device/launch.h"
#include "measure/runner_state.h"
#include "tests/touched_bytes.h"

#include <cmocka.h> /* last, as everywhere in the tests */

#define MODULES "build/kernels/cpu-counting"

/* Times the model's bytes that a run may touch; exactly them for operators that are not here. */
static const struct slack {
    const char *op;
    double read, write;
} slacks[] = {
    /* pointer tables, flags, counts of accepted rows; fold reads the gates of rows not accepted */
    {"gdn_batch", 1.001, 1.001},
    {"gdn_fold", 1.01, 1},
    {"gdn_restore", 1.001, 1.001},
    {"gdn_strided", 1.001, 1.001},
    {"gdn_verify", 1.001, 1.001},
    {"gdn_woa", 1.001, 1.001},
    {"gdn_wy4", 1.001, 1.001},
    /* and where a step accepts nothing, nothing is written back */
    {"gdn_chain", 1.001, 1.25},
    /* the oldest of the d_conv inputs in the state is not needed, but read with the others */
    {"kda_conv_decode", 4.0 / 3.0, 1},
    {"kda_conv_prefill", 4.0 / 3.0, 1},
    /* what one kernel hands to the next passes through memory, but need not */
    {"kda_chunk_pair", 1, 3},
    {"kda_prefill_split", 1, 3},
    {"kda_decode_layer", 1, 5},
    {"kda_decode_k", 1, 5},
    {"kda_prefill_layer", 1, 5},
    {"kda_decode_vs_prefill", 1, 5},
};

static struct device *device;
static struct kernel_set *set;

static int set_up(void **state)
{
    struct err err = ERR_INIT;
    struct schedule one = {.order = ORDER_FORWARD, .workers = 1};

    (void)state;
    if (device_open("cpu", &device, &err) < 0 || kernel_set_open(device, MODULES, &set, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    device_set_schedule(device, &one);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernel_set_close(set);
    device_close(device);
    return 0;
}

/* NULL when the model's bytes fit what was touched; else what is wrong with them. */
static const char *misfit(double model, double seen, double most)
{
    if (!(model <= seen))
        return "more than a run touches: the floor is too high";
    return seen <= most * model ? NULL : "a run touches more";
}

static void assert_fits(const char *text, const char *what, double model, double seen, double most)
{
    const char *why = misfit(model, seen, most);

    if (why)
        fail_msg("%s: the model has %.0f bytes %s, %.0f were (at most %.4g times): %s", text, model,
                 what, seen, most, why);
}

/* --- the counter, on kernels whose bytes are known -------------------------------------------- */

static void copy(const char *entry, uint32_t vectors)
{
    struct kernel *kernel;
    struct err err = ERR_INIT;
    struct launch l;
    dev_ptr src = 0, dst = 0;
    size_t bytes = 16 * (size_t)vectors;

    if (kernel_set_find(set, "bench_memory", entry, &kernel, &err) < 0 ||
        device_alloc(device, bytes, "src", &src, &err) < 0 ||
        device_alloc(device, bytes, "dst", &dst, &err) < 0)
        fail_msg("%s", err.text);
    touched_watch((void *)(uintptr_t)src, bytes);
    touched_watch((void *)(uintptr_t)dst, bytes);
    launch_init(&l, kernel);
    launch_grid(&l, 3, 1, 1);
    launch_block(&l, 64, 1, 1);
    launch_ptr(&l, src);
    launch_ptr(&l, dst);
    launch_u32(&l, vectors);
    if (launch_submit(&l, &err) < 0 || device_sync(device, &err) < 0)
        fail_msg("%s", err.text);
    device_free(device, src);
    device_free(device, dst);
}

static void test_a_copy_reads_and_writes_its_bytes(void **data)
{
    static const uint32_t sizes[] = {1, 191, 192, 193, 769, 10000}; /* vectors; 192 threads */

    (void)data;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double bytes = 16.0 * sizes[i];

        copy("bench_copy", sizes[i]);
        assert_true(touched_bytes(TOUCHED_READ) == bytes);
        assert_true(touched_bytes(TOUCHED_WRITE) == bytes);
        touched_forget();
        copy("bench_read", sizes[i]);
        assert_true(touched_bytes(TOUCHED_READ) == bytes);
        assert_true(touched_bytes(TOUCHED_WRITE) <= 4); /* the sink, once in 2^32 */
        touched_forget();
    }
}

/* What a launch wrote itself does not come from memory. */
static void test_what_was_written_is_not_read(void **data)
{
    unsigned char bytes[8];

    (void)data;
    touched_watch(bytes, sizeof bytes);
    touch(bytes, 4, TOUCHED_READ);
    touch(bytes + 2, 4, TOUCHED_WRITE);
    touch(bytes, 8, TOUCHED_READ);
    assert_true(touched_bytes(TOUCHED_READ) == 6); /* 0-3 before, then 6 and 7 */
    assert_true(touched_bytes(TOUCHED_WRITE) == 4);
    touch(bytes + 8, 4, TOUCHED_READ);
    assert_true(touched.elsewhere == 1);
    touched_forget();
}

static void test_a_wrong_model_is_seen(void **data)
{
    (void)data;
    assert_null(misfit(1000, 1000, 1));
    assert_null(misfit(0, 0, 1));
    assert_non_null(misfit(1001, 1000, 1));
    assert_non_null(misfit(500, 1000, 1));
    assert_null(misfit(500, 1000, 2));
    assert_non_null(misfit(NAN64, 1000, 1));
}

/* --- the operators ---------------------------------------------------------------------------- */

static const struct slack *slack_of(const char *op)
{
    static const struct slack none = {"", 1, 1};

    for (size_t i = 0; i < sizeof slacks / sizeof slacks[0]; i++)
        if (!strcmp(slacks[i].op, op))
            return &slacks[i];
    return &none;
}

static void check_case(const struct test_case *tc)
{
    const struct slack *slack = slack_of(tc->op->name);
    struct runner_options opt = {.workers = 1};
    struct cost cost = {0};
    struct err err = ERR_INIT;
    struct runner *r;

    if (runner_open(device, set, tc, &opt, &r, &err) < 0 || runner_restore(r, &err) < 0)
        fail_msg("%s: %s", tc->text, err.text);
    for (unsigned i = 0; i < r->problem.count; i++)
        touched_watch((void *)(uintptr_t)r->ptr[i], r->problem.buffer[i].bytes);
    if (runner_launch(r, &err) < 0 || device_sync(device, &err) < 0)
        fail_msg("%s: %s", tc->text, err.text);
    tc->op->cost(&r->problem, &cost);
    assert_fits(tc->text, "read", cost.read_bytes, touched_bytes(TOUCHED_READ), slack->read);
    assert_fits(tc->text, "written", cost.write_bytes, touched_bytes(TOUCHED_WRITE), slack->write);
    touched_forget();
    runner_close(r);
}

/* A case may run its kernel twice to compare; what is timed are the cases that do not. */
static void without_twin(struct test_case *tc, struct case_list *list)
{
    char text[sizeof tc->text], *twin;
    struct err err = ERR_INIT;

    snprintf(text, sizeof text, "%s", tc->text);
    twin = strstr(text, " twin=1");
    if (twin)
        twin[6] = '0';
    if (case_line_expand(text, TIER_SMOKE, list, &err) < 0)
        fail_msg("%s: %s", text, err.text);
}

static void test_every_operator(void **data)
{
    const struct words all = {0};
    const struct case_selection sel = {.dir = "cases", .tiers = "smoke", .patterns = &all};
    struct case_list smoke, single;
    struct err err = ERR_INIT;
    size_t operators = 0;

    (void)data;
    case_list_init(&smoke);
    case_list_init(&single);
    if (cases_select(&sel, &smoke, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < smoke.count; i++)
        without_twin(&smoke.items[i], &single);
    for (size_t i = 0; i < single.count; i++) {
        check_case(&single.items[i]);
        operators += i == 0 || single.items[i].op != single.items[i - 1].op;
    }
    assert_int_equal(operators, operator_count);
    case_list_release(&single);
    case_list_release(&smoke);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_reads_and_writes_its_bytes),
        cmocka_unit_test(test_what_was_written_is_not_read),
        cmocka_unit_test(test_a_wrong_model_is_seen),
        cmocka_unit_test(test_every_operator),
    };

    return cmocka_run_group_tests_name("bytes of the cost models", tests, set_up, tear_down);
}
