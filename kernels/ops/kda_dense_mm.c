/*
 * The block's projection and its dispatch on the number of rows: 1 row GEMV; 2..16 rows the
 * batched GEMV, or the GEMM where the set has none (batchm=absent takes that path with any set);
 * more rows the GEMM. With twin=1, buffer "C_direct" holds what the kernel that must be chosen
 * makes of the same operands when it is launched by name: another choice shows in the bits or as
 * an unwritten buffer.
 */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_dense_common.h"
#include "reference/kda_dense.h"

enum { C_DIRECT = DENSE_C + 1 };

static const struct operator_entry entries[] = {
    {.module = "gemm", .entry = "dense_gemm_bf16"},
    {.module = "gemv", .entry = "dense_gemv_bf16"},
    {.module = "dense_gemv_bf16_batchm", .entry = "dense_gemv_bf16_batchm", .optional = true},
    {.module = NULL},
};

static const char *const batchm_choices[] = {"present", "absent", NULL};

static const struct param params[] = {
    {.key = "M", .fallback = 4, .min = 1, .max = 65536},
    {.key = "N", .fallback = 40, .min = 1, .max = 1u << 20},
    {.key = "K", .fallback = 72, .min = 8, .max = 1u << 20},
    {.key = "batchm", .max = 1, .choices = batchm_choices},
    {.key = "fill", .max = 4, .choices = dense_fills},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the dispatch, for timing */
    {.key = NULL},
};

static int shape(struct problem *p, struct err *err)
{
    uint32_t m = case_u32(&p->tc, "M"), n = case_u32(&p->tc, "N");

    if (dense_shape(p, m, 0, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    return add_rows(p, "C_direct", DTYPE_BF16, ROLE_OUT, (struct dim){"row", m},
                    (struct dim){"column", n}, err);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    uint32_t m = case_u32(&p->tc, "M"), n = case_u32(&p->tc, "N");

    (void)err;
    dense_expect(p, env, kda_dense_element, g, DENSE_C, m, n);
    if (case_u32(&p->tc, "twin"))
        dense_expect(p, env, kda_dense_element, g, C_DIRECT, m, n);
    return 0;
}

/* The rule in words of row counts, apart from the dispatch under test. */
static int launch_direct(const struct operator_run *run, bool batchm, struct kda_dense_args args,
                         struct err *err)
{
    args.c = run->ptr[C_DIRECT];
    if (args.m >= 17 || (args.m >= 2 && !batchm))
        return kda_launch_gemm(run->kernel[0], &args, err);
    if (args.m >= 2)
        return kda_launch_gemv_batchm(run->kernel[2], &args, err);
    return kda_launch_gemv(run->kernel[1], &args, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct test_case *tc = &run->problem->tc;
    bool batchm = case_u32(tc, "batchm") == 0 && run->kernel[2] != NULL;
    const struct kda_kernels kernels = {
        .gemm = run->kernel[0],
        .gemv = run->kernel[1],
        .gemv_batchm = batchm ? run->kernel[2] : NULL,
    };
    const struct kda_dense_args args = dense_args_of(run, case_u32(tc, "M"));

    if (kda_dense_mm(&kernels, &args, err) < 0)
        return -1;
    return case_u32(tc, "twin") ? launch_direct(run, batchm, args, err) : 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    if (case_u32(&out->problem->tc, "twin"))
        identity_equal(rep, out, "dispatched kernel = the kernel its row count calls for",
                       (struct identity_side){.buffer = DENSE_C},
                       (struct identity_side){.buffer = C_DIRECT},
                       out->problem->buffer[DENSE_C].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    dense_cost(p, case_u32(&p->tc, "M"), cost);
}

const struct op operator_kda_dense_mm = {
    .name = "kda_dense_mm",
    .summary = "projection with the dispatch on its rows: GEMV, batched GEMV or GEMM",
    .entries = entries,
    .params = params,
    .contract = DENSE_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
