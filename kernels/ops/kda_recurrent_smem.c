/*
 * kda_recurrent_decode_bf16_smem: T tokens with one read and one write of the state each, VPB
 * value columns a block. The plain kernel takes the same tokens beside it: the bits must be the
 * same.
 */
#include <stdlib.h>

#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_recurrence_common.h"
#include "problem/fill.h"
#include "problem/operator.h"
#include "reference/kda_recurrence.h"

static const struct operator_entry entries[] = {
    {.module = "kda_recurrent", .entry = "kda_recurrent_decode_bf16_smem"},
    {.module = "kda_recurrent", .entry = "kda_recurrent_decode_bf16"},
    {.module = NULL},
};
enum { KERNEL_SMEM, KERNEL_PLAIN };

static const struct param params[] = {
    {.key = "H", .fallback = 2, .min = 1, .max = 65536},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 3, .min = 1, .max = 1u << 20},
    {.key = "VPB", .fallback = KDA_SMEM_COLUMNS, .min = 1, .max = 256},
    KDA_REGIME_PARAMS,
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: without the plain kernel, for timing */
    {.key = NULL},
};

enum { QUERY, KEY, VALUE, GATE, BETA, STATE, OUT, STATE_PLAIN, OUT_PLAIN };

static int shape(struct problem *p, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, false);
    uint32_t vpb = case_u32(&p->tc, "VPB");

    if (n.head_dim % vpb != 0)
        return err_set(err, ERR_INPUT, "VPB=%u must divide D=%u", vpb, n.head_dim);
    if (kda_add_vectors(p, "query", DTYPE_BF16, ROLE_IN, &n, err) < 0 ||
        kda_add_vectors(p, "key", DTYPE_BF16, ROLE_IN, &n, err) < 0 ||
        kda_add_vectors(p, "value", DTYPE_BF16, ROLE_IN, &n, err) < 0 ||
        kda_add_vectors(p, "gate", DTYPE_F32, ROLE_IN, &n, err) < 0 ||
        kda_add_scalars(p, "beta", DTYPE_F32, ROLE_IN, &n, err) < 0 ||
        kda_add_state(p, "state", ROLE_INOUT, &n, err) < 0 ||
        kda_add_vectors(p, "out", DTYPE_F32, ROLE_OUT, &n, err) < 0)
        return -1;
    kda_fill_unit(p, QUERY, &n);
    kda_fill_unit(p, KEY, &n);
    kda_fill_value(p, VALUE, &n);
    kda_fill_gate(p, GATE, &n);
    kda_fill_beta(p, BETA, &n);
    kda_fill_state(p, STATE);
    if (kda_check_gate(p, GATE, &n, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    if (kda_add_state(p, "state_plain", ROLE_INOUT, &n, err) < 0 ||
        kda_add_vectors(p, "out_plain", DTYPE_F32, ROLE_OUT, &n, err) < 0)
        return -1;
    buffer_copy(&p->buffer[STATE_PLAIN], &p->buffer[STATE]);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, false);
    float *state = buffer_floats(&p->buffer[STATE]);
    const struct kda_sequence s = {
        .heads = n.heads,
        .head_dim = n.head_dim,
        .tokens = n.tokens,
        .query = kda_operand_of(p, QUERY),
        .key = kda_operand_of(p, KEY),
        .value = kda_operand_of(p, VALUE),
        .gate = kda_operand_of(p, GATE),
        .beta = kda_operand_of(p, BETA),
        .scale = (double)kda_scale(n.head_dim),
    };
    const struct kda_expected e = {
        .out = golden_open(g, p, OUT),
        .state = golden_open(g, p, STATE),
        .lambda = verdict_lambda(p->buffer[OUT].count + p->buffer[STATE].count),
    };

    (void)err;
    kda_expect(&s, env, state, 0, 0, &e);
    free(state);
    if (!case_u32(&p->tc, "twin"))
        return 0;
    kda_expect_same(golden_open(g, p, OUT_PLAIN), e.out, p->buffer[OUT].count);
    kda_expect_same(golden_open(g, p, STATE_PLAIN), e.state, p->buffer[STATE].count);
    return 0;
}

static struct kda_recurrent_args args_of(const struct operator_run *run, const struct kda_sizes *n,
                                         size_t token, int state, int out)
{
    const dev_ptr *ptr = run->ptr;
    size_t row = token * n->heads * n->head_dim;

    return (struct kda_recurrent_args){
        .q = ptr[QUERY] + row * dtype_size(DTYPE_BF16),
        .k = ptr[KEY] + row * dtype_size(DTYPE_BF16),
        .v = ptr[VALUE] + row * dtype_size(DTYPE_BF16),
        .gate = ptr[GATE] + row * dtype_size(DTYPE_F32),
        .beta = ptr[BETA] + token * n->heads * dtype_size(DTYPE_F32),
        .state = ptr[state],
        .out = ptr[out] + row * dtype_size(DTYPE_F32),
        .heads = n->heads,
        .head_dim = n->head_dim,
        .scale = kda_scale(n->head_dim),
    };
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct test_case *tc = &run->problem->tc;
    struct kda_sizes n = kda_sizes_of(run->problem, false);

    for (size_t t = 0; t < n.tokens; t++) {
        struct kda_recurrent_args smem = args_of(run, &n, t, STATE, OUT);
        if (kda_launch_recurrent_smem(run->kernel[KERNEL_SMEM], &smem, case_u32(tc, "VPB"), err) <
            0)
            return err_context(err, "token %zu", t);
        if (!case_u32(tc, "twin"))
            continue;
        struct kda_recurrent_args plain = args_of(run, &n, t, STATE_PLAIN, OUT_PLAIN);
        if (kda_launch_recurrent(run->kernel[KERNEL_PLAIN], &plain, err) < 0)
            return err_context(err, "token %zu, plain", t);
    }
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct buffer *buffer = out->problem->buffer;

    if (!case_u32(&out->problem->tc, "twin"))
        return;
    identity_equal(rep, out, "smem output = plain output", (struct identity_side){.buffer = OUT},
                   (struct identity_side){.buffer = OUT_PLAIN}, buffer[OUT].count);
    identity_equal(rep, out, "smem state = plain state", (struct identity_side){.buffer = STATE},
                   (struct identity_side){.buffer = STATE_PLAIN}, buffer[STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = kda_sizes_of(p, false);
    double vectors = (double)n.tokens * n.heads * n.head_dim, scalars = (double)n.tokens * n.heads;
    double cells = (double)p->buffer[STATE].count;

    /* One launch a token; the state that they hand on may stay in the L2. */
    cost->read_bytes = vectors * (3 * 2 + 4) + scalars * 4 + cells * 4;
    cost->write_bytes = vectors * 4 + cells * 4;
    cost->flops = kda_recurrence_flops(&n);
    cost->unit = COST_FP32;
}

const struct op operator_kda_recurrent_smem = {
    .name = "kda_recurrent_smem",
    .summary = "KDA token recurrence with the state column in shared memory",
    .entries = entries,
    .params = params,
    .contract = KDA_RECURRENCE_CONTRACT,
    .reference_version = 2,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
