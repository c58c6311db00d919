/* dense_gemv_bf16: C[n] = sum_k A[k] B[n,k], the projection of one row. */
#include "kernels/ops/kda_dense_common.h"
#include "reference/kda_dense.h"

static const struct operator_entry entries[] = {
    {.module = "gemv", .entry = "dense_gemv_bf16"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "N", .fallback = 37, .min = 1, .max = 1u << 20},
    {.key = "K", .fallback = 72, .min = 8, .max = 1u << 20},
    {.key = "fill", .max = 4, .choices = dense_fills},
    {.key = NULL},
};

static int shape(struct problem *p, struct err *err)
{
    return dense_shape(p, 1, 0, err);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    (void)err;
    dense_expect(p, env, kda_dense_element, g, DENSE_C, 1, case_u32(&p->tc, "N"));
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct kda_dense_args args = dense_args_of(run, 1);

    return kda_launch_gemv(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    dense_cost(p, 1, cost);
}

const struct op operator_kda_gemv = {
    .name = "kda_gemv",
    .summary = "GEMV of the KDA decode projections, bf16",
    .entries = entries,
    .params = params,
    .contract = DENSE_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
