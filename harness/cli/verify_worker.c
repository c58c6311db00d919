#include "cli/verify_worker.h"

#include <stdio.h>
#include <string.h>

#include "base/parallel.h"

static void phase(void *ctx, const char *what)
{
    supervisor_phase(ctx, what);
}

static void warn(void *ctx, const char *text)
{
    supervisor_warn(ctx, text);
}

int verify_worker_open(void *worker, struct device_info *info, struct err *err)
{
    struct verify_worker *w = worker;
    if (device_open(w->device_spec, &w->device, err) < 0)
        return -1;
    *info = *device_info(w->device);
    if (kernel_set_open(w->device, w->kernels_dir, &w->set, err) < 0) {
        device_close(w->device);
        return -1;
    }
    unsigned share = parallel_cpus() / (w->jobs > 0 ? w->jobs : 1);
    w->options = (struct runner_options){.golden_dir = w->golden_dir,
                                         .golden_read_only = w->golden_read_only,
                                         .workers = share > 0 ? share : 1,
                                         .warn = warn,
                                         .phase = phase,
                                         .kernels_dir = w->kernels_dir};
    if (info->kind != DEVICE_CPU)
        w->options.workers = 0; /* it has the machine to itself */
    w->nvtx = w->options.nvtx = nvtx_open();
    nvtx_suite_begin(w->nvtx, "verify", w->cases->count);
    return 0;
}

bool entry_required(const char *require, const struct operator_entry *entry)
{
    if (require == NULL)
        return false;
    if (strcmp(require, "all") == 0)
        return !entry->optional;
    size_t n = strlen(entry->entry);
    for (const char *at = require; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, entry->entry, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* True when an entry that must be there is not: `result` then says so. */
static bool required_missing(struct verify_worker *w, const struct test_case *tc,
                             struct verify_record *rec)
{
    for (const struct operator_entry *e = tc->op->entries; e->entry != NULL; e++) {
        struct kernel *k;
        struct err why = ERR_INIT;
        if (!entry_required(w->require, e) ||
            kernel_set_find(w->set, e->module, e->entry, &k, &why) == 0 || why.kind != ERR_MISSING)
            continue;
        rec->verdict = VERDICT_FAIL;
        err_context(&why, "a required entry is missing");
        snprintf(rec->reason, sizeof(rec->reason), "%s", why.text);
        snprintf(rec->failed_check, sizeof(rec->failed_check), "%s", check_name(CHECK_LAUNCH));
        return true;
    }
    return false;
}

/* After a fault the device may be damaged: a lost GPU context, a corrupted heap. A refusal shares
   the check, and a needless restart costs little. */
static bool damaged(const struct verify_record *rec)
{
    return rec->verdict == VERDICT_ERROR ||
           (rec->verdict == VERDICT_FAIL &&
            strcmp(rec->failed_check, check_name(CHECK_LAUNCH)) == 0);
}

bool verify_worker_run(void *worker, size_t index, void *result, const struct supervisor_link *link)
{
    struct verify_worker *w = worker;
    struct supervisor_link to = *link;
    w->options.ctx = &to;
    const struct test_case *tc = &w->cases->items[index];
    struct verify_result *res = result;
    struct err err = ERR_INIT;
    if (verify_case(w->device, w->set, tc, &w->options, &res->record, &err) < 0)
        res->kind = err.kind;
    if (res->record.verdict == VERDICT_SKIP && required_missing(w, tc, &res->record))
        return false;
    return damaged(&res->record);
}

void verify_worker_close(void *worker)
{
    struct verify_worker *w = worker;
    nvtx_end(w->nvtx);
    nvtx_close(w->nvtx);
    kernel_set_close(w->set);
    device_close(w->device);
}
