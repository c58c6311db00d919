#include "measure/bench_gate.h"

#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "measure/supervisor.h"

#define WATCHDOG_S 600.0 /* for one case, its reference included, as `deltarig verify` */

struct gate_result {
    enum verdict verdict;
    enum err_kind cause; /* of an ERROR */
    char reason[400];
};

/* In a worker process. */
struct gate_worker {
    const struct benchmark_options *opt;
    const struct bench_item *item;
    unsigned stride; /* of the items that are verified */
    unsigned jobs;
    struct device *device;
    struct kernel_set *set[BENCHMARK_SIDES];
    struct runner_options runner;
};

/* In the process that asked. */
struct gate {
    const struct benchmark_sink *sink;
    struct bench_item *item;
    unsigned stride;
    size_t count, done;
    unsigned skipped;
    const struct bench_item *first_skipped;
};

static void gate_phase(void *ctx, const char *what)
{
    supervisor_phase(ctx, what);
}

static void gate_warn(void *ctx, const char *text)
{
    supervisor_warn(ctx, text);
}

static void gate_close(void *worker)
{
    struct gate_worker *w = worker;

    for (unsigned i = 0; i < w->opt->sides; i++)
        kernel_set_close(w->set[i]);
    device_close(w->device);
}

static int gate_open(void *worker, struct device_info *info, struct err *err)
{
    struct gate_worker *w = worker;
    unsigned share = parallel_cpus() / w->jobs;

    memset(w->set, 0, sizeof w->set);
    if (device_open(w->opt->device, &w->device, err) < 0)
        return -1;
    *info = *device_info(w->device);
    for (unsigned i = 0; i < w->opt->sides; i++)
        if (kernel_set_open(w->device, w->opt->kernels[i], &w->set[i], err) < 0) {
            gate_close(w);
            return -1;
        }
    w->runner = (struct runner_options){
        .golden_dir = w->opt->golden_dir,
        .golden_read_only = w->opt->golden_read_only,
        .workers = info->kind == DEVICE_CPU ? (share ? share : 1) : w->opt->workers,
        .warn = gate_warn,
        .phase = gate_phase,
    };
    return 0;
}

/* True when the device may be damaged: the worker is then replaced. */
static bool gate_verify(void *worker, size_t index, void *result,
                        const struct supervisor_link *link)
{
    struct gate_worker *w = worker;
    const struct bench_item *it = &w->item[index * w->stride];
    struct gate_result *out = result;
    struct supervisor_link to = *link;
    struct verify_record rec;
    struct err err = ERR_INIT;

    memset(&rec, 0, sizeof rec);
    w->runner.kernels_dir = it->kernels_dir;
    w->runner.ctx = &to;
    if (verify_case(w->device, w->set[it->side], it->tc, &w->runner, &rec, &err) < 0)
        out->cause = err.kind;
    out->verdict = rec.verdict;
    snprintf(out->reason, sizeof out->reason, "%.399s", rec.reason);
    return rec.verdict == VERDICT_ERROR ||
           (rec.verdict == VERDICT_FAIL && !strcmp(rec.failed_check, check_name(CHECK_LAUNCH)));
}

static int gate_opened(void *parent, const struct device_info *info, struct err *err)
{
    (void)parent;
    (void)info;
    (void)err;
    return 0;
}

static int gate_done(void *parent, size_t index, const void *result, struct err *err)
{
    struct gate *g = parent;
    const struct gate_result *r = result;
    struct bench_item *it = &g->item[index * g->stride];
    char text[1280];

    (void)err;
    snprintf(text, sizeof text, "verified %zu of %zu", ++g->done, g->count);
    if (g->sink->progress)
        g->sink->progress(g->sink->ctx, text);
    if (r->verdict == VERDICT_PASS)
        return 0;
    for (unsigned i = 0; i < g->stride; i++) {
        it[i].rejected = true;
        /* Our own set has no right to be incomplete. */
        it[i].skipped = r->verdict == VERDICT_SKIP && it[i].kernels_dir;
        it[i].cause = r->cause;
        snprintf(it[i].reason, sizeof it[i].reason, "not timed: %s: %s", verdict_name(r->verdict),
                 r->reason);
    }
    if (it->skipped) { /* a foreign set may lack most kernels: told once, at the end */
        g->first_skipped = g->skipped++ ? g->first_skipped : it;
        return 0;
    }
    snprintf(text, sizeof text, "%s: %s", it->tc->text, it->reason);
    g->sink->note(g->sink->ctx, text);
    return 0;
}

static void gate_lost(void *parent, size_t index, const char *why, void *result)
{
    struct gate_result *r = result;

    (void)parent;
    (void)index;
    r->verdict = VERDICT_ERROR;
    r->cause = ERR_SYSTEM;
    snprintf(r->reason, sizeof r->reason, "%.399s", why);
}

static void gate_warned(void *parent, const char *text)
{
    const struct gate *g = parent;

    if (g->sink->warn)
        g->sink->warn(g->sink->ctx, text);
}

static void tell_skipped(const struct gate *g)
{
    char text[1280];

    if (!g->skipped)
        return;
    snprintf(text, sizeof text, "%u skipped, the first: %s: %s", g->skipped,
             g->first_skipped->tc->text, g->first_skipped->reason);
    g->sink->note(g->sink->ctx, text);
}

/* A set that is compared with itself is verified once. */
static bool same_sets(const struct benchmark_options *opt)
{
    const char *a = opt->kernels[0], *b = opt->kernels[1];

    return opt->sides == 2 && (a && b ? !strcmp(a, b) : a == b);
}

int bench_gate(const struct benchmark_options *opt, const struct benchmark_sink *sink,
               struct bench_item *item, size_t count, struct err *err)
{
    unsigned jobs = opt->workers ? opt->workers : parallel_cpus();
    unsigned stride = same_sets(opt) ? opt->sides : 1;
    struct gate_worker worker = {.opt = opt, .item = item, .stride = stride};
    struct gate gate = {.sink = sink, .item = item, .stride = stride};
    count /= stride;
    worker.jobs = jobs < count ? jobs : (unsigned)count;
    gate.count = count;
    const struct supervisor_job job = {
        .count = count,
        .result_size = sizeof(struct gate_result),
        .jobs = worker.jobs,
        .watchdog_s = WATCHDOG_S,
        .worker = &worker,
        .open = gate_open,
        .run = gate_verify,
        .close = gate_close,
        .parent = &gate,
        .opened = gate_opened,
        .done = gate_done,
        .lost = gate_lost,
        .warned = gate_warned,
    };

    if (count && supervisor_run(&job, err) < 0)
        return -1;
    tell_skipped(&gate);
    return 0;
}
