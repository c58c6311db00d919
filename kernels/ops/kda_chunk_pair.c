/*
 * kda_chunk_prepare and kda_chunk_scan together against the token recurrence. Rows t >= T of the
 * inputs hold whatever "pad" says, those of the output are kept; where there are any, a twin with
 * a pad of zeros must give the same bits.
 */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_chunks_common.h"
#include "problem/operator.h"
#include "reference/kda_chunk.h"
#include "reference/kda_recurrence.h"

static const struct operator_entry entries[] = {
    {.module = "kda_chunk", .entry = "kda_chunk_prepare"},
    {.module = "kda_chunk", .entry = "kda_chunk_scan"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "H", .fallback = 2, .min = 1, .max = 65535},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 40, .min = 1, .max = 1u << 20},
    {.key = "C", .fallback = 32, .min = 1, .max = 128},
    KDA_REGIME_PARAMS,
    {.key = "pad", .max = 2, .choices = kda_pads},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: no twin, for timing */
    {.key = NULL},
};

static int add_set(struct problem *p, enum chunks_twin twin, const struct kda_sizes *n,
                   struct err *err)
{
    if (kda_add_chunk_inputs(p, twin, n, err) < 0 ||
        kda_add_chunk_terms(p, twin, ROLE_SCRATCH, n, err) < 0)
        return -1;
    return kda_add_chunk_results(p, twin, n, err);
}

static int shape(struct problem *p, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);

    if (add_set(p, CHUNKS_PADDED, &n, err) < 0 || kda_fill_chunk_inputs(p, &n, err) < 0)
        return -1;
    kda_fill_state(p, CHUNKS_STATE);
    if (!kda_has_blank_twin(p, &n))
        return 0;
    if (add_set(p, CHUNKS_BLANK, &n, err) < 0)
        return -1;
    kda_blank_twin(p, CHUNKS_SET, &n);
    buffer_copy(&p->buffer[CHUNKS_SET + CHUNKS_STATE], &p->buffer[CHUNKS_STATE]);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    const struct kda_sequence s = kda_sequence_of(p, 0, &n);
    const struct kda_expected e = {
        .out = golden_open(g, p, CHUNKS_OUT),
        .state = golden_open(g, p, CHUNKS_STATE),
        .lambda = verdict_lambda(p->buffer[CHUNKS_OUT].count + p->buffer[CHUNKS_STATE].count),
    };

    (void)err;
    kda_expect(&s, env, p->buffer[CHUNKS_STATE].init, n.chunk, 0, &e);
    if (!kda_has_blank_twin(p, &n))
        return 0;
    kda_expect_same(golden_open(g, p, CHUNKS_SET + CHUNKS_OUT), e.out, p->buffer[CHUNKS_OUT].count);
    kda_expect_same(golden_open(g, p, CHUNKS_SET + CHUNKS_STATE), e.state,
                    p->buffer[CHUNKS_STATE].count);
    return 0;
}

static int launch_set(const struct operator_run *run, int first, const struct kda_sizes *n,
                      struct err *err)
{
    struct kda_chunk_call call = kda_chunk_call_of(run, first, n);

    call.state = run->ptr[first + CHUNKS_STATE];
    call.out = run->ptr[first + CHUNKS_OUT];
    if (kda_call_prepare(run->kernel[0], &call, 0, n->tokens, err) < 0)
        return -1;
    return kda_call_scan(run->kernel[1], &call, 0, n->tokens, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(run->problem, true);

    if (launch_set(run, 0, &n, err) < 0)
        return -1;
    return kda_has_blank_twin(run->problem, &n) ? launch_set(run, CHUNKS_SET, &n, err) : 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    struct kda_sizes n = kda_sizes_of(out->problem, true);

    if (!kda_has_blank_twin(out->problem, &n))
        return;
    identity_equal(rep, out, "output: any pad = pad of zeros",
                   (struct identity_side){.buffer = CHUNKS_OUT},
                   (struct identity_side){.buffer = CHUNKS_SET + CHUNKS_OUT},
                   out->problem->buffer[CHUNKS_OUT].count);
    identity_equal(rep, out, "state: any pad = pad of zeros",
                   (struct identity_side){.buffer = CHUNKS_STATE},
                   (struct identity_side){.buffer = CHUNKS_SET + CHUNKS_STATE},
                   out->problem->buffer[CHUNKS_STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    double vectors = (double)n.tokens * n.heads * n.head_dim, scalars = (double)n.tokens * n.heads;
    double cells = (double)p->buffer[CHUNKS_STATE].count;

    /* gc, u and w need not leave the chip. */
    cost->read_bytes = 4 * (4 * vectors + scalars + cells);
    cost->write_bytes = 4 * (vectors + cells);
    cost->flops = kda_recurrence_flops(&n);
    cost->unit = COST_FP32;
}

const struct op operator_kda_chunk_pair = {
    .name = "kda_chunk_pair",
    .summary = "chunked KDA, prepare and scan, against the token recurrence",
    .entries = entries,
    .params = params,
    .contract = KDA_CHUNK_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
