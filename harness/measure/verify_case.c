/*
 * The verify protocol of one case.
 *
 * The first run is judged whole (runner_judge). The further ones must leave the same bits: on a GPU
 * they are plain repeats; the CPU device, which is deterministic, runs them under other thread
 * orders, other contents of shared memory and later asynchronous copies instead, so a race shows as
 * a difference. When one shows, the first schedule is run again to tell a kernel that depends on
 * the order from one that is not even repeatable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure/comparison.h"
#include "measure/golden_cache.h"
#include "measure/nvtx.h"
#include "measure/runner_state.h"

struct plan {
    const char *name;
    struct schedule schedule;
};

static const struct plan cpu_plans[] = {
    {"forward order, shared memory of NaN", {ORDER_FORWARD, 0, SHARED_FILL_NAN, 0, false}},
    {"reverse order, shared memory of zeros", {ORDER_REVERSE, 0, SHARED_FILL_ZERO, 0, true}},
    {"random order 1, shared memory of 1e38", {ORDER_RANDOM, 1, SHARED_FILL_BIG, 0, false}},
    {"warp after warp, shared memory of NaN", {ORDER_WARPS, 2, SHARED_FILL_NAN, 0, true}},
};

static const struct plan cuda_plans[] = {
    {"run 1", {ORDER_FORWARD, 0, SHARED_FILL_NAN, 0, false}},
    {"run 2", {ORDER_FORWARD, 0, SHARED_FILL_NAN, 0, false}},
    {"run 3", {ORDER_FORWARD, 0, SHARED_FILL_NAN, 0, false}},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int run_once(struct runner *r, const struct plan *plan, struct err *err)
{
    struct schedule s = plan->schedule;
    s.workers = r->opt.workers;
    device_set_schedule(r->device, &s);
    if (runner_restore(r, err) < 0)
        return -1;
    char what[160];
    snprintf(what, sizeof(what), "running the kernels, %s", plan->name);
    runner_phase(r, what);
    nvtx_phase_begin(r->opt.nvtx, NVTX_VERIFY, 0);
    double start = wall_seconds();
    int rc = runner_launch(r, err);
    if (rc == 0)
        rc = runner_collect(r, err);
    r->device_s += wall_seconds() - start;
    nvtx_end(r->opt.nvtx);
    return rc;
}

static void fail(struct verify_record *rec, enum check check, const char *reason)
{
    rec->verdict = VERDICT_FAIL;
    rec->checks_run |= 1u << check;
    snprintf(rec->failed_check, sizeof(rec->failed_check), "%s", check_name(check));
    snprintf(rec->reason, sizeof(rec->reason), "%s", reason);
}

/* A launch that was refused or that faulted is the kernel's or its launcher's failure; all else is
   the harness's own. 0 when `err` became a verdict. */
static int fail_launch(struct verify_record *rec, const struct plan *plan, struct err *err)
{
    if (err->kind == ERR_INPUT) /* dims that the launcher takes from nobody */
        return -1;
    if (err->kind != ERR_REFUSED && err->kind != ERR_FAULT)
        return err_context(err, "%s", plan->name);
    if (plan != &cpu_plans[0] && plan != &cuda_plans[0])
        err_context(err, "%s", plan->name);
    fail(rec, CHECK_LAUNCH, err->text);
    return 0;
}

/* What the first run left in the buffers it may write; NULL for the others. */
struct snapshot {
    void *data[PROBLEM_MAX_BUFFERS];
};

static void snapshot_take(struct snapshot *s, const struct runner *r)
{
    for (unsigned i = 0; i < r->nbuffers; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        size_t bytes = b->bytes;
        if (b->role != ROLE_OUT && b->role != ROLE_INOUT)
            continue;
        s->data[i] = xcalloc(bytes > 0 ? bytes : 1, 1);
        memcpy(s->data[i], r->after[i], bytes);
    }
}

static void snapshot_free(struct snapshot *s)
{
    for (unsigned i = 0; i < PROBLEM_MAX_BUFFERS; i++)
        free(s->data[i]);
}

/* True when the collected run equals the snapshot; else `where` and both values go into `text`. */
static bool same_outcome(const struct runner *r, const struct snapshot *s, const struct plan *first,
                         const struct plan *now, char *text, size_t n)
{
    for (unsigned i = 0; i < r->nbuffers; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        const void *before = s->data[i] != NULL ? s->data[i] : r->image[i];
        size_t at = 0;
        char where[128];
        if (b->role == ROLE_SCRATCH || compare_runs(b, &r->golden.of[i], before, r->after[i], &at))
            continue;
        buffer_index_text(b, at, where, sizeof(where));
        if (b->dtype == DTYPE_PTR)
            snprintf(text, n, "%s (an address) was changed with %s", where, now->name);
        else
            snprintf(text, n, "%s is %.9g with %s but %.9g with %s", where,
                     dtype_load(b->dtype, before, at), first->name,
                     dtype_load(b->dtype, r->after[i], at), now->name);
        return false;
    }
    return true;
}

/* The runs differ: is it the schedule, or are they not even repeatable? */
static int classify(struct runner *r, const struct snapshot *s, const struct plan *plans,
                    struct verify_record *rec, const char *text, struct err *err)
{
    char again[1024];
    if (device_info(r->device)->kind != DEVICE_CPU) {
        fail(rec, CHECK_REPEAT, text);
        return 0;
    }
    if (run_once(r, &plans[0], err) < 0)
        return fail_launch(rec, &plans[0], err);
    rec->repeats++;
    struct plan repeat = plans[0];
    repeat.name = "the same once more";
    if (same_outcome(r, s, &plans[0], &repeat, again, sizeof(again)))
        fail(rec, CHECK_SCHEDULE, text);
    else
        fail(rec, CHECK_REPEAT, again);
    return 0;
}

static int check_fences_again(struct runner *r, const struct plan *plan, struct verify_record *rec,
                              struct err *err)
{
    for (unsigned i = 0; i < r->nbuffers; i++) {
        struct err what = ERR_INIT;
        bool hit = false;
        if (fenced_check(&r->fenced[i], &hit, &what) < 0) {
            *err = what;
            return -1;
        }
        if (!hit)
            continue;
        err_context(&what, "%s", plan->name);
        fail(rec, CHECK_FENCE, what.text);
        return 0;
    }
    return 0;
}

/* The runs after the first, until one shows something. */
static int run_again(struct runner *r, const struct plan *plans, size_t count,
                     struct verify_record *rec, struct err *err)
{
    struct snapshot s = {.data = {NULL}};
    int rc = 0;
    snapshot_take(&s, r);
    for (size_t i = 1; i < count && rc == 0 && rec->verdict != VERDICT_FAIL; i++) {
        char text[1024];
        if (run_once(r, &plans[i], err) < 0) {
            rc = fail_launch(rec, &plans[i], err);
            break;
        }
        rec->repeats++;
        if (!same_outcome(r, &s, &plans[0], &plans[i], text, sizeof(text)))
            rc = classify(r, &s, plans, rec, text, err);
        else
            rc = check_fences_again(r, &plans[i], rec, err);
    }
    snapshot_free(&s);
    rec->checks_run |= 1u << CHECK_REPEAT;
    if (plans == cpu_plans)
        rec->checks_run |= 1u << CHECK_SCHEDULE;
    rec->device_s = r->device_s;
    return rc;
}

static int verify_runner(struct runner *r, struct verify_record *rec, struct err *err)
{
    bool cpu = device_info(r->device)->kind == DEVICE_CPU;
    const struct plan *plans = cpu ? cpu_plans : cuda_plans;
    size_t count = cpu ? COUNT(cpu_plans) : COUNT(cuda_plans);
    rec->schedules = cpu ? (unsigned)count : 1;
    if (run_once(r, &plans[0], err) < 0)
        return fail_launch(rec, &plans[0], err);
    rec->repeats = 1;
    if (runner_judge(r, rec, err) < 0)
        return -1;
    if (rec->verdict == VERDICT_FAIL)
        return 0;
    return run_again(r, plans, count, rec, err);
}

static void set_error(struct verify_record *rec, const struct test_case *tc, struct err *err)
{
    if (tc->origin[0] != '\0' && err->kind == ERR_INPUT)
        err_context(err, "%s", tc->origin);
    rec->verdict = VERDICT_ERROR;
    rec->failed_check[0] = '\0';
    snprintf(rec->reason, sizeof(rec->reason), "%s", err->text);
}

int verify_case(struct device *dev, struct kernel_set *set, const struct test_case *tc,
                const struct runner_options *opt, struct verify_record *rec, struct err *err)
{
    struct runner *r = NULL;
    int rc;
    runner_record_init(rec, tc, device_info(dev)->spec, opt->kernels_dir);
    nvtx_case_begin(opt->nvtx, tc->text, case_hash(tc).hi);
    if (runner_open(dev, set, tc, opt, &r, err) == 0) {
        rc = verify_runner(r, rec, err);
        runner_close(r);
    } else if (err->kind == ERR_MISSING) {
        rec->verdict = VERDICT_SKIP;
        snprintf(rec->reason, sizeof(rec->reason), "%s", err->text);
        rc = 0;
    } else {
        rc = -1;
    }
    nvtx_end(opt->nvtx);
    if (rc < 0)
        set_error(rec, tc, err);
    return rc;
}
