#include "measure/benchmark.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "measure/bench_gate.h"
#include "measure/bench_item.h"
#include "measure/validity.h"
#include "record/regress.h"

#define FALSE_DISCOVERIES 0.05 /* the rate that `compare` holds by default */

/* Of buffers in one batch: the host holds about six times that, the device twice; both
   are the same memory on an integrated GPU. More than the limit would only make rounds long. */
#define BATCH_SHARE 12
#define BATCH_LIMIT ((uint64_t)10 << 30)

#define MAX_PLACES 32 /* loads of a kernel set, one a round; more rounds start over */

struct session {
    const struct benchmark_options *opt;
    const struct benchmark_sink *sink;
    struct device *device;
    struct kernel_set *own, *set[BENCHMARK_SIDES][MAX_PLACES];
    unsigned places;
    struct clocks *clocks;
    struct timing_rig rig;
    struct ceilings ceilings;
    bool has_ceilings, announced;
    struct sentinel first; /* of the run */
    struct device_sheet sheet, gb10;
    bool has_sheet, has_gb10;
    struct roofs roofs;
    struct runner_options runner;
    struct bench_rig bench;
    struct bench_item *item; /* cases times sides, the sides of a case adjacent */
    size_t nitems;
};

static void note(const struct session *s, const char *text)
{
    s->sink->note(s->sink->ctx, text);
}

__attribute__((format(printf, 2, 3))) static void progress(const struct session *s, const char *fmt,
                                                           ...)
{
    char text[120];
    va_list args;

    if (!s->sink->progress)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    s->sink->progress(s->sink->ctx, text);
}

/* --- device ----------------------------------------------------------------------------------- */

static void close_device(struct session *s)
{
    if (s->has_ceilings)
        ceilings_close(&s->ceilings);
    timing_rig_close(&s->rig);
    clocks_close(s->clocks);
    for (unsigned i = 0; i < BENCHMARK_SIDES; i++)
        for (unsigned place = MAX_PLACES; place-- > 0;) /* the first one last */
            kernel_set_close(s->set[i][place]);
    memset(s->set, 0, sizeof s->set);
    kernel_set_close(s->own);
    device_close(s->device);
    s->has_ceilings = false;
    s->clocks = NULL;
    s->own = NULL;
    s->device = NULL;
}

static int open_sheets(struct session *s, struct err *err)
{
    if (!s->opt->sheet_dir)
        return 0;
    if (device_sheet_find(s->opt->sheet_dir, device_info(s->device)->name, &s->sheet, &s->has_sheet,
                          err) < 0)
        return -1;
    return device_sheet_find(s->opt->sheet_dir, "GB10", &s->gb10, &s->has_gb10, err);
}

static int check_sentinel(struct session *s, struct err *err)
{
    struct sentinel now;
    char why[400];

    if (!s->has_ceilings)
        return 0;
    nvtx_phase_begin(s->opt->nvtx, NVTX_SENTINEL, 0);
    if (ceilings_sentinel(&s->ceilings, &now, err) < 0) {
        nvtx_end(s->opt->nvtx);
        return -1;
    }
    nvtx_end(s->opt->nvtx);
    if (sentinel_slow(&now, why, sizeof why))
        return err_set(err, ERR_SYSTEM, "%s", why);
    if (!(s->first.gemv_gbs > 0))
        s->first = now;
    if (sentinel_drifted(&s->first, &now, why, sizeof why))
        note(s, why);
    return 0;
}

static int measure_device(struct session *s, struct err *err)
{
    int rc;

    if (device_info(s->device)->kind == DEVICE_CPU)
        return 0;
    if (ceilings_open(&s->rig, s->own, &s->ceilings, err) < 0)
        return -1;
    s->has_ceilings = true;
    nvtx_phase_begin(s->opt->nvtx, NVTX_CEILINGS, 2 * s->ceilings.bytes);
    rc = ceilings_measure(&s->ceilings, s->has_sheet ? &s->sheet : NULL, err);
    nvtx_end(s->opt->nvtx);
    if (rc < 0)
        return -1;
    s->roofs = s->ceilings.roofs;
    return check_sentinel(s, err);
}

/* The first time the sink hears of the device and its ceilings. */
static int announce(struct session *s, struct err *err)
{
    if (s->announced)
        return 0;
    s->announced = true;
    if (s->sink->opened(s->sink->ctx, device_info(s->device), err) < 0)
        return -1;
    for (unsigned i = 0; i < CEILING_COUNT && s->has_ceilings; i++)
        if (s->sink->ceiling(s->sink->ctx, &s->ceilings.record[i], err) < 0)
            return -1;
    return 0;
}

static void warn_no_clocks(struct session *s, const struct err *why)
{
    char text[400];

    snprintf(text, sizeof text, "clocks and throttling are not recorded: %.300s", why->text);
    if (!s->announced && device_info(s->device)->kind == DEVICE_CUDA)
        note(s, text);
}

/* As many as it takes to call one changed row among all of them. */
static unsigned choose_rounds(const struct session *s)
{
    struct timing_params p = timing_params_default(device_info(s->device), BENCH_COLD);
    size_t rows = s->nitems / s->opt->sides * (s->opt->cold + s->opt->hot);
    unsigned needed = regress_rounds_needed(rows, FALSE_DISCOVERIES);

    if (s->opt->rounds)
        return s->opt->rounds;
    return needed > p.rounds ? needed : p.rounds;
}

static int open_rig(struct session *s, struct err *err)
{
    struct kernel *read = NULL, *empty = NULL;

    if (kernel_set_find(s->own, "bench_memory", "bench_empty", &empty, err) < 0 ||
        kernel_set_find(s->own, "bench_memory", "bench_read", &read, err) < 0)
        return -1;
    if (timing_rig_open(s->device, read, empty, s->clocks, &s->rig, err) < 0)
        return -1;
    const struct figure *f = s->has_sheet ? device_sheet_figure(&s->sheet, "empty_kernel") : NULL;
    if (f)
        timing_rig_empty_kernel(&s->rig, f->value);
    return 0;
}

/* Planned rounds are for every case; further ones, as far as there are places, for those whose
   interval is still open. What the user asked for is what is done, and no number of rounds closes
   the interval of an emulation. */
static unsigned most_rounds(const struct session *s)
{
    unsigned planned = choose_rounds(s);

    if (s->opt->most_rounds)
        return s->opt->most_rounds;
    if (s->opt->rounds || device_info(s->device)->kind == DEVICE_CPU || planned > MAX_PLACES)
        return planned;
    return MAX_PLACES;
}

/* Modules of a set are loaded when a round first wants them, so the sides take turns in memory. */
static int open_sets(struct session *s, struct err *err)
{
    unsigned rounds = most_rounds(s);

    s->places = device_info(s->device)->kind == DEVICE_CPU ? 1 : rounds;
    s->places = s->places < MAX_PLACES ? s->places : MAX_PLACES;
    for (unsigned i = 0; i < s->opt->sides; i++)
        for (unsigned place = 0; place < s->places; place++)
            if ((place ? kernel_set_open_again(s->set[i][0], &s->set[i][place], err)
                       : kernel_set_open(s->device, s->opt->kernels[i], &s->set[i][0], err)) < 0)
                return -1;
    return 0;
}

static int open_device(struct session *s, struct err *err)
{
    struct err why = ERR_INIT;
    bool one;

    if (device_open(s->opt->device, &s->device, err) < 0)
        return -1;
    if (kernel_set_open(s->device, NULL, &s->own, err) < 0 || open_sheets(s, err) < 0)
        return -1;
    if (open_sets(s, err) < 0)
        return -1;
    if (clocks_open(device_info(s->device), &s->clocks, &why) < 0)
        warn_no_clocks(s, &why);
    if (open_rig(s, err) < 0 || measure_device(s, err) < 0 || announce(s, err) < 0)
        return -1;
    /* An emulation has no L2 to be cold: one of the two says all. */
    one = device_info(s->device)->kind == DEVICE_CPU && s->opt->cold && s->opt->hot;
    s->bench = (struct bench_rig){
        .device = s->device,
        .rig = &s->rig,
        .nvtx = s->opt->nvtx,
        .runner = &s->runner,
        .roofs = &s->roofs,
        .gb10 = s->has_gb10 ? &s->gb10 : NULL,
        .wanted = {[BENCH_COLD] = s->opt->cold && !one, [BENCH_HOT] = s->opt->hot},
        .rounds = choose_rounds(s),
        .budget_s = s->opt->budget_s,
    };
    return 0;
}

/* --- batches ---------------------------------------------------------------------------------- */

static void close_batch(struct session *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        bench_item_close(&s->item[i]);
}

static bool device_works(struct session *s)
{
    struct err ignored = ERR_INIT;

    return device_sync(s->device, &ignored) == 0;
}

static uint64_t batch_bytes(const struct session *s)
{
    uint64_t host = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t device = device_info(s->device)->memory_bytes;
    uint64_t share = (host < device ? host : device) / BATCH_SHARE;

    return share < BATCH_LIMIT ? share : BATCH_LIMIT;
}

static void case_begin(const struct session *s, const struct bench_item *it)
{
    nvtx_case_begin(s->opt->nvtx, it->tc->text, case_hash(it->tc).lo);
}

/* Opens items from `from` on until their buffers fill a batch; both sides of a case stay together.
   *to is the first item after it. 1: the device was lost to one of them, which is now rejected. */
static int open_batch(struct session *s, size_t from, size_t *to)
{
    uint64_t bytes = 0, most = batch_bytes(s);
    size_t i = from;

    while (i < s->nitems && (bytes < most || i % s->opt->sides)) {
        struct bench_item *it = &s->item[i++];
        int rc;

        progress(s, "preparing %zu of %zu", i, s->nitems);
        *to = i;
        if (it->rejected)
            continue;
        case_begin(s, it);
        rc = bench_item_open(it, &s->bench, s->set[it->side][0], it->side ? it - 1 : NULL);
        nvtx_end(s->opt->nvtx);
        bytes += it->side && it[-1].runner ? 0 : it->bytes;
        if (rc < 0) {
            bench_item_close(it);
            note(s, it->reason);
            if (!device_works(s))
                return 1;
        }
    }
    return 0;
}

/* Each repeat pairs the places of the sides anew: an unlucky pairing comes back only after as many
   repeats as there are places. */
static struct kernel_set *place_of(const struct session *s, const struct bench_item *it,
                                   unsigned repeat, unsigned round)
{
    unsigned shift = it->side ? repeat : 0;

    return s->places > 1 ? s->set[it->side][(round + shift) % s->places] : NULL;
}

/* The order of a case's sides is turned each round, so that a drift within the pair cancels out. */
static struct bench_item *in_turn(struct session *s, size_t i, unsigned round)
{
    unsigned sides = s->opt->sides;

    return &s->item[sides == 2 && round % 2 ? i ^ 1 : i];
}

/* 0 done, 1 the device was lost. */
static int run_round(struct session *s, size_t from, size_t to, unsigned repeat, unsigned round)
{
    for (size_t i = from; i < to; i++) {
        struct bench_item *it = in_turn(s, i, round);
        int rc;

        if (it->rejected)
            continue;
        case_begin(s, it);
        rc = bench_item_round(it, &s->bench, place_of(s, it, repeat, round), round);
        nvtx_end(s->opt->nvtx);
        if (rc < 0 && !device_works(s))
            return 1;
    }
    return 0;
}

/* 0 done, 1 the device was lost, -1 the run must end. */
static int run_rounds(struct session *s, size_t from, size_t to, unsigned repeat, struct err *err)
{
    unsigned sides = s->opt->sides, planned = s->bench.rounds, most = most_rounds(s);
    size_t cases = (to - from) / sides, open = cases;

    for (unsigned r = 0; r < planned || (r < most && open > 0); r++) {
        progress(s, "%zu of cases %zu to %zu of %zu, repeat %u of %u, round %u of %u", open,
                 from / sides + 1, to / sides, s->nitems / sides, repeat + 1,
                 s->opt->repeats ? s->opt->repeats : 1, r + 1, r < planned ? planned : most);
        if (run_round(s, from, to, repeat, r))
            return 1;
        if (check_sentinel(s, err) < 0)
            return -1;
        if (r + 1 >= planned && r + 1 < most)
            open = bench_items_want_more(&s->item[from], cases, sides, &s->bench);
    }
    return 0;
}

/* Judges what the timed loops left; returns as run_rounds(). */
static int finish_batch(struct session *s, size_t from, size_t to)
{
    bool two = s->opt->sides == 2;

    for (size_t i = from; i < to; i++) {
        if (s->item[i].rejected)
            continue;
        case_begin(s, &s->item[i]);
        bench_item_finish(&s->item[i], &s->bench, two);
        nvtx_end(s->opt->nvtx);
        if (s->item[i].rejected && !device_works(s))
            return 1;
    }
    for (size_t i = from; i < to && two; i += 2)
        bench_item_settle_damage(&s->item[i], &s->item[i + 1]);
    return 0;
}

/* The records of a batch, settled with the clock that its own samples show. */
static int hand_out(struct session *s, size_t from, size_t to, unsigned repeat, struct err *err)
{
    size_t most = (to - from) * TEMPERATURES, n = 0;
    struct bench_record *rec = xcalloc(most ? most : 1, sizeof *rec);
    const struct bench_record **view = xcalloc(most ? most : 1, sizeof *view);
    const struct bench_item **owner = xcalloc(most ? most : 1, sizeof *owner);
    double clock;
    int rc = 0;

    for (size_t i = from; i < to; i++)
        for (int t = 0; t < TEMPERATURES; t++)
            if (s->bench.wanted[t] && !s->item[i].skipped) {
                bench_item_record(&s->item[i], &s->bench, (enum temperature)t, &rec[n]);
                view[n] = &rec[n];
                owner[n++] = &s->item[i];
            }
    clock = run_clock_mhz(view, (unsigned)n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct roof_floor floor = {NAN64, "", NAN64};
        double precision = owner[i]->timing[rec[i].temperature].params.precision;

        if (owner[i]->runner)
            floor = bench_item_floor(owner[i], &s->bench, rec[i].temperature);
        bench_settle(&rec[i], clock, &floor, precision);
        rc = s->sink->result(s->sink->ctx, repeat, owner[i]->side, &rec[i], owner[i]->cause, err);
    }
    free(owner);
    free(view);
    free(rec);
    return rc;
}

/* All repeats of one batch; returns as run_rounds(). */
static int run_batch(struct session *s, size_t from, size_t to, unsigned *repeat, struct err *err)
{
    unsigned repeats = s->opt->repeats ? s->opt->repeats : 1;

    for (; *repeat < repeats; ++*repeat) {
        int rc;

        for (size_t i = from; i < to; i++)
            bench_item_reset(&s->item[i]);
        rc = run_rounds(s, from, to, *repeat, err);
        if (rc == 0 && *repeat + 1 == repeats) /* once is enough: the buffers stay the same */
            rc = finish_batch(s, from, to);
        if (rc)
            return rc;
        if (hand_out(s, from, to, *repeat, err) < 0)
            return -1;
        if (s->sink->repeat_done)
            s->sink->repeat_done(s->sink->ctx, *repeat, to / s->opt->sides);
    }
    return 0;
}

static int run_all(struct session *s, struct err *err)
{
    unsigned repeat = 0;
    size_t from = 0, to = 0;

    while (from < s->nitems) {
        int rc = open_batch(s, from, &to);

        if (rc == 0)
            rc = run_batch(s, from, to, &repeat, err);
        close_batch(s, from, to);
        if (rc < 0)
            return -1;
        if (rc > 0) { /* once more without the item that took the device */
            note(s, "the device was lost; it is opened anew and the batch starts again");
            close_device(s);
            if (open_device(s, err) < 0)
                return err_context(err, "after a kernel took the device");
            continue;
        }
        from = to;
        repeat = 0;
    }
    return 0;
}

static void make_items(struct session *s, const struct case_list *cases)
{
    s->nitems = cases->count * s->opt->sides;
    s->item = xcalloc(s->nitems ? s->nitems : 1, sizeof *s->item);
    for (size_t i = 0; i < s->nitems; i++) {
        unsigned side = (unsigned)(i % s->opt->sides);

        s->item[i].tc = &cases->items[i / s->opt->sides];
        s->item[i].side = side;
        s->item[i].kernels_dir = s->opt->kernels[side];
    }
}

int benchmark_run(const struct benchmark_options *opt, const struct case_list *cases,
                  const struct benchmark_sink *sink, struct err *err)
{
    struct session s = {.opt = opt, .sink = sink};
    int rc;

    roofs_init(&s.roofs);
    s.runner = (struct runner_options){
        .golden_dir = opt->golden_dir,
        .golden_read_only = opt->golden_read_only,
        .workers = opt->workers,
        .warn = sink->warn,
        .ctx = sink->ctx,
        .nvtx = opt->nvtx,
    };
    make_items(&s, cases);
    nvtx_suite_begin(opt->nvtx, opt->suite, cases->count);
    nvtx_phase_begin(opt->nvtx, NVTX_VERIFY, 0);
    rc = bench_gate(opt, sink, s.item, s.nitems, err);
    nvtx_end(opt->nvtx);
    if (rc == 0)
        rc = open_device(&s, err);
    if (rc == 0)
        rc = run_all(&s, err);
    close_device(&s);
    nvtx_end(opt->nvtx);
    free(s.item);
    return rc;
}
