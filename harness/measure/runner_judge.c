/* From a collected run to a verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/shell.h"
#include "measure/judge.h"
#include "measure/nvtx.h"
#include "measure/runner_state.h"

#define CHECKS_OF_ONE_RUN                                                                          \
    (1u << CHECK_LAUNCH | 1u << CHECK_FENCE | 1u << CHECK_INPUTS | 1u << CHECK_COVERAGE |          \
     1u << CHECK_KEEP | 1u << CHECK_GOLDEN)

void runner_record_init(struct verify_record *rec, const struct test_case *tc,
                        const char *device_spec, const char *kernels_dir)
{
    memset(rec, 0, sizeof(*rec));
    snprintf(rec->case_text, sizeof(rec->case_text), "%s", tc->text);
    snprintf(rec->op, sizeof(rec->op), "%s", tc->op->name);
    snprintf(rec->tier, sizeof(rec->tier), "%s", tier_name(tc->tier));
    snprintf(rec->contract, sizeof(rec->contract), "%s", tc->op->contract);
    rec->verdict = VERDICT_ERROR;
    struct text t;
    text_init(&t);
    text_addf(&t, "build/deltarig verify --device %s", device_spec);
    if (kernels_dir != NULL) {
        text_add(&t, " --kernels ");
        shell_quote(&t, kernels_dir);
    }
    text_add(&t, " --case ");
    shell_quote(&t, tc->text);
    snprintf(rec->repro, sizeof(rec->repro), "%s", t.data);
    text_release(&t);
}

/* The first fence that was crossed, into `text`; 1 when there is one. */
static int check_fences(const struct runner *r, char *text, size_t n, struct err *err)
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
        snprintf(text, n, "%s", what.text);
        return 1;
    }
    return 0;
}

/* What reference() says of buffer i, unless stages() has replaced it. */
static const struct expectation *expectation_of(const struct runner *r, const struct golden *staged,
                                                unsigned i)
{
    bool replaced = staged->count > 0 && staged->of[i].value != NULL;
    return replaced ? &staged->of[i] : &r->golden.of[i];
}

/* Hash of the bits that matter: what is FREE may differ from run to run. */
static void hash_bits(const struct buffer *b, const struct expectation *e, const void *bits,
                      size_t frees, char hex[HASH_HEX])
{
    if (frees == 0) {
        hash_hex(hash_bytes(bits, b->bytes), hex);
        return;
    }
    size_t size = dtype_size(b->dtype);
    char *copy = xcalloc(b->bytes, 1);
    memcpy(copy, bits, b->bytes);
    for (size_t i = 0; i < b->count; i++)
        if (expectation_at(e, i) == EXPECT_FREE)
            memset(copy + i * size, 0, size);
    hash_hex(hash_bytes(copy, b->bytes), hex);
    free(copy);
}

static void compare_all(const struct runner *r, const struct golden *staged,
                        struct buffer_stats *stats, struct verify_record *rec)
{
    rec->noutputs = 0;
    for (unsigned i = 0; i < r->nbuffers; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        const struct expectation *e = expectation_of(r, staged, i);
        compare_buffer(b, e, r->image[i], r->after[i], &stats[i]);
        if (b->role != ROLE_OUT && b->role != ROLE_INOUT)
            continue;
        struct output_stat *out = &rec->output[rec->noutputs++];
        judge_output(b, &stats[i], out);
        hash_bits(b, e, r->after[i], stats[i].frees, out->bits);
    }
}

static const char *check_launched(const struct runner *r)
{
    bool kernels = r->problem.tc.op->entries[0].entry != NULL;
    return kernels && r->nseen == 0 ? "the launcher launched no kernel" : NULL;
}

static int judge_run(const struct runner *r, const struct golden *staged, struct verify_record *rec,
                     struct err *err)
{
    const struct op *op = r->problem.tc.op;
    struct buffer_stats stats[PROBLEM_MAX_BUFFERS];
    struct outcome outcome = {.problem = &r->problem, .data = r->after};
    struct evidence ev = {.checks_run = CHECKS_OF_ONE_RUN, .stats = stats};
    struct identity_report identities = {.checked = 0};
    char fence[1024];
    int hit = check_fences(r, fence, sizeof(fence), err);
    if (hit < 0)
        return -1;
    compare_all(r, staged, stats, rec);
    text_init(&identities.text);
    if (op->identities != NULL)
        op->identities(&outcome, &identities);
    if (identities.checked > 0)
        ev.checks_run |= 1u << CHECK_IDENTITY;
    ev.found[CHECK_LAUNCH] = check_launched(r);
    ev.found[CHECK_FENCE] = hit > 0 ? fence : NULL;
    ev.found[CHECK_IDENTITY] = identities.broken > 0 ? identities.text.data : NULL;
    judge(&r->problem, &ev, rec);
    text_release(&identities.text);
    return 0;
}

int runner_judge(struct runner *r, struct verify_record *rec, struct err *err)
{
    const struct op *op = r->problem.tc.op;
    struct outcome outcome = {.problem = &r->problem, .data = r->after};
    struct reference_env env = {.workers = r->opt.workers};
    struct golden staged = {.count = 0};
    int rc = 0;
    runner_phase(r, "comparing");
    nvtx_phase_begin(r->opt.nvtx, NVTX_COMPARE, 0);
    if (op->stages != NULL) {
        golden_init(&staged, &r->problem);
        rc = op->stages(&outcome, &env, &staged, err);
    }
    if (rc == 0)
        rc = judge_run(r, &staged, rec, err);
    golden_release(&staged);
    nvtx_end(r->opt.nvtx);
    runner_kernels(r, rec->kernel, &rec->nkernels);
    rec->reference_s = r->reference_s;
    rec->device_s = r->device_s;
    rec->golden_cached = r->golden_cached;
    return rc;
}
