/* dense_gemm_bf16: C[m,n] = sum_k A[m,k] B[n,k], the tile GEMM for any number of rows. */
#include "kernels/ops/kda_dense_common.h"
#include "reference/kda_dense.h"

static const struct operator_entry entries[] = {
    {.module = "gemm", .entry = "dense_gemm_bf16"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "M", .fallback = 17, .min = 1, .max = 65536},
    {.key = "N", .fallback = 40, .min = 1, .max = 1u << 20},
    {.key = "K", .fallback = 72, .min = 8, .max = 1u << 20},
    {.key = "fill", .max = 4, .choices = dense_fills},
    {.key = NULL},
};

static int shape(struct problem *p, struct err *err)
{
    return dense_shape(p, case_u32(&p->tc, "M"), 0, err);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    (void)err;
    dense_expect(p, env, kda_dense_element, g, DENSE_C, case_u32(&p->tc, "M"),
                 case_u32(&p->tc, "N"));
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct kda_dense_args args = dense_args_of(run, case_u32(&run->problem->tc, "M"));

    return kda_launch_gemm(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    dense_cost(p, case_u32(&p->tc, "M"), cost);
}

const struct op operator_kda_gemm = {
    .name = "kda_gemm",
    .summary = "tile GEMM of the KDA projections, bf16",
    .entries = entries,
    .params = params,
    .contract = DENSE_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
