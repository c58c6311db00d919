/*
 * kda_chunk_prepare and kda_chunk_scan together against the token recurrence. Rows t >= T of the
 * inputs hold whatever "pad" says, those of the output are kept; where there are any, a twin with
 * a pad of zeros must give the same bits.
 */
#include <stdlib.h>

#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_chunks_common.h"
#include "problem/fill.h"
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

enum { GC = CHUNKS_INPUTS, U, W, STATE, OUT, SET };

static bool has_twin(const struct problem *p, const struct kda_sizes *n)
{
    return case_u32(&p->tc, "twin") && n->rows > n->tokens;
}

static int add_set(struct problem *p, bool twin, const struct kda_sizes *n, struct err *err)
{
    if (kda_add_chunk_inputs(p, twin ? "_blank" : "", n, err) < 0 ||
        kda_add_vectors(p, twin ? "gc_blank" : "gc", DTYPE_F32, ROLE_SCRATCH, n, err) < 0 ||
        kda_add_vectors(p, twin ? "u_blank" : "u", DTYPE_F32, ROLE_SCRATCH, n, err) < 0 ||
        kda_add_vectors(p, twin ? "w_blank" : "w", DTYPE_F32, ROLE_SCRATCH, n, err) < 0 ||
        kda_add_state(p, twin ? "state_blank" : "state", ROLE_INOUT, n, err) < 0)
        return -1;
    return kda_add_vectors(p, twin ? "out_blank" : "out", DTYPE_F32, ROLE_OUT, n, err);
}

static int shape(struct problem *p, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);

    if (add_set(p, false, &n, err) < 0 || kda_fill_chunk_inputs(p, 0, &n, true, err) < 0)
        return -1;
    kda_fill_state(p, STATE);
    if (!has_twin(p, &n))
        return 0;
    if (add_set(p, true, &n, err) < 0)
        return -1;
    kda_blank_twin(p, SET, 0, &n);
    buffer_copy(&p->buffer[SET + STATE], &p->buffer[STATE]);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    const struct kda_sequence s = kda_chunk_sequence(p, 0, &n);
    const struct kda_expected e = {
        .out = golden_open(g, p, OUT),
        .state = golden_open(g, p, STATE),
        .lambda = verdict_lambda(p->buffer[OUT].count + p->buffer[STATE].count),
    };

    (void)err;
    kda_expect(&s, env, p->buffer[STATE].init, n.chunk, 0, &e);
    if (!has_twin(p, &n))
        return 0;
    kda_expect_same(golden_open(g, p, SET + OUT), e.out, p->buffer[OUT].count);
    kda_expect_same(golden_open(g, p, SET + STATE), e.state, p->buffer[STATE].count);
    return 0;
}

static int launch_set(const struct operator_run *run, int first, struct err *err)
{
    const dev_ptr *ptr = run->ptr + first;
    const struct kda_chunk_call call = {
        .prepare = run->kernel[0],
        .scan = run->kernel[1],
        .query = ptr[CHUNKS_QUERY],
        .key = ptr[CHUNKS_KEY],
        .value = ptr[CHUNKS_VALUE],
        .gate = ptr[CHUNKS_GATE],
        .beta = ptr[CHUNKS_BETA],
        .gc = ptr[GC],
        .u = ptr[U],
        .w = ptr[W],
        .state = ptr[STATE],
        .out = ptr[OUT],
        .sizes = kda_sizes_of(run->problem, true),
    };

    return kda_launch_chunks(&call, 0, call.sizes.tokens, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(run->problem, true);

    if (launch_set(run, 0, err) < 0)
        return -1;
    return has_twin(run->problem, &n) ? launch_set(run, SET, err) : 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    struct kda_sizes n = kda_sizes_of(out->problem, true);

    if (!has_twin(out->problem, &n))
        return;
    identity_equal(rep, out, "output: any pad = pad of zeros",
                   (struct identity_side){.buffer = OUT},
                   (struct identity_side){.buffer = SET + OUT}, out->problem->buffer[OUT].count);
    identity_equal(
        rep, out, "state: any pad = pad of zeros", (struct identity_side){.buffer = STATE},
        (struct identity_side){.buffer = SET + STATE}, out->problem->buffer[STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    double vectors = (double)n.tokens * n.heads * n.head_dim, scalars = (double)n.tokens * n.heads;
    double cells = (double)p->buffer[STATE].count;

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
