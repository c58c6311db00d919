/* kda_split_widen: rows q | k | v of bf16 into three fp32 buffers of T + pad rows; the pad is
   left alone. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_move_common.h"
#include "problem/operator.h"
#include "reference/kda_move.h"

static const struct operator_entry entries[] = {
    {.module = "kda_layer_ops", .entry = "kda_split_widen"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "T", .fallback = 5, .min = 1, .max = 65535},
    {.key = "qkv", .fallback = 384, .min = 1, .max = 1u << 20},
    {.key = "pad", .fallback = 3, .max = 4096}, /* rows behind T in q, k and v */
    {.key = NULL},
};

enum { SRC, Q, K, V };

static int shape(struct problem *p, struct err *err)
{
    size_t tokens = case_u32(&p->tc, "T"), qkv = case_u32(&p->tc, "qkv");
    const struct dim token = {"token", tokens},
                     padded = {"token", tokens + case_u32(&p->tc, "pad")};
    const struct dim channel = {"channel", qkv}, packed = {"channel", 3 * qkv};

    if (add_rows(p, "src", DTYPE_BF16, ROLE_IN, token, packed, err) < 0 ||
        add_rows(p, "q", DTYPE_F32, ROLE_OUT, padded, channel, err) < 0 ||
        add_rows(p, "k", DTYPE_F32, ROLE_OUT, padded, channel, err) < 0 ||
        add_rows(p, "v", DTYPE_F32, ROLE_OUT, padded, channel, err) < 0)
        return -1;
    fill_any_bf16(&p->buffer[SRC], rng_key(p->tc.seed, "src"));
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    size_t tokens = case_u32(&p->tc, "T"), qkv = case_u32(&p->tc, "qkv"), n = tokens * qkv;
    float *src = buffer_floats(&p->buffer[SRC]), *all = xcalloc(3 * n, sizeof(*all));
    float *const part[3] = {all, all + n, all + 2 * n};

    (void)env;
    (void)err;
    kda_split_rows(src, tokens, qkv, part);
    for (int i = 0; i < 3; i++)
        expect_values(golden_open(g, p, Q + i), part[i], n);
    free(all);
    free(src);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct kda_split_widen_args args = {
        .src = run->ptr[SRC],
        .q = run->ptr[Q],
        .k = run->ptr[K],
        .v = run->ptr[V],
        .tokens = case_u32(&run->problem->tc, "T"),
        .qkv = case_u32(&run->problem->tc, "qkv"),
    };

    return kda_launch_split_widen(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double n = (double)p->buffer[SRC].count;

    cost->read_bytes = 2 * n;
    cost->write_bytes = 4 * n;
    cost->flops = 0;
    cost->unit = COST_FP32;
}

const struct op operator_kda_split_widen = {
    .name = "kda_split_widen",
    .summary = "rows q | k | v of bf16 into three fp32 buffers",
    .entries = entries,
    .params = params,
    .contract = "exact",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
