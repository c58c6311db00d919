/*
 * dense_gemv_bf16_batchm: 2..16 rows in one pass over the weight. Each row equals dense_gemv_bf16
 * of that row bit for bit: with twin=1, buffer "C_rows" holds what M launches of the GEMV make of
 * the operands.
 */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda_dense_common.h"
#include "reference/kda_dense.h"

enum { C_ROWS = DENSE_C + 1 };

static const struct operator_entry entries[] = {
    {.module = "dense_gemv_bf16_batchm", .entry = "dense_gemv_bf16_batchm"},
    {.module = "gemv", .entry = "dense_gemv_bf16"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "M", .fallback = 4, .min = 2, .max = KDA_BATCHM_MAX_ROWS},
    {.key = "N", .fallback = 37, .min = 1, .max = 1u << 20},
    {.key = "K", .fallback = 72, .min = 8, .max = 1u << 20},
    {.key = "gap", .fallback = 3, .max = 1u << 16}, /* out_stride = N + gap */
    {.key = "fill", .max = 4, .choices = dense_fills},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the kernel under test, for timing */
    {.key = NULL},
};

static int shape(struct problem *p, struct err *err)
{
    uint32_t m = case_u32(&p->tc, "M"), n = case_u32(&p->tc, "N");

    if (dense_shape(p, m, case_u32(&p->tc, "gap"), err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    return add_rows(p, "C_rows", DTYPE_BF16, ROLE_OUT, (struct dim){"row", m},
                    (struct dim){"column", n}, err);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    uint32_t m = case_u32(&p->tc, "M"), n = case_u32(&p->tc, "N"), gap = case_u32(&p->tc, "gap");

    (void)err;
    dense_expect(p, env, kda_dense_element, g, DENSE_C, m, (size_t)n + gap);
    if (case_u32(&p->tc, "twin"))
        dense_expect(p, env, kda_dense_element, g, C_ROWS, m, n);
    return 0;
}

static int launch_rows(const struct operator_run *run, struct kda_dense_args args, struct err *err)
{
    uint32_t rows = args.m;

    args.m = 1;
    args.out_stride = args.n;
    for (size_t row = 0; row < rows; row++) {
        args.a = run->ptr[DENSE_A] + row * args.k * dtype_size(DTYPE_BF16);
        args.c = run->ptr[C_ROWS] + row * args.n * dtype_size(DTYPE_BF16);
        if (kda_launch_gemv(run->kernel[1], &args, err) < 0)
            return err_context(err, "row %zu alone", row);
    }
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct test_case *tc = &run->problem->tc;
    struct kda_dense_args args = dense_args_of(run, case_u32(tc, "M"));

    args.out_stride = args.n + case_u32(tc, "gap");
    if (kda_launch_gemv_batchm(run->kernel[0], &args, err) < 0)
        return -1;
    return case_u32(tc, "twin") ? launch_rows(run, args, err) : 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct test_case *tc = &out->problem->tc;
    size_t n = case_u32(tc, "N"), stride = n + case_u32(tc, "gap");

    for (size_t row = 0; case_u32(tc, "twin") && row < case_u32(tc, "M"); row++)
        identity_equal(rep, out, "batchm row = gemv of the row",
                       (struct identity_side){.buffer = DENSE_C, .first = row * stride},
                       (struct identity_side){.buffer = C_ROWS, .first = row * n}, n);
}

static void cost(const struct problem *p, struct cost *cost)
{
    dense_cost(p, case_u32(&p->tc, "M"), cost);
}

const struct op operator_kda_gemv_batchm = {
    .name = "kda_gemv_batchm",
    .summary = "GEMV of 2..16 rows in one pass over the weight, against one GEMV a row",
    .entries = entries,
    .params = params,
    .contract = DENSE_CONTRACT "; each row equals dense_gemv_bf16 bit for bit",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
