/*
 * One KDA layer for T tokens of one sequence: projections, convolution, L2 norm of q and k,
 * chunks, norms. The convolution's output is copied before the norm works on it in place; the
 * copy is part of the run.
 */
#include "kernels/ops/kda_layer_common.h"
#include "problem/operator.h"
#include "reference/kda_chunk.h"

static const struct param params[] = {
    {.key = "hidden", .fallback = 256, .min = 8, .max = 65536},
    {.key = "H", .fallback = 2, .min = 1, .max = 1024},
    {.key = "T", .fallback = 40, .min = 1, .max = 65535},
    {.key = "gate", .max = 1, .choices = layer_gates},
    {.key = "lower", .max = 2, .choices = kda_lowers},
    {.key = "state", .max = 1, .choices = kda_states},
    {.key = NULL},
};

static int shape(struct problem *p, struct err *err)
{
    struct layer_sizes n = layer_sizes_of(p, "T", true);

    if (layer_add_inputs(p, &n, err) < 0)
        return -1;
    return layer_add_stages(p, &n, TWIN_NONE, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct layer_sizes n = layer_sizes_of(run->problem, "T", true);
    struct layer_run l = layer_run_of(run, &n, TWIN_NONE);

    if (layer_project(&l, 0, n.rows, err) < 0 || layer_prefill_rows(&l, err) < 0)
        return -1;
    return layer_finish(&l, 0, n.rows, err);
}

static int stages(const struct outcome *out, const struct reference_env *env, struct golden *g,
                  struct err *err)
{
    struct layer_sizes n = layer_sizes_of(out->problem, "T", true);

    (void)err;
    layer_expect(out, env, g, &n, TWIN_NONE);
    return 0;
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct layer_sizes n = layer_sizes_of(p, "T", true);

    layer_cost(p, &n, cost);
}

const struct op operator_kda_prefill_layer = {
    .name = "kda_prefill_layer",
    .summary = "a whole KDA layer, prefill of T tokens",
    .entries = kda_entries,
    .params = params,
    .contract = LAYER_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = layer_reference,
    .launch = launch,
    .stages = stages,
    .cost = cost,
};
