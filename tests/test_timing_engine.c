/*
 * The timing engine on a simulated GPU: it can be told what every sample must be, and whether
 * anything slipped into a window.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "measure/timing.h"
#include "tests/sim_gpu.h"

/* --- fixture ---------------------------------------------------------------------------------- */

struct fixture {
    struct sim sim;
    struct sim_kernel read, empty, kernel, reloaded; /* reloaded: the kernel at another place */
    bool elsewhere;                                  /* it is the one that is launched */
    struct timing_rig rig;
    struct timing_subject subject;
    bool launch_fails;
};

static struct kernel sim_kernel_of(struct sim *s, const char *entry, const char *kinds)
{
    struct kernel k = {.device = &s->base, .nparams = (unsigned)strlen(kinds)};

    strcpy(k.entry, entry);
    strcpy(k.param_kind, kinds);
    for (unsigned i = 0; i < k.nparams; i++)
        k.param_size[i] = kinds[i] == 'p' ? 8 : 4;
    return k;
}

static int launch_subject(void *ctx, struct err *err)
{
    struct fixture *f = ctx;
    struct launch l;

    if (f->launch_fails)
        return err_set(err, ERR_REFUSED, "simulated refusal");
    launch_init(&l, f->elsewhere ? &f->reloaded.base : &f->kernel.base);
    return launch_submit(&l, err);
}

static int restore_subject(void *ctx, struct err *err)
{
    struct fixture *f = ctx;

    (void)err;
    f->sim.restores++;
    f->sim.since_restore = 0;
    f->sim.l2_empty = false; /* the copy leaves the data in the L2 */
    f->sim.now_us += RESTORE_US;
    return 0;
}

static int set_up(void **data)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct err err = ERR_INIT;

    f->sim.base.ops = &sim_ops;
    f->sim.base.info.kind = DEVICE_CUDA;
    f->sim.base.info.limits = gb10_limits;
    f->sim.base.info.sm_count = 48;
    f->sim.base.info.l2_bytes = L2_BYTES;
    f->read.base = sim_kernel_of(&f->sim, "bench_read", "ppu");
    f->read.evicts = true;
    f->empty.base = sim_kernel_of(&f->sim, "bench_empty", "");
    f->empty.cold_us = f->empty.hot_us = EMPTY_US;
    f->kernel.base = sim_kernel_of(&f->sim, "subject", "");
    f->kernel.cold_us = 40;
    f->kernel.hot_us = 10;
    f->reloaded = f->kernel;
    f->reloaded.cold_us = 48;
    f->subject = (struct timing_subject){launch_subject, restore_subject, f};
    if (timing_rig_open(&f->sim.base, &f->read.base, &f->empty.base, NULL, &f->rig, &err) < 0)
        fail_msg("%s", err.text);
    *data = f;
    return 0;
}

static int tear_down(void **data)
{
    struct fixture *f = *data;

    timing_rig_close(&f->rig);
    free(f);
    return 0;
}

static void begin(struct fixture *f, enum temperature temperature, struct timing *t)
{
    struct timing_params p = timing_params_default(&f->sim.base.info, temperature);
    struct err err = ERR_INIT;

    if (timing_begin(&f->rig, &f->subject, &p, t, &err) < 0)
        fail_msg("%s", err.text);
}

static void one_round(struct fixture *f, struct timing *t, unsigned r)
{
    struct err err = ERR_INIT;

    if (timing_round(&f->rig, t, r, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%g, expected %g within %g", value, expected, tolerance);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_rig_measures_its_own_cost(void **data)
{
    struct fixture *f = *data;

    assert_int_equal(f->rig.evict_bytes, EVICT_FACTOR * L2_BYTES);
    assert_near(f->rig.launch_overhead_us, EMPTY_US, TICK_US / 32);
    assert_near(f->rig.window_cost_us, WINDOW_US, TICK_US);
    /* A profiler's duration of the empty kernel is longer: it leaves less to subtract. */
    const double period = f->rig.launch_overhead_us;
    timing_rig_empty_kernel(&f->rig, period + 1);
    assert_near(f->rig.window_cost_us, WINDOW_US - 1, TICK_US);
    timing_rig_empty_kernel(&f->rig, f->rig.empty_window_us + 1);
    assert_true(f->rig.window_cost_us == 0);
    timing_rig_empty_kernel(&f->rig, period);
    assert_near(f->rig.evict_us, READ_US, 1);
}

static void test_cold_sees_an_empty_l2_and_nothing_else(void **data)
{
    struct fixture *f = *data;
    struct timing t;

    begin(f, BENCH_COLD, &t);
    one_round(f, &t, 3);
    assert_int_equal(t.launches, 1);
    assert_true(t.nsamples >= t.params.min_per_round);
    for (unsigned i = 0; i < t.nsamples; i++) {
        assert_near(t.sample[i].us, 40,
                    TICK_US); /* neither 10, nor with the flush or the restore */
        assert_int_equal(t.sample[i].round, 3);
        assert_true(isnan(t.sample[i].sm_clock_mhz)); /* no NVML: not known, not 0 */
        assert_false(t.sample[i].flagged);
    }
    timing_end(&t);
}

static void test_hot_runs_many_and_is_warm(void **data)
{
    struct fixture *f = *data;
    struct timing t;

    begin(f, BENCH_HOT, &t);
    one_round(f, &t, 0);
    assert_true(t.launches * 10.0 >= t.params.window_us / 4 && t.launches > 1);
    for (unsigned i = 0; i < t.nsamples; i++)
        assert_near(t.sample[i].us, 10, TICK_US / t.launches);
    timing_end(&t);
}

static void test_state_is_restored_before_each_sample(void **data)
{
    struct fixture *f = *data;
    struct timing t;
    unsigned before;

    begin(f, BENCH_COLD, &t);
    before = f->sim.restores;
    one_round(f, &t, 0);
    assert_int_equal(f->sim.restores - before, t.nsamples);
    assert_int_equal(f->sim.since_restore,
                     1); /* a cold sample is the first run on a restored state */
    timing_end(&t);
    begin(f, BENCH_HOT, &t);
    one_round(f, &t, 0);
    assert_int_equal(f->sim.since_restore, 1 + t.launches);
    timing_end(&t);
}

/* A graph keeps the kernels that it was recorded with, until it is recorded anew. */
static void test_kernels_loaded_anew_are_timed_once_renewed(void **data)
{
    struct fixture *f = *data;
    struct timing t;
    struct err err = ERR_INIT;
    unsigned before;

    begin(f, BENCH_COLD, &t);
    f->elsewhere = true;
    one_round(f, &t, 0);
    assert_near(t.sample[0].us, 40, TICK_US);
    before = t.nsamples;
    if (timing_renew(&f->rig, &t, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(t.nsamples, before); /* its runs are no samples */
    one_round(f, &t, 1);
    assert_near(t.sample[before].us, 48, TICK_US);
    f->launch_fails = true;
    assert_int_equal(timing_renew(&f->rig, &t, &err), -1);
    assert_string_equal(err.text, "simulated refusal");
    timing_end(&t);
}

static void test_short_kernels_stay_resolved(void **data)
{
    struct fixture *f = *data;
    struct timing t;

    f->kernel.cold_us = f->kernel.hot_us = 2; /* four ticks */
    begin(f, BENCH_HOT, &t);
    one_round(f, &t, 0);
    for (unsigned i = 0; i < t.nsamples; i++)
        assert_near(t.sample[i].us, 2, 0.05);
    timing_end(&t);
}

static void test_a_long_kernel_is_not_multiplied(void **data)
{
    struct fixture *f = *data;
    struct timing t;

    f->kernel.cold_us = f->kernel.hot_us = 5000;
    begin(f, BENCH_HOT, &t);
    assert_int_equal(t.launches, 1);
    timing_end(&t);
}

static void test_without_a_restore(void **data)
{
    struct fixture *f = *data;
    struct timing t;

    f->subject.restore = NULL;
    begin(f, BENCH_COLD, &t);
    one_round(f, &t, 0);
    assert_near(t.sample[0].us, 40, TICK_US);
    timing_end(&t);
}

/* A launch that is refused and a kernel that faults must end the timing, not become fast
   samples. */
static void test_failures_are_not_samples(void **data)
{
    struct fixture *f = *data;
    struct timing_params p = timing_params_default(&f->sim.base.info, BENCH_COLD);
    struct err err = ERR_INIT;
    struct timing t;

    f->launch_fails = true;
    assert_int_equal(timing_begin(&f->rig, &f->subject, &p, &t, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    assert_string_equal(err.text, "cold: simulated refusal");
    f->launch_fails = false;
    begin(f, BENCH_COLD, &t);
    f->sim.fail_sync = true;
    assert_int_equal(timing_round(&f->rig, &t, 0, &err), -1);
    assert_int_equal(err.kind, ERR_FAULT);
    assert_int_equal(t.nsamples, 0);
    f->sim.fail_sync = false;
    timing_end(&t);
}

static void test_stop_rule(void **data)
{
    struct bench_sample s[40];

    (void)data;
    memset(s, 0, sizeof s);
    for (unsigned i = 0; i < 40; i++)
        s[i].us = 100 + 0.01 * (i % 7);
    assert_true(timing_converged(s, 40, 0.005));
    assert_false(timing_converged(s, 5, 0.005)); /* too few for an interval */
    assert_false(timing_converged(s, 0, 0.005));
    for (unsigned i = 0; i < 40; i += 2)
        s[i].us = 110;
    assert_false(timing_converged(s, 40, 0.005));
    s[3].us = NAN64;
    assert_false(timing_converged(s, 40, 1e9));
}

/* Nine rounds at 100 us, four at 103: every sample agrees with its round, so more of them would not
   help; more rounds would. */
static void test_rounds_that_differ_want_more_rounds(void **data)
{
    struct bench_sample s[13 * 10];
    struct timing t = {.sample = s, .nsamples = 13 * 10};
    struct interval i;

    (void)data;
    memset(s, 0, sizeof s);
    for (unsigned k = 0; k < 13 * 10; k++) {
        s[k].round = k / 10;
        s[k].us = s[k].round % 3 == 1 ? 103 : 100;
    }
    t.params.precision = 0.005;
    t.params.budget_s = 1;
    i = timing_interval(s, t.nsamples);
    assert_true(i.low == 100 && i.high == 103);
    assert_true(timing_round_has_enough(&t));
    assert_true(timing_wants_more(&t));
    t.spent_s = 1;
    assert_false(timing_wants_more(&t));
    t.spent_s = 0;
    for (unsigned k = 0; k < 13 * 10; k++)
        s[k].us = 100 + 0.01 * (k % 7);
    assert_false(timing_wants_more(&t));
}

static void test_noise_takes_samples_until_the_budget_is_spent(void **data)
{
    struct fixture *f = *data;
    struct timing t;

    begin(f, BENCH_COLD, &t);
    t.params.precision = -1; /* never reached */
    t.params.max_per_round = 50;
    t.params.budget_s = 1e9;
    one_round(f, &t, 0);
    assert_int_equal(t.nsamples, 50);
    t.params.budget_s = 0; /* spent: what a round needs at least is taken all the same */
    one_round(f, &t, 1);
    assert_int_equal(t.nsamples, 50 + t.params.min_per_round);
    assert_int_equal(t.sample[t.nsamples - 1].round, 1);
    t.params.long_run_us = t.estimate_us / 2; /* a long run: one */
    one_round(f, &t, 2);
    assert_int_equal(t.nsamples, 50 + t.params.min_per_round + 1);
    timing_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rig_measures_its_own_cost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cold_sees_an_empty_l2_and_nothing_else, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_hot_runs_many_and_is_warm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_state_is_restored_before_each_sample, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_kernels_loaded_anew_are_timed_once_renewed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_short_kernels_stay_resolved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_kernel_is_not_multiplied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_a_restore, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures_are_not_samples, set_up, tear_down),
        cmocka_unit_test(test_stop_rule),
        cmocka_unit_test(test_rounds_that_differ_want_more_rounds),
        cmocka_unit_test_setup_teardown(test_noise_takes_samples_until_the_budget_is_spent, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests_name("timing", tests, NULL, NULL);
}
