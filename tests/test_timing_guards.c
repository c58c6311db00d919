/* Every guard of a measurement, sprung by made-up samples; and the roofs, ceilings' sentinel
   and device sheets that they rest on. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "measure/ceilings.h"
#include "measure/validity.h"

/* After the headers: it has a macro of the name of a function of problem/golden.h. */
#include <cmocka.h>

#define SAMPLES 24

struct fixture {
    struct bench_record r;
    struct bench_sample s[SAMPLES];
    struct roof_floor floor;
};

/* A record that is fine: 100 us with a little scatter, a floor of 80 us, a healthy clock. */
static void set_up(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->floor = (struct roof_floor){80, "memory", 80};
    f->r.sample = f->s;
    f->r.nsamples = SAMPLES;
    f->r.launches_per_sample = 1;
    f->r.event_tick_us = 0.5;
    for (unsigned i = 0; i < SAMPLES; i++)
        f->s[i] = (struct bench_sample){.us = 100 + 0.01 * (i % 5), .sm_clock_mhz = 1900};
}

static void assert_outcome(struct fixture *f, bool valid, const char *reason)
{
    bench_settle(&f->r, 1900, &f->floor, 0.005);
    if (f->r.valid != valid || !strstr(f->r.reason, reason) || (!*reason && f->r.reason[0]))
        fail_msg("%s: \"%s\", expected %s: \"...%s...\"", f->r.valid ? "valid" : "INVALID",
                 f->r.reason, valid ? "valid" : "INVALID", reason);
}

static void test_valid(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    assert_outcome(&f, true, "");
    assert_true(f.r.converged);
    assert_true(f.r.median_us > 100 && f.r.median_us < 100.05);
    assert_true(f.r.low_us <= f.r.median_us && f.r.high_us >= f.r.median_us);
    assert_string_equal(f.r.roof, "memory");
    assert_true(fabs(f.r.roof_percent - 80) < 0.1);
}

static void test_no_sample(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    f.r.nsamples = 0;
    assert_outcome(&f, false, "no sample was taken");
    assert_true(isnan(f.r.median_us));
}

static void test_samples_that_are_no_times(void **data)
{
    const double bad[] = {NAN64, INF64, -INF64, 0, -1};

    (void)data;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fixture f;

        set_up(&f);
        f.s[7].us = bad[i];
        assert_outcome(&f, false, "sample 7 of 24 is ");
        assert_true(isnan(f.r.median_us)); /* no number that a reader could take for a time */
    }
}

static void test_throttled_samples_are_left_out(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    for (unsigned i = 0; i < 6; i++) {
        f.s[i].us = 150;
        f.s[i].sm_clock_mhz = 1000;
    }
    assert_outcome(&f, true, "6 of 24 samples were throttled or below 90% of the run's 1900 MHz");
    assert_true(f.r.median_us < 101);
    assert_true(f.s[0].flagged && !f.s[6].flagged);
    set_up(&f);
    f.s[3].throttle = 0x40;
    assert_outcome(&f, true, "1 of 24 samples were throttled");
    assert_non_null(strstr(f.r.reason, "hw-thermal"));
}

static void test_all_throttled(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    for (unsigned i = 0; i < SAMPLES; i++)
        f.s[i].throttle = 0x8 | 0x80;
    assert_outcome(&f, false, "24 of 24 samples were throttled");
    assert_non_null(strstr(f.r.reason, "hw-slowdown, hw-power-brake"));
    assert_true(isnan(f.r.median_us));
    set_up(&f);
    for (unsigned i = 0; i < SAMPLES; i++)
        f.s[i].sm_clock_mhz = 1709; /* 89.9% */
    assert_outcome(&f, false, "24 of 24 samples");
}

static void test_clocks_that_cannot_be_read_flag_nothing(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    for (unsigned i = 0; i < SAMPLES; i++)
        f.s[i].sm_clock_mhz = NAN64;
    bench_settle(&f.r, NAN64, &f.floor, 0.005);
    assert_true(f.r.valid);
    assert_string_equal(f.r.reason, "");
    set_up(&f);
    for (unsigned i = 0; i < SAMPLES; i++)
        f.s[i].throttle = 0x1 | 0x4; /* idle, power cap: judged by the clock itself */
    assert_outcome(&f, true, "");
}

static void test_faster_than_possible(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    f.floor.least_us = f.floor.us = 101;
    assert_outcome(&f, false, "faster than possible: 100 us");
    assert_non_null(strstr(f.r.reason, "the roofs measured in this run allow no less than 101 us"));
    set_up(&f);
    f.floor = (struct roof_floor){150, "compute", 50}; /* fp32 work on a faster unit */
    assert_outcome(&f, true, "");
    assert_true(fabs(f.r.roof_percent * f.r.median_us - 100 * 150) < 1e-6);
    set_up(&f);
    f.floor.least_us = f.floor.us = 100.01; /* within the interval: not proven */
    assert_outcome(&f, true, "");
    set_up(&f);
    f.r.nsamples = 3; /* no interval, but every one of them is too fast */
    f.floor.least_us = f.floor.us = 101;
    assert_outcome(&f, false, "faster than possible");
    set_up(&f);
    f.floor = (struct roof_floor){NAN64, "", NAN64}; /* nothing measured to hold it against */
    assert_outcome(&f, true, "");
    assert_true(isnan(f.r.roof_percent));
    assert_string_equal(f.r.roof, "");
}

static void test_too_few_ticks(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    f.floor.least_us = f.floor.us = 0;
    f.r.event_tick_us = 11;
    assert_outcome(&f, false, "spans only 9.1 ticks of the 11 us timer");
    set_up(&f);
    f.r.event_tick_us = 11;
    f.r.launches_per_sample = 2; /* the window is twice as long */
    assert_outcome(&f, true, "");
    set_up(&f);
    f.r.event_tick_us = NAN64;
    assert_outcome(&f, true, "");
}

static void test_not_converged_is_said(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    for (unsigned i = 0; i < SAMPLES; i += 2)
        f.s[i].us = 130;
    assert_outcome(&f, true, "its rounds or its budget were spent before the interval closed");
    assert_false(f.r.converged);
}

static void test_an_earlier_reason_stays(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    strcpy(f.r.reason, "not timed: FAIL: golden");
    assert_outcome(&f, false, "not timed: FAIL: golden");
    assert_true(isnan(f.r.median_us));
}

static void test_run_clock(void **data)
{
    struct fixture a, b;
    const struct bench_record *both[] = {&a.r, &b.r};

    (void)data;
    set_up(&a);
    set_up(&b);
    for (unsigned i = 0; i < 10; i++)
        b.s[i].sm_clock_mhz = NAN64;
    b.s[11].sm_clock_mhz = 300;
    assert_true(run_clock_mhz(both, 2) == 1900);
    assert_true(isnan(run_clock_mhz(both, 0)));
}

/* --- roofs ------------------------------------------------------------------------------------ */

/* 1000 bytes/us from DRAM at best, 10000 from the L2 of 4000 bytes, 100 flops/us. */
static const struct roofs roofs = {
    .dram_read = 1000,
    .dram_write = 800,
    .dram_copy = 900,
    .l2_read = 10000,
    .ffma = 100,
    .bf16_mma = 1000,
    .l2_bytes = 4000,
};

static void assert_floor(double read, double write, double flops, enum temperature t, double us,
                         const char *roof)
{
    struct cost c = {.read_bytes = read, .write_bytes = write, .flops = flops, .unit = COST_FP32};
    struct roof_floor f = roof_floor(&c, &roofs, t);

    if (!(fabs(f.us - us) < 1e-9) || strcmp(f.roof, roof))
        fail_msg("%g us by %s, expected %g by %s", f.us, f.roof, us, roof);
}

static void test_floor(void **data)
{
    struct roofs unknown = roofs;
    struct cost c = {.read_bytes = 1, .unit = COST_FP32};

    (void)data;
    assert_floor(10000, 0, 0, BENCH_COLD, 10, "memory");
    assert_floor(10000, 3000, 0, BENCH_COLD, 10.3, "memory"); /* writes may stay in the L2 */
    assert_floor(0, 14000, 0, BENCH_COLD, 10.4, "memory");    /* ...as far as it is large */
    assert_floor(3000, 1000, 0, BENCH_HOT, 0.4, "memory");    /* all of it in the L2 */
    assert_floor(10000, 4000, 0, BENCH_HOT, 10.4, "memory");
    assert_floor(1000, 0, 500, BENCH_COLD, 5, "compute");
    assert_floor(0, 0, 0, BENCH_COLD, 0, "memory");
    c.flops = 500; /* 5 us of fp32 multiply-adds, 0.5 us on the matrix units */
    assert_true(fabs(roof_floor(&c, &roofs, BENCH_COLD).us - 5) < 1e-9);
    assert_true(fabs(roof_floor(&c, &roofs, BENCH_COLD).least_us - 0.5) < 1e-9);
    c.flops = 0;
    unknown.dram_write = NAN64;
    assert_true(isnan(roof_floor(&c, &unknown, BENCH_COLD).us));
    assert_true(isnan(roof_floor(&c, &unknown, BENCH_COLD).least_us));
    roofs_init(&unknown);
    assert_true(isnan(roof_floor(&c, &unknown, BENCH_HOT).us));
}

/* --- sentinel --------------------------------------------------------------------------------- */

static void test_sentinel(void **data)
{
    const struct sentinel healthy = {240, 214}, slow = {73, 214}, broken = {NAN64, 214};
    const struct sentinel drifted = {200, 180};
    char why[400];

    (void)data;
    assert_false(sentinel_slow(&healthy, why, sizeof why));
    assert_true(sentinel_slow(&slow, why, sizeof why)); /* GEMV 3.3 times slower, copy unchanged */
    assert_non_null(strstr(why, "73 GB/s while copies run at 214 GB/s"));
    assert_true(sentinel_slow(&broken, why, sizeof why));
    assert_false(sentinel_slow(&drifted, why, sizeof why));
    assert_true(sentinel_drifted(&healthy, &drifted, why, sizeof why));
    assert_false(sentinel_drifted(&healthy, &healthy, why, sizeof why));
    assert_true(sentinel_drifted(&healthy, &broken, why, sizeof why));
}

/* --- sheets ----------------------------------------------------------------------------------- */

static void test_our_sheets(void **data)
{
    struct cost c = {.read_bytes = 249e6, .write_bytes = 197e6, .flops = 30e9, .unit = COST_FP32};
    struct device_sheet gb10, h200;
    struct err err = ERR_INIT;
    bool found = false;

    (void)data;
    if (device_sheet_find("cases/devices", "NVIDIA GB10", &gb10, &found, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(found);
    assert_int_equal(gb10.sm_count, 48);
    assert_int_equal(gb10.sm.threads, 1536);
    assert_true(device_sheet_figure(&gb10, "dram_copy")->value == 214);
    assert_true(device_sheet_figure(&gb10, "dram_copy")->published);
    assert_true(device_sheet_figure(&gb10, "dram")->value == 273);
    assert_null(device_sheet_figure(&gb10, "absent"));
    assert_true(fabs(roof_from_sheet(&c, &gb10) - 2000) < 1e-6); /* 1000 + 1000 us; flops 1000 */
    c.unit = COST_BF16_MMA;
    c.flops = 123.7e10;
    assert_true(fabs(roof_from_sheet(&c, &gb10) - 10000) < 1e-6);
    assert_int_equal(device_sheet_find("cases/devices", "NVIDIA H200", &h200, &found, &err), 0);
    assert_true(found);
    assert_true(device_sheet_figure(&h200, "dram")->value == 4800);
    assert_int_equal(device_sheet_find("cases/devices", "Other", &h200, &found, &err), 0);
    assert_false(found);
}

static void assert_sheet_refused(const char *text, const char *why)
{
    char path[64];
    struct device_sheet sheet;
    struct err err = ERR_INIT;
    int fd;

    snprintf(path, sizeof path, "build/tests/sheet-%d.ini", (int)getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (long)strlen(text));
    close(fd);
    assert_int_equal(device_sheet_read(path, &sheet, &err), -1);
    unlink(path);
    assert_int_equal(err.kind, ERR_INPUT);
    if (!strstr(err.text, why))
        fail_msg("got \"%s\", expected \"...%s...\"", err.text, why);
}

static void test_bad_sheets(void **data)
{
    (void)data;
    assert_sheet_refused("", "[device] needs name");
    assert_sheet_refused("name = x\n", ":1: expected \"key = value\" within a section");
    assert_sheet_refused("; c\n[gpu]\n", ":2: unknown section");
    assert_sheet_refused("[device]\nsms = 4\n", ":2: unknown key");
    assert_sheet_refused("[device]\nsm_count = -4\n", "a whole number above 0: \"-4\"");
    assert_sheet_refused("[device]\nsm_count = 99999999999\n", "a whole number above 0");
    assert_sheet_refused("[device]\ncompute_capability = 12\n", "such as 12.1");
    assert_sheet_refused("[published]\ndram = 5 GB/s\n", "needs a \"source = ...\" line");
    assert_sheet_refused("[published]\nsource = s\ndram = fast\n", "a number and its unit");
    assert_sheet_refused("[published]\nsource = s\ndram = nan GB/s\n", "a number and its unit");
    assert_sheet_refused("[published]\nsource = s\ndram = 5 GB/s x\n", "a number and its unit");
    assert_sheet_refused("[published]\nsource = s\ndram = 5 MB/s\n", "unknown unit");
    assert_sheet_refused("[sm]\nwarps = 5\n", "unknown key of [sm]");
    assert_sheet_refused("[sm]\nthreads\n", "expected \"key = value\"");
    assert_sheet_refused("[sm]\nthreads =\n", "one side is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_no_sample),
        cmocka_unit_test(test_samples_that_are_no_times),
        cmocka_unit_test(test_throttled_samples_are_left_out),
        cmocka_unit_test(test_all_throttled),
        cmocka_unit_test(test_clocks_that_cannot_be_read_flag_nothing),
        cmocka_unit_test(test_faster_than_possible),
        cmocka_unit_test(test_too_few_ticks),
        cmocka_unit_test(test_not_converged_is_said),
        cmocka_unit_test(test_an_earlier_reason_stays),
        cmocka_unit_test(test_run_clock),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_sentinel),
        cmocka_unit_test(test_our_sheets),
        cmocka_unit_test(test_bad_sheets),
    };

    return cmocka_run_group_tests_name("measurement guards", tests, NULL, NULL);
}
