/*
 * kda_recurrent_decode_bf16: T tokens of the recurrence, one launch each, the state carried in
 * place. With twin=1 the heads are also taken in reverse order: a head's bits do not depend on
 * its number.
 */
#include <string.h>

#include "kernels/ops/kda.h"
#include "kernels/ops/kda_steps_common.h"
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
enum { SET = STEPS_SET };

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

    if (kda_add_steps(p, names, &n, err) < 0 || kda_fill_steps(p, &n, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    if (kda_add_steps(p, reversed, &n, err) < 0)
        return -1;
    for (int id = KDA_QUERY; id < STEPS_OUT; id++)
        reverse_heads(p, id, n.heads, id == STEPS_STATE ? 1 : n.tokens);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    (void)err;
    kda_expect_steps(p, env, g, 0);
    if (case_u32(&p->tc, "twin"))
        kda_expect_steps(p, env, g, SET);
    return 0;
}

static int launch_set(const struct operator_run *run, int first, struct err *err)
{
    uint32_t tokens = case_u32(&run->problem->tc, "T");

    for (size_t t = 0; t < tokens; t++) {
        const struct kda_recurrent_args args = kda_step_args(run, first, t);
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
                       (struct identity_side){.buffer = STEPS_OUT, .first = i * d},
                       (struct identity_side){.buffer = SET + STEPS_OUT, .first = mirror * d}, d);
    }
    for (size_t h = 0; h < n.heads; h++)
        identity_equal(
            rep, out, "states of heads in reverse order = of the same heads",
            (struct identity_side){.buffer = STEPS_STATE, .first = h * cells},
            (struct identity_side){.buffer = SET + STEPS_STATE, .first = (n.heads - 1 - h) * cells},
            cells);
}

static void cost(const struct problem *p, struct cost *cost)
{
    kda_steps_cost(p, cost);
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
