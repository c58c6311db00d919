/*
 * A prefill of T tokens in one call, in two calls that part at token `split`, and in the same two
 * calls again: all against the token recurrence, each with the bound of its own chunk grid (the
 * second call's chunks start at `split`, so the bits of one call and of two differ); the two
 * splits bit for bit.
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
    {.key = "H", .fallback = 1, .min = 1, .max = 65535},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 192, .min = 2, .max = 1u << 20},
    {.key = "C", .fallback = 32, .min = 1, .max = 128},
    {.key = "split", .fallback = 100, .min = 1, .max = 1u << 20},
    KDA_REGIME_PARAMS,
    {.key = NULL},
};

enum { GC = CHUNKS_INPUTS, U, W, STATE, OUT, STATE_SPLIT, OUT_SPLIT, STATE_AGAIN, OUT_AGAIN };

/* Rows that the calls may touch: the second one's chunks reach further. */
static struct kda_sizes sizes_of(const struct problem *p)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    uint32_t split = case_u32(&p->tc, "split");

    if (split < n.tokens) {
        size_t reach = split + (size_t)kda_padded_tokens(n.tokens - split, n.chunk);
        n.rows = reach > n.rows ? reach : n.rows;
    }
    return n;
}

static int add_results(struct problem *p, const struct kda_sizes *n, struct err *err)
{
    static const char *const names[][2] = {
        {"state", "out"}, {"state_split", "out_split"}, {"state_again", "out_again"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (kda_add_state(p, names[i][0], ROLE_INOUT, n, err) < 0 ||
            kda_add_vectors(p, names[i][1], DTYPE_F32, ROLE_OUT, n, err) < 0)
            return -1;
    return 0;
}

static int shape(struct problem *p, struct err *err)
{
    struct kda_sizes n = sizes_of(p);

    if (case_u32(&p->tc, "split") >= n.tokens)
        return err_set(err, ERR_INPUT, "split=%u must be below T=%u", case_u32(&p->tc, "split"),
                       n.tokens);
    if (kda_add_chunk_inputs(p, "", &n, err) < 0 ||
        kda_add_vectors(p, "gc", DTYPE_F32, ROLE_SCRATCH, &n, err) < 0 ||
        kda_add_vectors(p, "u", DTYPE_F32, ROLE_SCRATCH, &n, err) < 0 ||
        kda_add_vectors(p, "w", DTYPE_F32, ROLE_SCRATCH, &n, err) < 0 ||
        add_results(p, &n, err) < 0 || kda_fill_chunk_inputs(p, 0, &n, false, err) < 0)
        return -1;
    for (int id = 0; id < CHUNKS_INPUTS; id++) {
        struct buffer *b = &p->buffer[id];
        size_t first = b->count / n.rows * n.tokens;
        buffer_poison(b, first, b->count - first);
    }
    kda_fill_state(p, STATE);
    buffer_copy(&p->buffer[STATE_SPLIT], &p->buffer[STATE]);
    buffer_copy(&p->buffer[STATE_AGAIN], &p->buffer[STATE]);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct kda_sizes n = sizes_of(p);
    const struct kda_sequence s = kda_chunk_sequence(p, 0, &n);
    double lambda = verdict_lambda(3 * (p->buffer[OUT].count + p->buffer[STATE].count));
    const float *state = p->buffer[STATE].init;
    const struct kda_expected whole = {golden_open(g, p, OUT), golden_open(g, p, STATE), lambda};
    const struct kda_expected split = {golden_open(g, p, OUT_SPLIT), golden_open(g, p, STATE_SPLIT),
                                       lambda};

    (void)err;
    kda_expect(&s, env, state, n.chunk, 0, &whole);
    kda_expect(&s, env, state, n.chunk, case_u32(&p->tc, "split"), &split);
    kda_expect_same(golden_open(g, p, OUT_AGAIN), split.out, p->buffer[OUT].count);
    kda_expect_same(golden_open(g, p, STATE_AGAIN), split.state, p->buffer[STATE].count);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    uint32_t split = case_u32(&run->problem->tc, "split");
    const dev_ptr *ptr = run->ptr;
    struct kda_chunk_call call = {
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
        .sizes = sizes_of(run->problem),
    };
    uint32_t tokens = call.sizes.tokens;

    if (kda_launch_chunks(&call, 0, tokens, err) < 0)
        return -1;
    for (int again = 0; again < 2; again++) {
        call.state = ptr[again ? STATE_AGAIN : STATE_SPLIT];
        call.out = ptr[again ? OUT_AGAIN : OUT_SPLIT];
        if (kda_launch_chunks(&call, 0, split, err) < 0 ||
            kda_launch_chunks(&call, split, tokens - split, err) < 0)
            return err_context(err, "split at %u", split);
    }
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct buffer *buffer = out->problem->buffer;

    identity_equal(rep, out, "output: the same split twice",
                   (struct identity_side){.buffer = OUT_SPLIT},
                   (struct identity_side){.buffer = OUT_AGAIN}, buffer[OUT].count);
    identity_equal(rep, out, "state: the same split twice",
                   (struct identity_side){.buffer = STATE_SPLIT},
                   (struct identity_side){.buffer = STATE_AGAIN}, buffer[STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = sizes_of(p);
    double vectors = (double)n.tokens * n.heads * n.head_dim, scalars = (double)n.tokens * n.heads;
    double cells = (double)p->buffer[STATE].count;

    /* Three times a prefill, of the same inputs. */
    cost->read_bytes = 4 * (4 * vectors + scalars + 3 * cells);
    cost->write_bytes = 3 * 4 * (vectors + cells);
    cost->flops = 3 * kda_recurrence_flops(&n);
    cost->unit = COST_FP32;
}

const struct op operator_kda_prefill_split = {
    .name = "kda_prefill_split",
    .summary = "chunked KDA in one call, in two, and in the same two again",
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
