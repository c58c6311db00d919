/*
 * kda_chunk_scan: outputs and state from gc, u and w, which the fp64 reference of prepare makes
 * and rounds to fp32. Rows t >= T of the output are kept. The pad of q and k holds poison; that
 * of gc, u and w what a chunk that ends at T would carry on with (gc constant, u and w zero),
 * since how prepare leaves it is not agreed.
 */
#include "base/parallel.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_chunks_common.h"
#include "problem/operator.h"
#include "reference/kda_chunk.h"

static const struct operator_entry entries[] = {
    {.module = "kda_chunk", .entry = "kda_chunk_scan"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "H", .fallback = 2, .min = 1, .max = 65536},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 40, .min = 1, .max = 1u << 20},
    {.key = "C", .fallback = 32, .min = 1, .max = 128},
    KDA_REGIME_PARAMS,
    {.key = "pad", .max = 2, .choices = kda_pads},
    {.key = NULL},
};

/* Of the inputs the kernel gets query and key: value, gate and beta are what gc, u and w were made
   from, and what the reference takes the contraction of the state's error from. */

struct chunks {
    struct problem *problem;
    struct kda_sizes sizes;
    struct kda_sequence s;
};

/* Rounds the terms of one chunk of one head into the buffers, and continues them over the pad. */
static void store_terms(size_t index, void *ctx)
{
    const struct chunks *c = ctx;
    const struct kda_chunk_place chunk = kda_chunk_place(&c->sizes, index);
    struct kda_chunk_terms x = kda_chunk_terms_of(&c->s, &chunk);
    struct buffer *b = c->problem->buffer;
    size_t d = c->s.head_dim;

    for (size_t i = 0; i < c->sizes.chunk * d; i++) {
        size_t at = ((chunk.first + i / d) * c->s.heads + chunk.head) * d + i % d;
        bool pad = i >= chunk.count * d;
        double gc = x.gc.value[pad ? (chunk.count - 1) * d + i % d : i];
        dtype_store(DTYPE_F32, b[CHUNKS_GC].init, at, gc);
        dtype_store(DTYPE_F32, b[CHUNKS_U].init, at, pad ? 0.0 : x.u.value[i]);
        dtype_store(DTYPE_F32, b[CHUNKS_W].init, at, pad ? 0.0 : x.w.value[i]);
    }
    kda_chunk_terms_release(&x);
}

static int shape(struct problem *p, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);

    if (kda_add_chunk_inputs(p, CHUNKS_PADDED, &n, err) < 0 ||
        kda_add_chunk_terms(p, CHUNKS_PADDED, ROLE_IN, &n, err) < 0 ||
        kda_add_chunk_results(p, CHUNKS_PADDED, &n, err) < 0 ||
        kda_fill_chunk_inputs(p, &n, err) < 0)
        return -1;
    kda_fill_state(p, CHUNKS_STATE);
    struct chunks c = {p, n, kda_sequence_of(p, 0, &n)};
    if (!p->hollow)
        parallel_for(kda_chunk_places(&n), 0, store_terms, &c);
    return 0;
}

struct heads {
    struct kda_sequence s;
    size_t chunk;
    const float *gc, *u, *w, *state;
    struct expectation *out, *state_out;
    double lambda;
};

/* Tokens of one head out of an f32 [rows, H, D], exact. */
static void load_terms(struct kda_field *to, const float *from, const struct heads *h, size_t head,
                       size_t first, size_t count)
{
    size_t d = h->s.head_dim;

    for (size_t i = 0; i < count * d; i++)
        to->value[i] = (double)from[((first + i / d) * h->s.heads + head) * d + i % d];
}

static void expect_head(size_t head, void *ctx)
{
    const struct heads *h = ctx;
    size_t d = h->s.head_dim;
    struct kda_chunk_terms x;
    struct kda_state state;
    struct kda_field rows;
    struct kda_packed packed;

    kda_packed_init(&packed, d, h->chunk);
    kda_chunk_terms_init(&x, h->chunk, d);
    kda_field_init(&rows, h->chunk * d);
    kda_state_init(&state, d);
    kda_state_load(&state, h->state + head * d * d);
    for (size_t first = 0; first < h->s.tokens; first += h->chunk) {
        size_t count = h->s.tokens - first < h->chunk ? h->s.tokens - first : h->chunk;
        kda_packed_load(&packed, &h->s, head, first, count);
        load_terms(&x.gc, h->gc, h, head, first, count);
        load_terms(&x.u, h->u, h, head, first, count);
        load_terms(&x.w, h->w, h, head, first, count);
        kda_chunk_scan(&packed.tokens, &x, kda_chunk_carry(&packed.tokens, &x), &state, &rows);
        for (size_t i = 0; i < count * d; i++)
            expect_bounded(h->out, ((first + i / d) * h->s.heads + head) * d + i % d,
                           kda_field_at(&rows, i), h->lambda);
    }
    for (size_t i = 0; i < d * d; i++)
        expect_bounded(h->state_out, head * d * d + i, kda_field_at(&state.cell, i), h->lambda);
    kda_state_release(&state);
    kda_field_release(&rows);
    kda_chunk_terms_release(&x);
    kda_packed_release(&packed);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    struct heads h = {
        .s = kda_sequence_of(p, 0, &n),
        .chunk = n.chunk,
        .gc = p->buffer[CHUNKS_GC].init,
        .u = p->buffer[CHUNKS_U].init,
        .w = p->buffer[CHUNKS_W].init,
        .state = p->buffer[CHUNKS_STATE].init,
        .out = golden_open(g, p, CHUNKS_OUT),
        .state_out = golden_open(g, p, CHUNKS_STATE),
        .lambda = verdict_lambda(p->buffer[CHUNKS_OUT].count + p->buffer[CHUNKS_STATE].count),
    };

    (void)err;
    parallel_for(n.heads, env->workers, expect_head, &h);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(run->problem, true);
    struct kda_chunk_call call = kda_chunk_call_of(run, 0, &n);

    call.state = run->ptr[CHUNKS_STATE];
    call.out = run->ptr[CHUNKS_OUT];
    return kda_call_scan(run->kernel[0], &call, 0, n.tokens, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    double vectors = (double)n.tokens * n.heads * n.head_dim,
           cells = (double)p->buffer[CHUNKS_STATE].count;
    double c = n.chunk, d = n.head_dim;

    cost->read_bytes = 4 * (5 * vectors + cells);
    cost->write_bytes = 4 * (vectors + cells);
    /* Per row: w S, q S and k^T v', half a chunk of products with their decays and of P v'. */
    cost->flops = vectors * (3 * 2 * d + c / 2 * 5);
    cost->unit = COST_FP32;
}

const struct op operator_kda_chunk_scan = {
    .name = "kda_chunk_scan",
    .summary = "chunked KDA: outputs and state, chunk by chunk",
    .entries = entries,
    .params = params,
    .contract = KDA_CHUNK_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
