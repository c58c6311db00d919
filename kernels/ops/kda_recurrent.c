/*
 * kda_recurrent_decode_bf16: T tokens of the recurrence, one launch each, the state carried in
 * place. With twin=1 the heads are also taken in reverse order: a head's bits do not depend on
 * its number.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_recurrence_common.h"
#include "problem/fill.h"
#include "problem/operator.h"
#include "reference/kda_recurrence.h"

static const struct operator_entry entries[] = {
    {.module = "kda_recurrent", .entry = "kda_recurrent_decode_bf16"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "H", .fallback = 2, .min = 1, .max = 65536},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 3, .min = 1, .max = 1u << 20},
    KDA_REGIME_PARAMS,
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the launches under test, for timing */
    {.key = NULL},
};

/* The twin's buffers follow in the same order. */
enum { QUERY, KEY, VALUE, GATE, BETA, STATE, OUT, SET };

static int add_set(struct problem *p, const char *const name[SET], const struct kda_sizes *n,
                   struct err *err)
{
    if (kda_add_vectors(p, name[QUERY], DTYPE_BF16, ROLE_IN, n, err) < 0 ||
        kda_add_vectors(p, name[KEY], DTYPE_BF16, ROLE_IN, n, err) < 0 ||
        kda_add_vectors(p, name[VALUE], DTYPE_BF16, ROLE_IN, n, err) < 0 ||
        kda_add_vectors(p, name[GATE], DTYPE_F32, ROLE_IN, n, err) < 0 ||
        kda_add_scalars(p, name[BETA], DTYPE_F32, ROLE_IN, n, err) < 0 ||
        kda_add_state(p, name[STATE], ROLE_INOUT, n, err) < 0)
        return -1;
    return kda_add_vectors(p, name[OUT], DTYPE_F32, ROLE_OUT, n, err);
}

/* Buffer `id` of the twin: each row's `heads` groups of elements in reverse order. */
static void reverse_heads(struct problem *p, int id, size_t heads, size_t rows)
{
    const struct buffer *from = &p->buffer[id];
    struct buffer *to = &p->buffer[SET + id];
    size_t group = from->bytes / (rows * heads);

    for (size_t i = 0; i < rows * heads; i++) {
        size_t mirror = i / heads * heads + (heads - 1 - i % heads);
        memcpy((char *)to->init + mirror * group, (const char *)from->init + i * group, group);
    }
}

static int shape(struct problem *p, struct err *err)
{
    static const char *const names[SET] = {"query", "key", "value", "gate", "beta", "state", "out"};
    static const char *const reversed[SET] = {"query_reversed", "key_reversed",  "value_reversed",
                                              "gate_reversed",  "beta_reversed", "state_reversed",
                                              "out_reversed"};
    struct kda_sizes n = kda_sizes_of(p, false);

    if (add_set(p, names, &n, err) < 0)
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
    if (add_set(p, reversed, &n, err) < 0)
        return -1;
    for (int id = QUERY; id < OUT; id++)
        reverse_heads(p, id, n.heads, id == STATE ? 1 : n.tokens);
    return 0;
}

static void expect_set(const struct problem *p, const struct reference_env *env, struct golden *g,
                       int first)
{
    struct kda_sizes n = kda_sizes_of(p, false);
    float *state = buffer_floats(&p->buffer[first + STATE]);
    const struct kda_sequence s = {
        .heads = n.heads,
        .head_dim = n.head_dim,
        .tokens = n.tokens,
        .query = kda_operand_of(p, first + QUERY),
        .key = kda_operand_of(p, first + KEY),
        .value = kda_operand_of(p, first + VALUE),
        .gate = kda_operand_of(p, first + GATE),
        .beta = kda_operand_of(p, first + BETA),
        .scale = (double)kda_scale(n.head_dim),
    };
    const struct kda_expected e = {
        .out = golden_open(g, p, first + OUT),
        .state = golden_open(g, p, first + STATE),
        .lambda = verdict_lambda(p->buffer[OUT].count + p->buffer[STATE].count),
    };

    kda_expect(&s, env, state, 0, 0, &e);
    free(state);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    (void)err;
    expect_set(p, env, g, 0);
    if (case_u32(&p->tc, "twin"))
        expect_set(p, env, g, SET);
    return 0;
}

static int launch_set(const struct operator_run *run, int first, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(run->problem, false);
    const dev_ptr *ptr = run->ptr + first;
    size_t row = (size_t)n.heads * n.head_dim;

    for (size_t t = 0; t < n.tokens; t++) {
        const struct kda_recurrent_args args = {
            .q = ptr[QUERY] + t * row * dtype_size(DTYPE_BF16),
            .k = ptr[KEY] + t * row * dtype_size(DTYPE_BF16),
            .v = ptr[VALUE] + t * row * dtype_size(DTYPE_BF16),
            .gate = ptr[GATE] + t * row * dtype_size(DTYPE_F32),
            .beta = ptr[BETA] + t * n.heads * dtype_size(DTYPE_F32),
            .state = ptr[STATE],
            .out = ptr[OUT] + t * row * dtype_size(DTYPE_F32),
            .heads = n.heads,
            .head_dim = n.head_dim,
            .scale = kda_scale(n.head_dim),
        };
        if (kda_launch_recurrent(run->kernel[0], &args, err) < 0)
            return err_context(err, "token %zu", t);
    }
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    if (launch_set(run, 0, err) < 0)
        return -1;
    return case_u32(&run->problem->tc, "twin") ? launch_set(run, SET, err) : 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    struct kda_sizes n = kda_sizes_of(out->problem, false);
    size_t d = n.head_dim, cells = d * d;

    if (!case_u32(&out->problem->tc, "twin"))
        return;
    for (size_t i = 0; i < (size_t)n.tokens * n.heads; i++) {
        size_t mirror = i / n.heads * n.heads + (n.heads - 1 - i % n.heads);
        identity_equal(rep, out, "heads in reverse order = the same heads",
                       (struct identity_side){.buffer = OUT, .first = i * d},
                       (struct identity_side){.buffer = SET + OUT, .first = mirror * d}, d);
    }
    for (size_t h = 0; h < n.heads; h++)
        identity_equal(
            rep, out, "states of heads in reverse order = of the same heads",
            (struct identity_side){.buffer = STATE, .first = h * cells},
            (struct identity_side){.buffer = SET + STATE, .first = (n.heads - 1 - h) * cells},
            cells);
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

const struct op operator_kda_recurrent = {
    .name = "kda_recurrent",
    .summary = "KDA token recurrence, a launch per token",
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
