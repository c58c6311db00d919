/* kda_pack_qkv_bf16: the three projections' rows side by side, q | k | v. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_move_common.h"
#include "problem/operator.h"
#include "reference/kda_move.h"

static const struct operator_entry entries[] = {
    {.module = "kda_layer_ops", .entry = "kda_pack_qkv_bf16"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "T", .fallback = 5, .min = 1, .max = 65535},
    {.key = "qkv", .fallback = 384, .min = 1, .max = 1u << 20},
    {.key = NULL},
};

enum { Q, K, V, DST };

static int shape(struct problem *p, struct err *err)
{
    static const char *const names[] = {"q", "k", "v"};
    size_t qkv = case_u32(&p->tc, "qkv");
    const struct dim token = {"token", case_u32(&p->tc, "T")};

    for (int i = Q; i <= V; i++) {
        if (add_rows(p, names[i], DTYPE_BF16, ROLE_IN, token, (struct dim){"channel", qkv}, err) <
            0)
            return -1;
        fill_any_bf16(&p->buffer[i], rng_key(p->tc.seed, names[i]));
    }
    return add_rows(p, "dst", DTYPE_BF16, ROLE_OUT, token, (struct dim){"channel", 3 * qkv}, err);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    size_t tokens = case_u32(&p->tc, "T"), qkv = case_u32(&p->tc, "qkv"), n = 3 * tokens * qkv;
    float *part[3], *dst = xcalloc(n, sizeof(*dst));

    (void)env;
    (void)err;
    for (int i = 0; i < 3; i++)
        part[i] = buffer_floats(&p->buffer[Q + i]);
    kda_pack_rows((const float *const[3]){part[0], part[1], part[2]}, tokens, qkv, dst);
    expect_values(golden_open(g, p, DST), dst, n);
    for (int i = 0; i < 3; i++)
        free(part[i]);
    free(dst);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct kda_pack_args args = {
        .q = run->ptr[Q],
        .k = run->ptr[K],
        .v = run->ptr[V],
        .dst = run->ptr[DST],
        .tokens = case_u32(&run->problem->tc, "T"),
        .qkv = case_u32(&run->problem->tc, "qkv"),
    };

    return kda_launch_pack(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double n = (double)p->buffer[DST].count;

    cost->read_bytes = 2 * n;
    cost->write_bytes = 2 * n;
    cost->flops = 0;
    cost->unit = COST_FP32;
}

const struct op operator_kda_pack = {
    .name = "kda_pack",
    .summary = "rows of q, k and v side by side",
    .entries = entries,
    .params = params,
    .contract = "exact",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
