#include "measure/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/number.h"
#include "device/launch.h"
#include "record/stats.h"

#define EVICT_MIN_BYTES    ((size_t)64 << 20)
#define EVICT_UNKNOWN_L2   ((size_t)256 << 20) /* above any L2 known */
#define READ_BLOCK_THREADS 256
#define READ_BLOCKS_PER_SM 8
#define WARM_UP_S          0.25 /* until the clocks have left their idle state */
#define WARM_UP_RUNS       3
#define RIG_WINDOWS        201   /* windows around the empty kernel */
#define RIG_LAUNCHES       64    /* empty kernels in a graph */
#define READING_AGE_S      0.005 /* NVML refreshes its values less often than that */
#define CONVERGE_STEP      5     /* samples between two looks at the stop rule */
#define FILLER_MARGIN      3     /* times the measured enqueue time */
#define MAX_FILLERS        64

double timing_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double utc_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool emulated(const struct timing_rig *rig)
{
    return device_info(rig->device)->kind == DEVICE_CPU;
}

struct timing_params timing_params_default(const struct device_info *info, enum temperature t)
{
    struct timing_params p = {
        .temperature = t,
        .rounds = 12, /* record/regress.h: enough to call one change among 100 cases */
        .budget_s = 0.5,
        .min_per_round = 3,
        .long_run_us = 1000, /* else a few long cases take the time of all the others */
        .max_per_round = 400,
        .precision = 0.005,
        .window_us = 300,
        .max_launches = 256,
    };

    if (info->kind == DEVICE_CPU) { /* a run takes milliseconds to seconds there */
        p.min_per_round = 1;        /* rounds, not samples, decide what compare can call */
        p.max_per_round = 10;
        p.max_launches = 1;
    }
    return p;
}

/* --- the parts of a sample -------------------------------------------------------------------- */

static int enqueue_read(const struct timing_rig *rig, struct err *err)
{
    struct launch l;

    launch_init(&l, rig->read);
    launch_grid(&l, READ_BLOCKS_PER_SM * device_info(rig->device)->sm_count, 1, 1);
    launch_block(&l, READ_BLOCK_THREADS, 1, 1);
    launch_ptr(&l, rig->evict);
    launch_ptr(&l, rig->sink);
    launch_u32(&l, (uint32_t)(rig->evict_bytes / 16));
    return launch_submit(&l, err);
}

static int enqueue_fillers(const struct timing_rig *rig, unsigned passes, struct err *err)
{
    for (unsigned i = 0; i < passes; i++)
        if (enqueue_read(rig, err) < 0)
            return -1;
    return 0;
}

static int run_once(const struct timing *t, struct err *err)
{
    return t->one ? graph_launch(t->one, err) : t->subject.launch(t->subject.ctx, err);
}

static int run_many(const struct timing *t, struct err *err)
{
    return t->many ? graph_launch(t->many, err) : t->subject.launch(t->subject.ctx, err);
}

/* One window; *us is its length, not yet divided or corrected. */
static int window(struct timing_rig *rig, const struct timing *t, double *us, struct err *err)
{
    double ms = NAN64;
    bool cold = t->params.temperature == BENCH_COLD;

    if (t->subject.restore && t->subject.restore(t->subject.ctx, err) < 0)
        return -1;
    if (rig->evict_bytes && enqueue_fillers(rig, t->fillers, err) < 0)
        return -1;
    if (!cold && run_once(t, err) < 0)
        return -1;
    if (event_record(rig->start, err) < 0 || (cold ? run_once(t, err) : run_many(t, err)) < 0 ||
        event_record(rig->stop, err) < 0 || event_elapsed_ms(rig->start, rig->stop, &ms, err) < 0)
        return -1;
    *us = ms * 1e3;
    return device_sync(rig->device, err); /* an error of the kernel, if there was one */
}

static void read_clocks(struct timing_rig *rig)
{
    double now = timing_now_s();

    if (!(now - rig->reading_at_s < READING_AGE_S)) {
        clocks_read(rig->clocks, &rig->reading);
        rig->reading_at_s = timing_now_s();
    }
}

static void keep_sample(struct timing_rig *rig, struct timing *t, unsigned round, double window_us)
{
    struct bench_sample *s;

    if (t->nsamples == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->sample = xrealloc(t->sample, t->capacity, sizeof *t->sample);
    }
    read_clocks(rig);
    s = &t->sample[t->nsamples++];
    *s = (struct bench_sample){
        .us = (window_us - rig->window_cost_us) / t->launches,
        .round = round,
        .at_s = utc_now_s(),
        .sm_clock_mhz = rig->reading.sm_mhz,
        .mem_clock_mhz = rig->reading.mem_mhz,
        .temperature_c = rig->reading.temperature_c,
        .power_w = rig->reading.power_w,
        .energy_j = rig->reading.energy_j,
        .throttle = rig->reading.throttle,
    };
}

/* --- one subject ------------------------------------------------------------------------------ */

static int record_graph(struct timing_rig *rig, const struct timing *t, unsigned runs,
                        struct graph **out, struct err *err)
{
    struct err late = ERR_INIT;
    int rc = 0;

    if (graph_begin(rig->device, err) < 0)
        return -1;
    for (unsigned i = 0; i < runs && rc == 0; i++)
        rc = t->subject.launch(t->subject.ctx, err);
    /* The recording must be ended whatever happened; the first error is the one that tells. */
    if (graph_end(rig->device, out, rc < 0 ? &late : err) < 0)
        return -1;
    if (rc < 0) {
        graph_free(*out);
        *out = NULL;
    }
    return rc;
}

static void free_graphs(struct timing *t)
{
    if (t->many != t->one)
        graph_free(t->many);
    graph_free(t->one);
    t->one = t->many = NULL;
}

static int record_graphs(struct timing_rig *rig, struct timing *t, struct err *err)
{
    struct graph *many = NULL;

    if (record_graph(rig, t, 1, &t->one, err) < 0)
        return -1;
    t->many = t->one;
    if (t->launches > 1 && record_graph(rig, t, t->launches, &many, err) < 0)
        return -1;
    if (many)
        t->many = many;
    return 0;
}

static int restore_and_sync(struct timing_rig *rig, const struct timing *t, struct err *err)
{
    if (t->subject.restore && t->subject.restore(t->subject.ctx, err) < 0)
        return -1;
    return device_sync(rig->device, err);
}

/* First launch, warm-up, an estimate of one run from the best of a few windows. */
static int warm_up(struct timing_rig *rig, struct timing *t, struct err *err)
{
    double from;

    if (restore_and_sync(rig, t, err) < 0)
        return -1;
    from = timing_now_s();
    if (t->subject.launch(t->subject.ctx, err) < 0 || device_sync(rig->device, err) < 0)
        return -1;
    t->first_launch_us = 1e6 * (timing_now_s() - from);
    t->estimate_us = t->first_launch_us;
    if (emulated(rig)) /* nothing to warm but the pages just touched */
        return 0;
    t->estimate_us = INF64;
    for (int i = 0; i < WARM_UP_RUNS; i++) {
        double us;

        if (window(rig, t, &us, err) < 0)
            return -1;
        us -= rig->window_cost_us;
        if (us > 0 && us < t->estimate_us)
            t->estimate_us = us;
    }
    if (!(t->estimate_us < INF64)) /* no window was longer than an empty one */
        t->estimate_us = fmax(rig->launch_overhead_us, 0.1);
    return 0;
}

/* How many passes over the evict buffer cover the time the CPU needs to enqueue the window. */
static int choose_fillers(struct timing_rig *rig, struct timing *t, struct err *err)
{
    double from, enqueue_us = 0;

    if (restore_and_sync(rig, t, err) < 0)
        return -1;
    for (int i = 0; i < 2; i++) { /* the first launch of a graph also uploads it */
        from = timing_now_s();
        if (run_once(t, err) < 0 || run_many(t, err) < 0)
            return -1;
        enqueue_us = FILLER_MARGIN * 1e6 * (timing_now_s() - from);
        if (device_sync(rig->device, err) < 0)
            return -1;
    }
    t->fillers = 1;
    if (rig->evict_us > 0 && enqueue_us > rig->evict_us)
        t->fillers = (unsigned)fmin(ceil(enqueue_us / rig->evict_us), MAX_FILLERS);
    return 0;
}

int timing_begin(struct timing_rig *rig, const struct timing_subject *subject,
                 const struct timing_params *params, struct timing *t, struct err *err)
{
    memset(t, 0, sizeof *t);
    t->params = *params;
    t->subject = *subject;
    t->launches = 1;
    t->fillers = 1;
    if (warm_up(rig, t, err) < 0)
        goto fail;
    if (emulated(rig))
        return 0;
    if (params->temperature == BENCH_HOT && t->estimate_us < params->window_us)
        t->launches =
            (unsigned)fmin(ceil(params->window_us / t->estimate_us), params->max_launches);
    if (record_graphs(rig, t, err) < 0 || choose_fillers(rig, t, err) < 0)
        goto fail;
    return 0;
fail:
    timing_end(t);
    return err_context(err, "%s", params->temperature == BENCH_COLD ? "cold" : "hot");
}

int timing_renew(struct timing_rig *rig, struct timing *t, struct err *err)
{
    if (emulated(rig))
        return 0;
    free_graphs(t);
    /* The first launch of a graph uploads it, and that of a kernel its code. */
    if (record_graphs(rig, t, err) < 0 || restore_and_sync(rig, t, err) < 0 ||
        run_once(t, err) < 0 || (t->many != t->one && run_many(t, err) < 0))
        return -1;
    return device_sync(rig->device, err);
}

int timing_round(struct timing_rig *rig, struct timing *t, unsigned round, struct err *err)
{
    const struct timing_params *p = &t->params;
    double from = timing_now_s(), share = p->budget_s / (p->rounds ? p->rounds : 1);
    unsigned taken = 0, least = t->estimate_us > p->long_run_us ? 1 : p->min_per_round;

    while (taken < p->max_per_round) {
        double us;

        if (window(rig, t, &us, err) < 0)
            return -1;
        keep_sample(rig, t, round, us);
        taken++;
        if (taken < least)
            continue;
        if (timing_now_s() - from >= share)
            break;
        if (taken % CONVERGE_STEP == 0 && timing_round_has_enough(t))
            break;
    }
    t->spent_s += timing_now_s() - from;
    return 0;
}

int timing_replay(const struct timing *t, bool single, struct err *err)
{
    return single ? run_once(t, err) : run_many(t, err);
}

void timing_end(struct timing *t)
{
    free_graphs(t);
    free(t->sample);
    t->sample = NULL;
    t->nsamples = t->capacity = 0;
}

/* --- the rig ---------------------------------------------------------------------------------- */

static int launch_empty(void *ctx, struct err *err)
{
    const struct timing_rig *rig = ctx;
    struct launch l;

    launch_init(&l, rig->empty);
    return launch_submit(&l, err);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest step between any two window lengths; they are multiples of the timer's tick.
   Steps below a picosecond are the float in which the driver answers, not its timer. */
static double smallest_step(double *us, unsigned n)
{
    double best = INF64;

    qsort(us, n, sizeof *us, compare_doubles);
    for (unsigned i = 1; i < n; i++)
        if (us[i] - us[i - 1] > 1e-6 && us[i] - us[i - 1] < best)
            best = us[i] - us[i - 1];
    return isfinite(best) ? best : NAN64;
}

/* Median of `n` windows of a subject as it stands; all lengths are left in `us`. */
static int windows(struct timing_rig *rig, const struct timing *t, unsigned n, double *us,
                   double *median, struct err *err)
{
    for (unsigned i = 0; i < n; i++)
        if (window(rig, t, &us[i], err) < 0)
            return -1;
    *median = stats_median(us, n);
    return 0;
}

static int measure_overheads(struct timing_rig *rig, struct err *err)
{
    struct timing_subject empty = {.launch = launch_empty, .ctx = rig};
    struct timing_params p = timing_params_default(device_info(rig->device), BENCH_COLD);
    double us[RIG_WINDOWS], single, many;
    struct timing t;
    int rc = -1;

    if (timing_begin(rig, &empty, &p, &t, err) < 0)
        return -1;
    if (windows(rig, &t, RIG_WINDOWS, us, &single, err) < 0)
        goto done;
    rig->event_tick_us = smallest_step(us, RIG_WINDOWS);
    rig->launch_overhead_us = rig->empty_window_us = single;
    rc = 0;
    if (emulated(rig))
        goto done;
    timing_end(&t);
    p.temperature = BENCH_HOT;
    p.window_us = INF64;
    p.max_launches = RIG_LAUNCHES;
    if (timing_begin(rig, &empty, &p, &t, err) < 0)
        return -1;
    rc = windows(rig, &t, RIG_WINDOWS, us, &many, err);
    if (rc == 0) {
        /* single = cost + one, many = cost + n * one */
        rig->launch_overhead_us = (many - single) / (t.launches - 1);
        rig->window_cost_us = fmax(single - rig->launch_overhead_us, 0);
    }
done:
    timing_end(&t);
    return rc;
}

void timing_rig_empty_kernel(struct timing_rig *rig, double us)
{
    if (!emulated(rig))
        rig->window_cost_us = fmax(rig->empty_window_us - us, 0);
}

static int open_evict(struct timing_rig *rig, struct err *err)
{
    size_t l2 = device_info(rig->device)->l2_bytes;
    double from, ms;

    rig->evict_bytes = l2 ? EVICT_FACTOR * l2 : EVICT_UNKNOWN_L2;
    if (rig->evict_bytes < EVICT_MIN_BYTES)
        rig->evict_bytes = EVICT_MIN_BYTES;
    rig->evict_bytes &= ~(size_t)15;
    if (device_alloc(rig->device, rig->evict_bytes, "L2 evict buffer", &rig->evict, err) < 0 ||
        device_alloc(rig->device, 16, "L2 evict sink", &rig->sink, err) < 0 ||
        device_fill32(rig->device, rig->evict, 0x3f9e3779u, rig->evict_bytes / 4, err) < 0)
        return -1;
    for (from = timing_now_s(); timing_now_s() - from < WARM_UP_S;)
        if (enqueue_fillers(rig, 16, err) < 0 || device_sync(rig->device, err) < 0)
            return -1;
    if (event_record(rig->start, err) < 0 || enqueue_fillers(rig, 16, err) < 0 ||
        event_record(rig->stop, err) < 0 || event_elapsed_ms(rig->start, rig->stop, &ms, err) < 0)
        return -1;
    rig->evict_us = 1e3 * ms / 16;
    return 0;
}

int timing_rig_open(struct device *dev, const struct kernel *read, const struct kernel *empty,
                    struct clocks *clocks, struct timing_rig *rig, struct err *err)
{

    memset(rig, 0, sizeof *rig);
    rig->device = dev;
    rig->read = read;
    rig->empty = empty;
    rig->clocks = clocks;
    rig->reading_at_s = -INF64;
    if (event_create(dev, &rig->start, err) < 0 || event_create(dev, &rig->stop, err) < 0)
        goto fail;
    if (!emulated(rig) && open_evict(rig, err) < 0)
        goto fail;
    if (measure_overheads(rig, err) < 0)
        goto fail;
    return 0;
fail:
    timing_rig_close(rig);
    return err_context(err, "timing rig");
}

void timing_rig_close(struct timing_rig *rig)
{
    if (rig->device) {
        device_free(rig->device, rig->evict);
        device_free(rig->device, rig->sink);
    }
    event_free(rig->start);
    event_free(rig->stop);
    memset(rig, 0, sizeof *rig);
}
