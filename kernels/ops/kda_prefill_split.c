/*
 * A prefill of T tokens in one call, in two calls that part at token `split`, and in the same two
 * calls again: all against the token recurrence, each with the bound of its own chunk grid (the
 * second call's chunks start at `split`, so the bits of one call and of two differ); the two
 * splits bit for bit.
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
    {.key = "H", .fallback = 1, .min = 1, .max = 65535},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 192, .min = 2, .max = 1u << 20},
    {.key = "C", .fallback = 32, .min = 1, .max = 128},
    {.key = "split", .fallback = 100, .min = 1, .max = 1u << 20},
    KDA_REGIME_PARAMS,
    {.key = NULL},
};

enum { STATE_SPLIT = CHUNKS_SET, OUT_SPLIT, STATE_AGAIN, OUT_AGAIN };

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
    static const char *const names[][2] = {{"state_split", "out_split"},
                                           {"state_again", "out_again"}};

    if (kda_add_chunk_results(p, CHUNKS_PADDED, n, err) < 0)
        return -1;
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
    if (kda_add_chunk_inputs(p, CHUNKS_PADDED, &n, err) < 0 ||
        kda_add_chunk_terms(p, CHUNKS_PADDED, ROLE_SCRATCH, &n, err) < 0 ||
        add_results(p, &n, err) < 0 || kda_fill_inputs(p, 0, &n, err) < 0)
        return -1;
    for (int id = 0; id < KDA_INPUTS; id++) {
        struct buffer *b = &p->buffer[id];
        size_t first = b->count / n.rows * n.tokens;
        buffer_poison(b, first, b->count - first);
    }
    kda_fill_state(p, CHUNKS_STATE);
    buffer_copy(&p->buffer[STATE_SPLIT], &p->buffer[CHUNKS_STATE]);
    buffer_copy(&p->buffer[STATE_AGAIN], &p->buffer[CHUNKS_STATE]);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct kda_sizes n = sizes_of(p);
    const struct kda_sequence s = kda_sequence_of(p, 0, &n);
    double lambda =
        verdict_lambda(3 * (p->buffer[CHUNKS_OUT].count + p->buffer[CHUNKS_STATE].count));
    const float *state = p->buffer[CHUNKS_STATE].init;
    const struct kda_expected whole = {golden_open(g, p, CHUNKS_OUT),
                                       golden_open(g, p, CHUNKS_STATE), lambda};
    const struct kda_expected split = {golden_open(g, p, OUT_SPLIT), golden_open(g, p, STATE_SPLIT),
                                       lambda};

    (void)err;
    kda_expect(&s, env, state, n.chunk, 0, &whole);
    kda_expect(&s, env, state, n.chunk, case_u32(&p->tc, "split"), &split);
    kda_expect_same(golden_open(g, p, OUT_AGAIN), split.out, p->buffer[CHUNKS_OUT].count);
    kda_expect_same(golden_open(g, p, STATE_AGAIN), split.state, p->buffer[CHUNKS_STATE].count);
    return 0;
}

/* Tokens [first, first + count) by both kernels. */
static int prefill(const struct operator_run *run, const struct kda_chunk_call *call,
                   uint32_t first, uint32_t count, struct err *err)
{
    if (kda_call_prepare(run->kernel[0], call, first, count, err) < 0)
        return -1;
    return kda_call_scan(run->kernel[1], call, first, count, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct kda_sizes n = sizes_of(run->problem);
    uint32_t split = case_u32(&run->problem->tc, "split");
    struct kda_chunk_call call = kda_chunk_call_of(run, 0, &n);

    call.state = run->ptr[CHUNKS_STATE];
    call.out = run->ptr[CHUNKS_OUT];
    if (prefill(run, &call, 0, n.tokens, err) < 0)
        return -1;
    for (int again = 0; again < 2; again++) {
        call.state = run->ptr[again ? STATE_AGAIN : STATE_SPLIT];
        call.out = run->ptr[again ? OUT_AGAIN : OUT_SPLIT];
        if (prefill(run, &call, 0, split, err) < 0 ||
            prefill(run, &call, split, n.tokens - split, err) < 0)
            return err_context(err, "split at %u", split);
    }
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct buffer *buffer = out->problem->buffer;

    identity_equal(rep, out, "output: the same split twice",
                   (struct identity_side){.buffer = OUT_SPLIT},
                   (struct identity_side){.buffer = OUT_AGAIN}, buffer[CHUNKS_OUT].count);
    identity_equal(rep, out, "state: the same split twice",
                   (struct identity_side){.buffer = STATE_SPLIT},
                   (struct identity_side){.buffer = STATE_AGAIN}, buffer[CHUNKS_STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = sizes_of(p);
    double vectors = (double)n.tokens * n.heads * n.head_dim, scalars = (double)n.tokens * n.heads;
    double cells = (double)p->buffer[CHUNKS_STATE].count;

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
