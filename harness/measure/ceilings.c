#include "measure/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "device/launch.h"
#include "record/stats.h"

#define BUFFER_MIN   ((size_t)256 << 20)
#define BUFFER_MAX   ((size_t)2 << 30)
#define MEMORY_SHARE 32 /* a buffer takes at most this part of the device's memory */
#define BLOCK        256
#define L2_PASSES    20
#define FMA_ROUNDS   4096
#define FMA_CHAINS   16 /* as kernels/bench/bench_math.cu */
#define MMA_ROUNDS   1024
#define MMA_TILES    8
#define GEMV_COLS    4096
#define GEMV_L2      6 /* the sentinel's matrix is this many times the L2 */
#define DRIFT        0.1
#define SAMPLES      30
#define TRIAL        5 /* samples per grid when the grid is chosen */

enum ceiling_id { DRAM_READ, DRAM_WRITE, DRAM_COPY, L2_READ, FFMA, UNFUSED, BF16_MMA, TF32_MMA };

struct ceiling_kind {
    const char *name, *unit, *module, *entry;
    const char *stated; /* the data sheet's name for it when it has none of its own */
    enum temperature temperature;
};

static const struct ceiling_kind kinds[] = {
    [DRAM_READ] = {"dram_read", "GB/s", "bench_memory", "bench_read", "dram", BENCH_COLD},
    [DRAM_WRITE] = {"dram_write", "GB/s", "bench_memory", "bench_write", "dram", BENCH_HOT},
    [DRAM_COPY] = {"dram_copy", "GB/s", "bench_memory", "bench_copy", "dram", BENCH_HOT},
    [L2_READ] = {"l2_read", "GB/s", "bench_memory", "bench_l2_read", NULL, BENCH_HOT},
    [FFMA] = {"ffma", "TFLOP/s", "bench_math", "bench_ffma", NULL, BENCH_HOT},
    [UNFUSED] = {"fp32_unfused", "TFLOP/s", "bench_math", "bench_unfused", NULL, BENCH_HOT},
    [BF16_MMA] = {"bf16_mma", "TFLOP/s", "bench_math", "bench_bf16_mma", NULL, BENCH_HOT},
    [TF32_MMA] = {"tf32_mma", "TFLOP/s", "bench_math", "bench_tf32_mma", NULL, BENCH_HOT},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* Blocks per SM that are tried. */
static const unsigned grids[] = {2, 4, 6, 8, 16, 32};

/* One ceiling kernel with its launch. */
struct ceiling_run {
    const struct ceilings *c;
    const struct kernel *kernel;
    enum ceiling_id id;
    uint32_t blocks;
    size_t bytes; /* of src that are used */
};

static uint32_t vectors(const struct ceiling_run *r)
{
    return (uint32_t)(r->bytes / 16);
}

static int launch_ceiling(void *ctx, struct err *err)
{
    const struct ceiling_run *r = ctx;
    struct launch l;

    launch_init(&l, r->kernel);
    launch_grid(&l, r->blocks, 1, 1);
    launch_block(&l, BLOCK, 1, 1);
    switch (r->id) {
    case DRAM_READ:
    case L2_READ:
        launch_ptr(&l, r->c->src);
        launch_ptr(&l, r->c->sink);
        launch_u32(&l, vectors(r));
        if (r->id == L2_READ)
            launch_u32(&l, L2_PASSES);
        break;
    case DRAM_WRITE:
        launch_ptr(&l, r->c->dst);
        launch_u32(&l, vectors(r));
        launch_u32(&l, 1);
        break;
    case DRAM_COPY:
        launch_ptr(&l, r->c->src);
        launch_ptr(&l, r->c->dst);
        launch_u32(&l, vectors(r));
        break;
    case FFMA:
    case UNFUSED:
        launch_ptr(&l, r->c->sink);
        launch_f32(&l, 0.999f);
        launch_f32(&l, 0.5f);
        launch_u32(&l, FMA_ROUNDS);
        break;
    case BF16_MMA:
    case TF32_MMA:
        launch_ptr(&l, r->c->sink);
        launch_u32(&l, 12345);
        launch_u32(&l, MMA_ROUNDS);
        break;
    }
    return launch_submit(&l, err);
}

/* Bytes or flops of one launch. */
static double work_of(const struct ceiling_run *r)
{
    double threads = (double)r->blocks * BLOCK;
    double part =
        (double)(vectors(r) / r->blocks) * r->blocks; /* what bench_l2_read reads a pass */

    switch (r->id) {
    case DRAM_COPY:
        return 2.0 * (double)r->bytes;
    case L2_READ:
        return part * 16 * L2_PASSES;
    case FFMA:
    case UNFUSED:
        return threads * 2.0 * FMA_CHAINS * FMA_ROUNDS;
    case BF16_MMA:
        return threads / 32 * 2.0 * 16 * 8 * 16 * MMA_TILES * MMA_ROUNDS;
    case TF32_MMA:
        return threads / 32 * 2.0 * 16 * 8 * 8 * MMA_TILES * MMA_ROUNDS;
    case DRAM_READ:
    case DRAM_WRITE:
        break;
    }
    return (double)r->bytes;
}

/* Takes `n` samples of a launch as it stands; `us` gets them. */
static int sample(const struct ceilings *c, int (*launch)(void *, struct err *), void *ctx,
                  enum temperature temperature, unsigned n, double *us, struct err *err)
{
    struct timing_params p = timing_params_default(device_info(c->rig->device), temperature);
    struct timing_subject subject = {.launch = launch, .ctx = ctx};
    struct timing t;
    int rc;

    p.rounds = 1;
    p.min_per_round = p.max_per_round = n;
    p.long_run_us = INF64; /* all of them, whatever they cost */
    if (timing_begin(c->rig, &subject, &p, &t, err) < 0)
        return -1;
    rc = timing_round(c->rig, &t, 0, err);
    if (rc == 0 && t.nsamples != n)
        BUG("%u samples instead of %u", t.nsamples, n);
    for (unsigned i = 0; i < n && rc == 0; i++)
        us[i] = t.sample[i].us;
    timing_end(&t);
    return rc;
}

static int choose_grid(struct ceiling_run *r, struct err *err)
{
    uint32_t sms = device_info(r->c->rig->device)->sm_count, best = 0;
    double best_rate = 0, us[TRIAL];

    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        double rate;

        r->blocks = grids[i] * sms;
        if (sample(r->c, launch_ceiling, r, kinds[r->id].temperature, TRIAL, us, err) < 0)
            return -1;
        rate = work_of(r) / stats_median(us, TRIAL);
        if (rate > best_rate) {
            best_rate = rate;
            best = r->blocks;
        }
    }
    if (!best)
        return err_set(err, ERR_SYSTEM, "no grid gave a time");
    r->blocks = best;
    return 0;
}

static void publish(struct ceiling_record *rec, const struct device_sheet *sheet,
                    const char *stated)
{
    const struct figure *f = NULL;

    rec->published = NAN64;
    if (sheet)
        f = device_sheet_figure(sheet, rec->name);
    if (sheet && !f && stated)
        f = device_sheet_figure(sheet, stated);
    if (!f || strcmp(f->unit, rec->unit))
        return;
    rec->published = f->value;
    snprintf(rec->published_source, sizeof rec->published_source, "%s", f->source);
}

/* *best gets the fastest sample's rate, per microsecond. */
static int measure_kind(struct ceilings *c, enum ceiling_id id, struct ceiling_record *rec,
                        double *best, struct err *err)
{
    const struct ceiling_kind *kind = &kinds[id];
    struct ceiling_run r = {.c = c, .id = id, .bytes = c->bytes};
    double us[SAMPLES], work, scale = strcmp(kind->unit, "GB/s") ? 1e-6 : 1e-3;
    struct interval i;
    struct kernel *k = NULL;

    if (id == L2_READ)
        r.bytes = (size_t)c->roofs.l2_bytes / 2;
    if (kernel_set_find(c->set, kind->module, kind->entry, &k, err) < 0)
        return -1;
    r.kernel = k;
    if (choose_grid(&r, err) < 0 ||
        sample(c, launch_ceiling, &r, kind->temperature, SAMPLES, us, err) < 0)
        return err_context(err, "ceiling %s", kind->name);
    work = work_of(&r);
    i = stats_median_interval(us, SAMPLES, 0.95);
    *rec = (struct ceiling_record){
        .value = scale * work / stats_median(us, SAMPLES),
        .low = scale * work / i.high,
        .high = scale * work / i.low,
        .nsamples = SAMPLES,
    };
    snprintf(rec->name, sizeof rec->name, "%s", kind->name);
    snprintf(rec->unit, sizeof rec->unit, "%s", kind->unit);
    *best = work / stats_quantile(us, SAMPLES, 0);
    if (!(rec->value > 0) || !isfinite(rec->value))
        return err_set(err, ERR_SYSTEM, "ceiling %s: measured %g %s", kind->name, rec->value,
                       kind->unit);
    return 0;
}

int ceilings_measure(struct ceilings *c, const struct device_sheet *sheet, struct err *err)
{
    double unused, *best[KINDS] = {
                       [DRAM_READ] = &c->roofs.dram_read, [DRAM_WRITE] = &c->roofs.dram_write,
                       [DRAM_COPY] = &c->roofs.dram_copy, [L2_READ] = &c->roofs.l2_read,
                       [FFMA] = &c->roofs.ffma,           [UNFUSED] = &unused,
                       [BF16_MMA] = &c->roofs.bf16_mma,   [TF32_MMA] = &c->roofs.tf32_mma,
                   };
    struct ceiling_record *launch = &c->record[KINDS];

    for (size_t i = 0; i < KINDS; i++) {
        if (measure_kind(c, (enum ceiling_id)i, &c->record[i], best[i], err) < 0)
            return -1;
        publish(&c->record[i], sheet, kinds[i].stated);
    }
    *launch = (struct ceiling_record){
        .name = "launch",
        .unit = "us",
        .value = c->rig->launch_overhead_us,
        .low = NAN64,
        .high = NAN64,
        .nsamples = 1,
    };
    publish(launch, sheet, NULL);
    return 0;
}

/* --- buffers ---------------------------------------------------------------------------------- */

static int fill(struct ceilings *c, dev_ptr dst, struct err *err)
{
    struct kernel *k = NULL;
    struct launch l;

    if (kernel_set_find(c->set, "bench_memory", "bench_write", &k, err) < 0)
        return -1;
    launch_init(&l, k);
    launch_grid(&l, 8 * device_info(c->rig->device)->sm_count, 1, 1);
    launch_block(&l, BLOCK, 1, 1);
    launch_ptr(&l, dst);
    launch_u32(&l, (uint32_t)(c->bytes / 16));
    launch_u32(&l, 7);
    return launch_submit(&l, err);
}

int ceilings_open(struct timing_rig *rig, struct kernel_set *set, struct ceilings *c,
                  struct err *err)
{
    const struct device_info *info = device_info(rig->device);
    size_t bytes = info->memory_bytes / MEMORY_SHARE;
    size_t l2 = info->l2_bytes ? info->l2_bytes : BUFFER_MIN / EVICT_FACTOR;
    size_t rows = GEMV_L2 * l2 / (2 * GEMV_COLS);

    memset(c, 0, sizeof *c);
    c->rig = rig;
    c->set = set;
    c->bytes = bytes > BUFFER_MAX ? BUFFER_MAX : bytes < BUFFER_MIN ? BUFFER_MIN : bytes;
    if (rows > c->bytes / (2 * GEMV_COLS) - 1) /* one row of src is the vector */
        rows = c->bytes / (2 * GEMV_COLS) - 1;
    c->rows = (uint32_t)rows;
    c->cols = GEMV_COLS;
    roofs_init(&c->roofs);
    c->roofs.l2_bytes = (double)l2;
    if (device_alloc(rig->device, c->bytes, "ceiling source", &c->src, err) < 0 ||
        device_alloc(rig->device, c->bytes, "ceiling target", &c->dst, err) < 0 ||
        device_alloc(rig->device, c->rows * sizeof(float), "ceiling sink", &c->sink, err) < 0 ||
        fill(c, c->src, err) < 0 || device_sync(rig->device, err) < 0) {
        ceilings_close(c);
        return err_context(err, "ceilings");
    }
    return 0;
}

void ceilings_close(struct ceilings *c)
{
    if (c->rig) {
        device_free(c->rig->device, c->src);
        device_free(c->rig->device, c->dst);
        device_free(c->rig->device, c->sink);
    }
    memset(c, 0, sizeof *c);
}

/* --- sentinel --------------------------------------------------------------------------------- */

struct gemv_run {
    const struct ceilings *c;
    const struct kernel *kernel;
};

static int launch_gemv(void *ctx, struct err *err)
{
    const struct gemv_run *r = ctx;
    const struct ceilings *c = r->c;
    struct launch l;

    launch_init(&l, r->kernel);
    launch_grid(&l, (c->rows + BLOCK / 32 - 1) / (BLOCK / 32), 1, 1);
    launch_block(&l, BLOCK, 1, 1);
    launch_ptr(&l, c->src);
    launch_ptr(&l, c->src + (uint64_t)c->rows * c->cols * 2);
    launch_ptr(&l, c->sink);
    launch_u32(&l, c->rows);
    launch_u32(&l, c->cols);
    return launch_submit(&l, err);
}

int ceilings_sentinel(struct ceilings *c, struct sentinel *out, struct err *err)
{
    double matrix = (double)c->rows * c->cols * 2, us[TRIAL];
    struct ceiling_run copy = {.c = c, .id = DRAM_COPY, .bytes = (size_t)matrix & ~(size_t)15};
    struct gemv_run gemv = {.c = c};
    struct kernel *k = NULL;

    if (kernel_set_find(c->set, "bench_memory", "bench_gemv", &k, err) < 0)
        return -1;
    gemv.kernel = k;
    if (kernel_set_find(c->set, "bench_memory", "bench_copy", &k, err) < 0)
        return -1;
    copy.kernel = k;
    copy.blocks = 8 * device_info(c->rig->device)->sm_count;
    if (sample(c, launch_gemv, &gemv, BENCH_COLD, TRIAL, us, err) < 0)
        return err_context(err, "sentinel gemv");
    out->gemv_gbs = 1e-3 * matrix / stats_median(us, TRIAL);
    if (sample(c, launch_ceiling, &copy, BENCH_COLD, TRIAL, us, err) < 0)
        return err_context(err, "sentinel copy");
    out->copy_gbs = 1e-3 * work_of(&copy) / stats_median(us, TRIAL);
    return 0;
}

bool sentinel_slow(const struct sentinel *now, char *why, size_t n)
{
    if (now->gemv_gbs >= SENTINEL_RATIO * now->copy_gbs)
        return false;
    snprintf(why, n,
             "GEMV-like reads run at %.0f GB/s while copies run at %.0f GB/s: the device is in the "
             "slow state that some GB10 fall into; power it off and on, then measure again",
             now->gemv_gbs, now->copy_gbs);
    return true;
}

bool sentinel_drifted(const struct sentinel *first, const struct sentinel *now, char *why, size_t n)
{
    if (fabs(now->gemv_gbs - first->gemv_gbs) <= DRIFT * first->gemv_gbs &&
        fabs(now->copy_gbs - first->copy_gbs) <= DRIFT * first->copy_gbs)
        return false;
    snprintf(why, n, "sentinel moved: GEMV %.0f to %.0f GB/s, copy %.0f to %.0f GB/s",
             first->gemv_gbs, now->gemv_gbs, first->copy_gbs, now->copy_gbs);
    return true;
}
