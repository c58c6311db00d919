/* Comparing record sets: what is worse, what is noted, what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/changes.h"
#include "tests/scratch.h"
#include "tests/synthetic.h"

#define H200 "NVIDIA H200"
#define CPU  "Some CPU (emulated)"

struct fixture {
    struct scratch scratch;
    char path[2][300];
    struct synthetic side[2]; /* base, new */
    struct record_set set[2];
    struct comparison_options opt;
    struct comparison c;
    struct err err;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    scratch_open(&f->scratch);
    scratch_path(&f->scratch, "base.jsonl", f->path[0], sizeof f->path[0]);
    scratch_path(&f->scratch, "new.jsonl", f->path[1], sizeof f->path[1]);
    f->opt = (struct comparison_options){.regress = REGRESS_OPTIONS_INIT};
    f->opt.regress.bootstrap.resamples = 99;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    comparison_release(&f->c);
    records_release(&f->set[0]);
    records_release(&f->set[1]);
    scratch_close(&f->scratch);
    free(f);
    return 0;
}

/* Both sides' runs, on the given devices; their rounds alternate. */
static void open_sides(struct fixture *f, const char *base, const char *next)
{
    synthetic_open(&f->side[0], f->path[0], base, 1.77e9, 1);
    synthetic_open(&f->side[1], f->path[1], next, 1.77e9 + 5.0, 2);
}

/* Closes, reads and compares; returns what comparison_make() does. */
static int compare(struct fixture *f)
{
    for (int i = 0; i < 2; i++) {
        synthetic_close(&f->side[i]);
        if (records_read(f->path[i], &f->set[i], &f->err) < 0)
            fail_msg("%s", f->err.text);
    }
    return comparison_make(&f->set[0], &f->set[1], &f->opt, &f->c, &f->err);
}

static void put_bench(struct fixture *f, int side, const char *text, double us)
{
    synthetic_put_bench(&f->side[side], synthetic_bench(&f->side[side], text, BENCH_COLD, us));
}

static void put_verify(struct fixture *f, int side, const char *text, enum verdict v)
{
    synthetic_put_verify(&f->side[side], synthetic_verify(text, v));
}

/* --- times ------------------------------------------------------------------------------------ */

static void slower_is_worse_and_faster_is_not(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, H200);
    put_bench(f, 0, "op a=1", 50.0);
    put_bench(f, 1, "op a=1", 51.5);
    put_bench(f, 0, "op a=2", 50.0);
    put_bench(f, 1, "op a=2", 45.0);
    put_bench(f, 0, "op a=3", 50.0);
    put_bench(f, 1, "op a=3", 50.0);
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.ntimings, 3);
    assert_int_equal(f->c.timing[0].result.change, CHANGE_SLOWER);
    assert_int_equal(f->c.timing[1].result.change, CHANGE_FASTER);
    assert_int_equal(f->c.timing[2].result.change, CHANGE_SAME);
    assert_true(f->c.timing[0].result.paired);
    assert_int_equal(comparison_worse(&f->c), 1);
    assert_string_equal(f->c.warnings.data, "");
}

static void rounds_may_be_runs_of_their_own(void **state)
{
    struct fixture *f = *state;

    /* Twelve runs a side, alternating: what a CI job does that benches base and head in turn. */
    for (int run = 0; run < 12; run++)
        for (int side = 0; side < 2; side++) {
            struct synthetic s;
            struct bench_record *r;

            synthetic_open(&s, f->path[side], H200, 1.77e9 + 100.0 * run + 50.0 * side,
                           (uint64_t)(2 * run + side));
            r = synthetic_bench(&s, "op a=1", BENCH_HOT, side ? 51.5 : 50.0);
            r->nsamples = SYNTHETIC_PER_ROUND; /* only its first round */
            synthetic_put_bench(&s, r);
            synthetic_close(&s);
        }
    for (int i = 0; i < 2; i++)
        assert_int_equal(records_read(f->path[i], &f->set[i], &f->err), 0);
    assert_int_equal(comparison_make(&f->set[0], &f->set[1], &f->opt, &f->c, &f->err), 0);
    assert_int_equal(f->c.ntimings, 1);
    assert_int_equal(f->c.timing[0].base_rounds.count, 12);
    assert_true(f->c.timing[0].result.paired);
    assert_int_equal(f->c.timing[0].result.change, CHANGE_SLOWER);
}

static void a_launch_that_failed_is_worse(void **state)
{
    struct fixture *f = *state;
    struct bench_record *r;

    open_sides(f, H200, H200);
    put_bench(f, 0, "op a=1", 50.0);
    r = synthetic_bench(&f->side[1], "op a=1", BENCH_COLD, 0.001);
    r->valid = false;
    snprintf(r->reason, sizeof r->reason, "launch failed: CUDA_ERROR_INVALID_VALUE");
    synthetic_put_bench(&f->side[1], r);
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.timing[0].result.change, CHANGE_INVALID);
    assert_non_null(strstr(f->c.timing[0].result.reason, "CUDA_ERROR_INVALID_VALUE"));
    assert_int_equal(comparison_worse(&f->c), 1);
}

static void throttled_and_nan_samples_are_invalid(void **state)
{
    struct fixture *f = *state;
    struct bench_record *r;

    open_sides(f, H200, H200);
    put_bench(f, 1, "op a=1", 50.0);
    put_bench(f, 1, "op a=2", 50.0);
    r = synthetic_bench(&f->side[0], "op a=1", BENCH_COLD, 50.0);
    for (unsigned i = 0; i < r->nsamples; i++)
        r->sample[i].flagged = true;
    synthetic_put_bench(&f->side[0], r);
    r = synthetic_bench(&f->side[0], "op a=2", BENCH_COLD, 50.0);
    r->sample[7].us = NAN64;
    synthetic_put_bench(&f->side[0], r);
    assert_int_equal(compare(f), 0);
    assert_int_equal(comparison_count(&f->c, CHANGE_INVALID), 2);
    assert_non_null(strstr(f->c.timing[0].result.reason, "base: all 48 samples are flagged"));
    assert_non_null(strstr(f->c.timing[1].result.reason, "base: sample 8 of 48 is nan"));
    assert_int_equal(comparison_worse(&f->c), 0); /* the base was no better */
}

static void vanished_timings_are_worse_unless_asked(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, H200);
    put_bench(f, 0, "op a=1", 50.0);
    put_bench(f, 0, "op a=2", 50.0);
    put_bench(f, 1, "op a=2", 50.0);
    put_bench(f, 1, "op a=3", 50.0);
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.npresences, 2);
    assert_int_equal(comparison_worse(&f->c), 1);
    comparison_release(&f->c);
    f->opt.common = true;
    assert_int_equal(comparison_make(&f->set[0], &f->set[1], &f->opt, &f->c, &f->err), 0);
    assert_int_equal(f->c.npresences, 0);
    assert_int_equal(comparison_worse(&f->c), 0);
}

/* --- devices ---------------------------------------------------------------------------------- */

static void other_devices_are_refused(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, "NVIDIA GB10");
    put_bench(f, 0, "op a=1", 50.0);
    put_bench(f, 1, "op a=1", 50.0);
    assert_int_equal(compare(f), -1);
    assert_int_equal(f->err.kind, ERR_INPUT);
    assert_non_null(strstr(f->err.text, "NVIDIA GB10"));
}

static void a_gpu_is_not_its_emulation(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, CPU);
    put_verify(f, 0, "op a=1", VERDICT_PASS);
    put_verify(f, 1, "op a=1", VERDICT_PASS);
    assert_int_equal(compare(f), -1);
}

static void two_devices_on_one_side_are_refused(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, H200);
    put_verify(f, 0, "op a=1", VERDICT_PASS);
    put_verify(f, 1, "op a=1", VERDICT_PASS);
    synthetic_close(&f->side[1]); /* one writer at a time */
    synthetic_open(&f->side[1], f->path[1], "NVIDIA GB10", 0, 9);
    synthetic_put_verify(&f->side[1], synthetic_verify("op a=2", VERDICT_PASS));
    assert_int_equal(compare(f), -1);
    assert_non_null(strstr(f->err.text, "two devices"));
}

static void two_processors_share_bits_not_times(void **state)
{
    struct fixture *f = *state;

    open_sides(f, CPU, "Another CPU (emulated)");
    for (int side = 0; side < 2; side++) {
        put_verify(f, side, "op a=1", VERDICT_PASS);
        put_bench(f, side, "op a=1", side ? 90.0 : 50.0);
    }
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.cases_compared, 1);
    assert_int_equal(f->c.ntimings, 0);
    assert_non_null(strstr(f->c.warnings.data, "two processors"));
    assert_int_equal(comparison_worse(&f->c), 0);
}

static void other_circumstances_are_warned_about(void **state)
{
    struct fixture *f = *state;
    struct bench_record *r;

    open_sides(f, H200, H200);
    snprintf(f->side[1].prov.compiler, sizeof f->side[1].prov.compiler, "clang 14");
    snprintf(f->side[1].device.driver, sizeof f->side[1].device.driver, "581.0");
    synthetic_close(&f->side[1]);
    remove(f->path[1]);
    synthetic_open(&f->side[1], f->path[1], H200, 1.77e9 + 1000.0, 2);
    put_bench(f, 0, "op a=1", 50.0);
    r = synthetic_bench(&f->side[1], "op a=1", BENCH_COLD, 50.0);
    r->reference_clock_mhz = 1700;
    synthetic_put_bench(&f->side[1], r);
    assert_int_equal(compare(f), 0);
    assert_non_null(strstr(f->c.warnings.data, "other SM clock: base 1980 MHz, new 1700 MHz"));
    assert_non_null(strstr(f->c.warnings.data, "not timed in interleaved rounds"));
    comparison_release(&f->c);
    snprintf(f->set[1].run[0].prov.compiler, 16, "clang 14");
    snprintf(f->set[1].run[0].device.driver, 16, "581.0");
    snprintf(f->set[1].run[0].device.uuid, 16, "GPU-2");
    assert_int_equal(comparison_make(&f->set[0], &f->set[1], &f->opt, &f->c, &f->err), 0);
    assert_non_null(strstr(f->c.warnings.data, "other driver: base \"580.65\", new \"581.0\""));
    assert_non_null(strstr(f->c.warnings.data, "other harness compiler"));
    assert_non_null(strstr(f->c.warnings.data, "other board: base \"\", new \"GPU-2\""));
    assert_null(strstr(f->c.warnings.data, "firmware")); /* neither says */
    comparison_release(&f->c);
    snprintf(f->set[0].run[0].device.firmware, 16, "96.00.A5");
    assert_int_equal(comparison_make(&f->set[0], &f->set[1], &f->opt, &f->c, &f->err), 0);
    assert_null(strstr(f->c.warnings.data, "firmware")); /* older records do not */
    comparison_release(&f->c);
    snprintf(f->set[1].run[0].device.firmware, 16, "97.00.01");
    assert_int_equal(comparison_make(&f->set[0], &f->set[1], &f->opt, &f->c, &f->err), 0);
    assert_non_null(
        strstr(f->c.warnings.data, "other firmware: base \"96.00.A5\", new \"97.00.01\""));
}

static void records_of_other_cases_are_refused(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, H200);
    put_bench(f, 0, "op a=1", 50.0);
    put_bench(f, 1, "op a=2", 50.0);
    assert_int_equal(compare(f), -1);
    assert_int_equal(f->err.kind, ERR_INPUT);
    assert_non_null(strstr(f->err.text, "they are of other cases"));
}

/* --- verdicts, outputs, resources ------------------------------------------------------------- */

static void worse_verdicts_are_found(void **state)
{
    static const struct {
        enum verdict base, next;
        bool worse;
    } pairs[] = {
        {VERDICT_PASS, VERDICT_FAIL, true},     {VERDICT_PASS, VERDICT_SKIP, true},
        {VERDICT_PASS, VERDICT_MISTRUST, true}, {VERDICT_FAIL, VERDICT_ERROR, true},
        {VERDICT_FAIL, VERDICT_PASS, false},    {VERDICT_SKIP, VERDICT_PASS, false},
    };
    struct fixture *f = *state;
    size_t n = sizeof pairs / sizeof *pairs;

    open_sides(f, H200, H200);
    for (size_t i = 0; i < n; i++) {
        char text[32];

        snprintf(text, sizeof text, "op a=%zu", i);
        put_verify(f, 0, text, pairs[i].base);
        put_verify(f, 1, text, pairs[i].next);
    }
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.nverdicts, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(f->c.verdict[i].worse, pairs[i].worse);
    assert_int_equal(comparison_worse(&f->c), 4);
}

static void vanished_and_new_cases_are_listed(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, H200);
    put_verify(f, 0, "op a=0", VERDICT_PASS);
    put_verify(f, 1, "op a=0", VERDICT_PASS);
    put_verify(f, 0, "op a=1", VERDICT_PASS);
    put_verify(f, 1, "op a=2", VERDICT_PASS);
    put_verify(f, 1, "op a=3", VERDICT_FAIL);
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.nverdicts, 3);
    assert_true(f->c.verdict[0].worse && !f->c.verdict[0].next);
    assert_true(!f->c.verdict[1].worse && !f->c.verdict[1].base);
    assert_true(f->c.verdict[2].worse); /* a new case that fails is no improvement */
    assert_false(comparison_empty(&f->c));
}

static void the_last_record_of_a_case_counts(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, H200);
    put_verify(f, 0, "op a=1", VERDICT_PASS);
    put_verify(f, 1, "op a=1", VERDICT_FAIL);
    synthetic_close(&f->side[1]); /* one writer at a time */
    synthetic_open(&f->side[1], f->path[1], H200, 0, 9);
    synthetic_put_verify(&f->side[1], synthetic_verify("op a=1", VERDICT_PASS));
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.nverdicts, 0);
    assert_int_equal(f->c.cases_compared, 1);
}

static void changed_ratios_and_bits_are_listed(void **state)
{
    struct fixture *f = *state;
    struct verify_record *r;

    open_sides(f, CPU, CPU);
    for (int i = 0; i < 3; i++) {
        static const char *const texts[] = {"op a=1", "op a=2", "op a=3"};

        put_verify(f, 0, texts[i], VERDICT_PASS);
        r = synthetic_verify(texts[i], VERDICT_PASS);
        if (i == 0)
            r->output[0].ratio_likely = nextafter(0.21, 1.0);
        if (i == 1)
            r->output[0].bits[0] = 'f';
        synthetic_put_verify(&f->side[1], r);
    }
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.noutputs, 2);
    assert_true(f->c.output[0].ratio && !f->c.output[0].bits);
    assert_true(!f->c.output[1].ratio && f->c.output[1].bits);
    assert_int_equal(comparison_worse(&f->c), 0);
}

/* No registers: the record of a machine without a compiler. */
static void put_resources(struct fixture *f, int side, const char *text, uint32_t registers,
                          const char *refused)
{
    struct resources_record r = {.module = "m",
                                 .entry = "kernel",
                                 .arch = "sm_121",
                                 .content = {registers ? 'c' : '\0'},
                                 .registers = registers,
                                 .occupancy = 0.5};

    snprintf(r.case_text, sizeof r.case_text, "%s", text);
    snprintf(r.refused, sizeof r.refused, "%s", refused);
    synthetic_check(store_resources(f->side[side].store, &r, &f->err), &f->err);
}

static void changed_resources_are_listed_once(void **state)
{
    struct fixture *f = *state;

    open_sides(f, CPU, CPU);
    for (int side = 0; side < 2; side++) {
        put_resources(f, side, "op a=1", side ? 96 : 64, "");
        put_resources(f, side, "op a=2", side ? 96 : 64, "");
        put_resources(f, side, "op a=3", 64, side ? "too much shared memory" : "");
    }
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.resources_compared, 3);
    assert_int_equal(f->c.nresources, 2);
    assert_string_equal(f->c.resource[0].what, "registers");
    assert_true(f->c.resource[0].base == 64.0 && f->c.resource[0].next == 96.0);
    assert_int_equal(f->c.resource[0].cases, 2);
    assert_false(f->c.resource[0].worse);
    assert_string_equal(f->c.resource[1].what, "refused");
    assert_true(f->c.resource[1].worse);
    assert_int_equal(comparison_worse(&f->c), 1);
}

static void resources_that_nobody_compiled_are_no_change(void **state)
{
    struct fixture *f = *state;

    open_sides(f, CPU, CPU);
    put_resources(f, 0, "op a=1", 64, "");
    put_resources(f, 1, "op a=1", 0, "");
    put_resources(f, 0, "op a=2", 64, "");
    put_resources(f, 1, "op a=2", 0, "its grid");
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.resources_compared, 2);
    assert_int_equal(f->c.nresources, 1);
    assert_string_equal(f->c.resource[0].what, "refused");
    assert_int_equal(comparison_worse(&f->c), 1);
}

static void a_new_launch_that_is_refused_is_worse(void **state)
{
    struct fixture *f = *state;

    open_sides(f, CPU, CPU);
    put_resources(f, 0, "op a=1", 64, "");
    put_resources(f, 1, "op a=1", 64, "");
    put_resources(f, 1, "op a=2", 64, "");
    put_resources(f, 1, "op a=3", 64, "too much shared memory");
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.nresources, 1);
    assert_string_equal(f->c.resource[0].case_text, "op a=3");
    assert_int_equal(comparison_worse(&f->c), 1);
}

/* What the driver said of a timed kernel, and how it was compiled. */
static void kernels_of_timed_cases_are_compared(void **state)
{
    struct fixture *f = *state;

    open_sides(f, H200, H200);
    for (int side = 0; side < 2; side++)
        for (int t = BENCH_COLD; t <= BENCH_HOT; t++) {
            struct bench_record *r =
                synthetic_bench(&f->side[side], "op a=1", (enum temperature)t, 50.0);

            r->nkernels = 1;
            r->kernel[0] = (struct kernel_stamp){
                .module = "m", .entry = "kernel", .registers = side ? 168 : 64};
            snprintf(r->kernel[0].flags, sizeof r->kernel[0].flags, "nvcc %s", side ? "13" : "12");
            synthetic_put_bench(&f->side[side], r);
        }
    assert_int_equal(compare(f), 0);
    assert_int_equal(f->c.nresources, 1);
    assert_string_equal(f->c.resource[0].what, "registers");
    assert_true(f->c.resource[0].next == 168.0);
    assert_int_equal(f->c.resource[0].cases, 1);
    assert_non_null(strstr(f->c.warnings.data,
                           "other compiler of the kernels: base \"nvcc 12\", new \"nvcc 13\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(slower_is_worse_and_faster_is_not),
        TEST(rounds_may_be_runs_of_their_own),
        TEST(a_launch_that_failed_is_worse),
        TEST(throttled_and_nan_samples_are_invalid),
        TEST(vanished_timings_are_worse_unless_asked),
        TEST(other_devices_are_refused),
        TEST(a_gpu_is_not_its_emulation),
        TEST(two_devices_on_one_side_are_refused),
        TEST(two_processors_share_bits_not_times),
        TEST(other_circumstances_are_warned_about),
        TEST(records_of_other_cases_are_refused),
        TEST(worse_verdicts_are_found),
        TEST(vanished_and_new_cases_are_listed),
        TEST(the_last_record_of_a_case_counts),
        TEST(changed_ratios_and_bits_are_listed),
        TEST(changed_resources_are_listed_once),
        TEST(resources_that_nobody_compiled_are_no_change),
        TEST(a_new_launch_that_is_refused_is_worse),
        TEST(kernels_of_timed_cases_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
