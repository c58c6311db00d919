#include "measure/bench_item.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/shell.h"

static int reject(struct bench_item *it, const char *when, const char *what)
{
    it->rejected = true;
    snprintf(it->reason, sizeof it->reason, "%s: %.400s", when, what);
    return -1;
}

static int reject_for(struct bench_item *it, const char *when, const struct err *err)
{
    it->cause = err->kind;
    return reject(it, when, err->text);
}

/* --- what the timing engine calls ------------------------------------------------------------- */

static int launch_item(void *ctx, struct err *err)
{
    return runner_launch(ctx, err);
}

/* Outputs are poisoned again too: a launch that does nothing is seen afterwards. */
static int restore_item(void *ctx, struct err *err)
{
    return runner_restore_fast(ctx, err);
}

/* What a run is timed under on the CPU device. */
static void plain_schedule(const struct bench_rig *b)
{
    struct schedule s = {
        .order = ORDER_FORWARD, .fill = SHARED_FILL_NAN, .workers = b->runner->workers};

    device_set_schedule(b->device, &s);
}

/* --- open ------------------------------------------------------------------------------------- */

static void look_at_buffers(struct bench_item *it)
{
    const struct problem *p = runner_problem(it->runner);

    it->bytes = 0;
    it->in_place = false;
    for (unsigned i = 0; i < p->count; i++) {
        it->bytes += p->buffer[i].bytes;
        it->in_place |= p->buffer[i].role == ROLE_INOUT;
    }
    memset(&it->cost, 0, sizeof it->cost);
    p->tc.op->cost(p, &it->cost);
}

static int begin_timing(struct bench_item *it, const struct bench_rig *b, struct err *err)
{
    struct timing_subject s = {.launch = launch_item, .restore = restore_item, .ctx = it->runner};

    nvtx_phase_begin(b->nvtx, NVTX_WARM_UP, it->bytes);
    for (int t = 0; t < TEMPERATURES; t++) {
        struct timing_params p = timing_params_default(device_info(b->device), (enum temperature)t);

        if (!b->wanted[t])
            continue;
        if (b->rounds)
            p.rounds = b->rounds;
        if (b->budget_s > 0)
            p.budget_s = b->budget_s;
        if (timing_begin(b->rig, &s, &p, &it->timing[t], err) < 0)
            break;
    }
    nvtx_end(b->nvtx);
    return err->kind == ERR_NONE ? 0 : -1;
}

int bench_item_open(struct bench_item *it, const struct bench_rig *b, struct kernel_set *set,
                    const struct bench_item *like)
{
    struct runner_options opt = *b->runner;
    double loaded = kernel_set_load_seconds(set);
    struct err err = ERR_INIT;

    plain_schedule(b);
    opt.kernels_dir = it->kernels_dir;
    opt.like = like ? like->runner : NULL;
    if (runner_open(b->device, set, it->tc, &opt, &it->runner, &err) < 0)
        return reject_for(it, "not timed", &err);
    it->module_load_us = device_info(b->device)->kind == DEVICE_CPU /* loads when a set opens */
                             ? NAN64
                             : 1e6 * (kernel_set_load_seconds(set) - loaded);
    look_at_buffers(it);
    if (runner_restore(it->runner, &err) < 0 || begin_timing(it, b, &err) < 0)
        return reject_for(it, "not timed", &err);
    return 0;
}

void bench_item_close(struct bench_item *it)
{
    for (int t = 0; t < TEMPERATURES; t++)
        timing_end(&it->timing[t]);
    runner_close(it->runner);
    it->runner = NULL;
}

/* --- rounds ----------------------------------------------------------------------------------- */

static int renew(struct bench_item *it, const struct bench_rig *b, struct kernel_set *set,
                 struct err *err)
{
    struct timing *cold = &it->timing[BENCH_COLD];

    if (!b->wanted[BENCH_COLD] || it->enough[BENCH_COLD] ||
        cold->estimate_us > cold->params.long_run_us)
        return 0; /* fetching the code is nothing in a long run */
    if (runner_rebind(it->runner, set, err) < 0)
        return -1;
    return timing_renew(b->rig, cold, err);
}

int bench_item_round(struct bench_item *it, const struct bench_rig *b, struct kernel_set *set,
                     unsigned round)
{
    struct err err = ERR_INIT;
    int rc = set ? renew(it, b, set, &err) : 0;

    for (int t = 0; t < TEMPERATURES && rc == 0; t++) {
        if (!b->wanted[t] || it->enough[t])
            continue;
        nvtx_phase_begin(b->nvtx, NVTX_TIMED, it->bytes);
        rc = timing_round(b->rig, &it->timing[t], round, &err);
        nvtx_end(b->nvtx);
    }
    return rc < 0 ? reject_for(it, "while it was timed", &err) : 0;
}

void bench_item_reset(struct bench_item *it)
{
    for (int t = 0; t < TEMPERATURES; t++) {
        it->timing[t].nsamples = 0;
        it->timing[t].spent_s = 0;
        it->enough[t] = false;
    }
}

/* Both sides of a case keep the same rounds. */
static bool case_wants_more(struct bench_item *it, unsigned sides, const struct bench_rig *b)
{
    bool any = false;

    for (int t = 0; t < TEMPERATURES; t++) {
        bool wants = false;

        for (unsigned k = 0; k < sides && b->wanted[t]; k++)
            wants |= !it[k].rejected && timing_wants_more(&it[k].timing[t]);
        for (unsigned k = 0; k < sides; k++)
            it[k].enough[t] = !wants;
        any |= wants;
    }
    return any;
}

size_t bench_items_want_more(struct bench_item *item, size_t cases, unsigned sides,
                             const struct bench_rig *b)
{
    size_t n = 0;

    for (size_t i = 0; i < cases; i++)
        n += case_wants_more(&item[i * sides], sides, b);
    return n;
}

/* Where runs build on one another the golden holds after one of them; else any number of runs
   leaves it. */
static int run_and_judge(struct bench_item *it, enum temperature t, struct verify_record *rec,
                         struct err *err)
{
    memset(rec, 0, sizeof *rec);
    if (timing_replay(&it->timing[t], it->in_place, err) < 0 || runner_collect(it->runner, err) < 0)
        return -1;
    return runner_judge(it->runner, rec, err);
}

static int finish_one(struct bench_item *it, enum temperature t, bool shared)
{
    struct verify_record rec;
    struct err err = ERR_INIT;
    char text[400];

    if (runner_restore_fast(it->runner, &err) < 0 || run_and_judge(it, t, &rec, &err) < 0)
        return reject_for(it, "after the timed loop", &err);
    if (rec.verdict != VERDICT_PASS && shared) {
        snprintf(it->damage, sizeof it->damage, "%s: %.400s", verdict_name(rec.verdict),
                 rec.reason);
        if (runner_mend(it->runner, &err) < 0 || run_and_judge(it, t, &rec, &err) < 0)
            return reject_for(it, "after the timed loop", &err);
    }
    if (rec.verdict != VERDICT_PASS) {
        snprintf(text, sizeof text, "%s: %.380s", verdict_name(rec.verdict), rec.reason);
        return reject(it, "after the timed loop", text);
    }
    it->verified_after[t] = true;
    return 0;
}

void bench_item_settle_damage(struct bench_item *a, struct bench_item *b)
{
    const char *what = a->damage[0] ? a->damage : b->damage;
    char text[400];

    if (!what[0] || a->rejected || b->rejected)
        return;
    snprintf(text, sizeof text, "one of the two sides did this, time each alone: %.340s", what);
    reject(a, "after the timed loops", text);
    reject(b, "after the timed loops", text);
}

int bench_item_finish(struct bench_item *it, const struct bench_rig *b, bool shared)
{
    int rc = 0;

    it->damage[0] = '\0';
    nvtx_phase_begin(b->nvtx, NVTX_COMPARE, it->bytes);
    for (int t = 0; t < TEMPERATURES && rc == 0; t++)
        if (b->wanted[t])
            rc = finish_one(it, (enum temperature)t, shared);
    nvtx_end(b->nvtx);
    return rc;
}

/* --- records ---------------------------------------------------------------------------------- */

static void write_repro(const struct bench_item *it, const struct bench_rig *b, enum temperature t,
                        struct bench_record *out)
{
    struct text text;

    text_init(&text);
    text_add(&text, "build/deltarig bench --case ");
    shell_quote(&text, it->tc->text);
    text_addf(&text, " --device %s --%s", device_info(b->device)->spec,
              t == BENCH_COLD ? "cold" : "hot");
    if (it->kernels_dir) {
        text_add(&text, " --kernels ");
        shell_quote(&text, it->kernels_dir);
    }
    snprintf(out->repro, sizeof out->repro, "%s", text.data);
    text_release(&text);
}

void bench_item_record(const struct bench_item *it, const struct bench_rig *b, enum temperature t,
                       struct bench_record *out)
{
    const struct timing *m = &it->timing[t];
    const char *state = it->in_place ? "restored" : "none";

    memset(out, 0, sizeof *out);
    snprintf(out->case_text, sizeof out->case_text, "%s", it->tc->text);
    snprintf(out->op, sizeof out->op, "%s", it->tc->op->name);
    snprintf(out->reason, sizeof out->reason, "%s", it->rejected ? it->reason : "");
    write_repro(it, b, t, out);
    out->temperature = t;
    out->launch_overhead_us = b->rig->launch_overhead_us;
    out->event_tick_us = b->rig->event_tick_us;
    out->median_us = out->low_us = out->high_us = NAN64;
    out->roof_us = out->roof_percent = out->gb10_floor_us = out->reference_clock_mhz = NAN64;
    if (!it->runner)
        return;
    out->sample = m->sample;
    out->nsamples = m->nsamples;
    out->launches_per_sample = m->launches;
    snprintf(out->launch_mode, sizeof out->launch_mode, "%s", m->one ? "graph" : "stream");
    snprintf(out->state_mode, sizeof out->state_mode, "%s", state);
    out->evict_bytes = t == BENCH_COLD ? (double)b->rig->evict_bytes : 0;
    out->verified_after = it->verified_after[t];
    out->first_launch_us = m->first_launch_us;
    out->module_load_us = it->module_load_us;
    out->read_bytes = it->cost.read_bytes;
    out->write_bytes = it->cost.write_bytes;
    out->flops = it->cost.flops;
    if (b->gb10 && (t == BENCH_COLD || !b->wanted[BENCH_COLD])) /* it is the same floor for both */
        out->gb10_floor_us = roof_from_sheet(&it->cost, b->gb10);
    runner_kernels(it->runner, out->kernel, &out->nkernels);
}

struct roof_floor bench_item_floor(const struct bench_item *it, const struct bench_rig *b,
                                   enum temperature t)
{
    return roof_floor(&it->cost, b->roofs, t);
}
