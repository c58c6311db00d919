/*
 * The timing engine on a simulated GPU: work takes simulated time, launches cost the CPU nothing,
 * and the L2 is a flag. So it can be told what every sample must be, and whether anything slipped
 * into a window.
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
#include "device/device_ops.h"
#include "device/launch.h"
#include "measure/timing.h"

#define L2_BYTES   (24u << 20)
#define READ_US    400.0 /* one pass over the evict buffer */
#define EMPTY_US   1.25  /* an empty kernel in a graph */
#define WINDOW_US  2.5   /* what a window costs beyond its kernels */
#define TICK_US    0.5
#define RESTORE_US 30.0
#define GRAPH_MAX  4096

struct sim {
    struct device base;
    double now_us; /* of the simulated GPU */
    bool l2_empty; /* of the subject's data */
    bool recording;
    const struct kernel *recorded[GRAPH_MAX];
    unsigned nrecorded;
    bool fail_sync;
    /* what was seen */
    unsigned restores, runs, evictions, dirty_windows;
    unsigned since_restore; /* runs since the last restore */
};

struct sim_kernel {
    struct kernel base;
    double cold_us, hot_us;
    bool evicts;
};

struct sim_event {
    struct event base;
    double at_us;
};

struct sim_graph {
    struct graph base;
    const struct kernel *kernel[GRAPH_MAX];
    unsigned count;
};

static void run(struct sim *s, const struct kernel *k)
{
    const struct sim_kernel *sk = (const struct sim_kernel *)k;

    if (sk->evicts) {
        s->l2_empty = true;
        s->evictions++;
        s->now_us += READ_US;
        return;
    }
    s->now_us += s->l2_empty ? sk->cold_us : sk->hot_us;
    if (sk->hot_us > EMPTY_US) {
        s->l2_empty = false;
        s->runs++;
        s->since_restore++;
    }
}

static int sim_launch(struct device *dev, const struct launch *l, struct err *err)
{
    struct sim *s = (struct sim *)dev;

    (void)err;
    if (!s->recording)
        run(s, l->kernel);
    else
        s->recorded[s->nrecorded++] = l->kernel;
    return 0;
}

static int sim_alloc(struct device *dev, size_t bytes, const char *label, dev_ptr *out,
                     struct err *err)
{
    (void)dev;
    (void)label;
    (void)err;
    *out = bytes;
    return 0;
}

static void sim_free(struct device *dev, dev_ptr ptr)
{
    (void)dev;
    (void)ptr;
}

static int sim_fill32(struct device *dev, dev_ptr dst, uint32_t word, size_t words, struct err *err)
{
    (void)dev;
    (void)dst;
    (void)word;
    (void)words;
    (void)err;
    return 0;
}

static int sim_sync(struct device *dev, struct err *err)
{
    if (((struct sim *)dev)->fail_sync)
        return err_set(err, ERR_FAULT, "simulated fault");
    return 0;
}

static int sim_event_create(struct device *dev, struct event **out, struct err *err)
{
    struct sim_event *e = calloc(1, sizeof *e);

    (void)err;
    e->base.device = dev;
    *out = &e->base;
    return 0;
}

static void sim_event_free(struct event *e)
{
    free(e);
}

static int sim_event_record(struct event *e, struct err *err)
{
    (void)err;
    ((struct sim_event *)e)->at_us = ((struct sim *)e->device)->now_us;
    return 0;
}

/* Each window costs WINDOW_US more than what ran in it, and is a multiple of the tick. */
static int sim_elapsed(struct event *start, struct event *stop, double *ms, struct err *err)
{
    double us = ((struct sim_event *)stop)->at_us - ((struct sim_event *)start)->at_us;

    (void)err;
    *ms = 1e-3 * TICK_US * round((us + WINDOW_US) / TICK_US);
    return 0;
}

static int sim_graph_begin(struct device *dev, struct err *err)
{
    struct sim *s = (struct sim *)dev;

    (void)err;
    s->recording = true;
    s->nrecorded = 0;
    return 0;
}

static int sim_graph_end(struct device *dev, struct graph **out, struct err *err)
{
    struct sim *s = (struct sim *)dev;
    struct sim_graph *g = calloc(1, sizeof *g);

    (void)err;
    s->recording = false;
    g->base.device = dev;
    g->count = s->nrecorded;
    memcpy(g->kernel, s->recorded, s->nrecorded * sizeof *s->recorded);
    *out = &g->base;
    return 0;
}

static int sim_graph_launch(struct graph *g, struct err *err)
{
    struct sim_graph *sg = (struct sim_graph *)g;

    (void)err;
    for (unsigned i = 0; i < sg->count; i++)
        run((struct sim *)g->device, sg->kernel[i]);
    return 0;
}

static void sim_graph_free(struct graph *g)
{
    free(g);
}

static const struct device_ops sim_ops = {
    .alloc = sim_alloc,
    .free = sim_free,
    .fill32 = sim_fill32,
    .launch = sim_launch,
    .sync = sim_sync,
    .event_create = sim_event_create,
    .event_free = sim_event_free,
    .event_record = sim_event_record,
    .event_elapsed_ms = sim_elapsed,
    .graph_begin = sim_graph_begin,
    .graph_end = sim_graph_end,
    .graph_launch = sim_graph_launch,
    .graph_free = sim_graph_free,
};

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
        cmocka_unit_test_setup_teardown(test_noise_takes_samples_until_the_budget_is_spent, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests_name("timing", tests, NULL, NULL);
}
