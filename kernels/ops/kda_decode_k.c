/*
 * One KDA layer for K rows of one sequence: the projections of all rows in one launch each, the
 * convolution and the recurrence row by row. With twin=1 the rows are also decoded one at a time:
 * for K <= 16 (as many as the batched gemv takes, whose rows are gemv's) the same bits. A set
 * without the batched gemv sends K rows to the tile GEMM, which sums in another order: then there
 * is no such contract.
 */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda_layer_common.h"
#include "problem/operator.h"
#include "reference/kda_recurrence.h"

static const struct param params[] = {
    {.key = "hidden", .fallback = 256, .min = 8, .max = 65536},
    {.key = "H", .fallback = 2, .min = 1, .max = 1024},
    {.key = "K", .fallback = 4, .min = 1, .max = 1024},
    {.key = "gate", .max = 1, .choices = layer_gates},
    {.key = "lower", .max = 2, .choices = kda_lowers},
    {.key = "state", .max = 1, .choices = kda_states},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: without the single decodes, for timing */
    {.key = NULL},
};

/* u32: 1 when the launches took the batched gemv. */
#define BATCHED "batched"

static int shape(struct problem *p, struct err *err)
{
    struct layer_sizes n = layer_sizes_of(p, "K", false);
    const struct dim one = {"flag", 1}, none = {NULL, 0};

    if (layer_add_inputs(p, &n, err) < 0 || layer_add_stages(p, &n, TWIN_NONE, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    if (layer_add_stages(p, &n, TWIN_SINGLE, err) < 0)
        return -1;
    return add_rows(p, BATCHED, DTYPE_U32, ROLE_SCRATCH, one, none, err);
}

/* Rows [first, first + rows) as one decode_k. */
static int decode(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err)
{
    if (layer_project(l, first, rows, err) < 0 || layer_decode_rows(l, first, rows, err) < 0)
        return -1;
    return layer_finish(l, first, rows, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct layer_sizes n = layer_sizes_of(run->problem, "K", false);
    struct layer_run batch = layer_run_of(run, &n, TWIN_NONE);

    if (decode(&batch, 0, n.rows, err) < 0)
        return -1;
    if (!case_u32(&run->problem->tc, "twin"))
        return 0;
    dev_ptr flag = run->ptr[problem_find(run->problem, BATCHED)];
    if (device_fill32(run->device, flag, batch.kernels.gemv_batchm != NULL, 1, err) < 0)
        return -1;
    struct layer_run single = layer_run_of(run, &n, TWIN_SINGLE);
    for (uint32_t row = 0; row < n.rows; row++)
        if (decode(&single, row, 1, err) < 0)
            return err_context(err, "row %u alone", row);
    return 0;
}

static int stages(const struct outcome *out, const struct reference_env *env, struct golden *g,
                  struct err *err)
{
    struct layer_sizes n = layer_sizes_of(out->problem, "K", false);

    (void)err;
    layer_expect(out, env, g, &n, TWIN_NONE);
    if (case_u32(&out->problem->tc, "twin"))
        layer_expect(out, env, g, &n, TWIN_SINGLE);
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct problem *p = out->problem;
    uint32_t k = case_u32(&p->tc, "K");

    if (!case_u32(&p->tc, "twin") || k > KDA_BATCHM_MAX_ROWS)
        return;
    const uint32_t *batched = out->data[problem_find(p, BATCHED)];
    if (k > 1 && *batched != 1)
        return;
    struct layer_set batch = layer_set_of(p, TWIN_NONE), single = layer_set_of(p, TWIN_SINGLE);
    for (int s = 0; s < LAYER_STAGES; s++)
        if (batch.id[s] >= 0)
            identity_equal(rep, out, "decode of K rows = K decodes",
                           (struct identity_side){.buffer = batch.id[s]},
                           (struct identity_side){.buffer = single.id[s]},
                           p->buffer[batch.id[s]].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct layer_sizes n = layer_sizes_of(p, "K", false);

    layer_cost(p, &n, cost);
}

const struct op operator_kda_decode_k = {
    .name = "kda_decode_k",
    .summary = "a whole KDA layer, decode of K rows, against K decodes of one",
    .entries = kda_entries,
    .params = params,
    .contract = LAYER_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = layer_reference,
    .launch = launch,
    .identities = identities,
    .stages = stages,
    .cost = cost,
};
