/* Launches of the recurrence: kda_chunk_prepare, kda_chunk_scan and both
   kda_recurrent_decode_bf16 forms. */
#include "kernels/ops/kda_recurrence_launch.h"

#include <math.h>

#include "kernels/ops/launch_guard.h"

#define CHUNK_THREADS     128
#define RECURRENT_THREADS 128
#define WARP              32
#define BLOCK_MAX         1024
#define QUAD_ALIGN        16 /* bytes: the chunk kernels access these four floats at a time */

uint64_t kda_padded_tokens(uint32_t tokens, uint32_t chunk)
{
    return (uint64_t)blocks_for(tokens, chunk) * chunk;
}

static void guard_state(struct launch_guard *g, dev_ptr state, uint32_t heads, uint32_t head_dim)
{
    guard_pointer(g, "state", state, 4);
    guard_size(g, "H", heads);
    guard_size(g, "D", head_dim);
    guard_product(g, "state", heads, head_dim, head_dim);
}

static void guard_chunks(struct launch_guard *g, uint32_t heads, uint32_t head_dim, uint32_t chunk,
                         uint32_t tokens)
{
    guard_size(g, "H", heads);
    guard_size(g, "D", head_dim);
    guard_multiple(g, "D", head_dim, WARP);
    guard_size(g, "chunk C", chunk);
    guard_size(g, "T", tokens);
    if (!g->refused) /* chunk is not 0 here */
        guard_product(g, "T_pad rows", kda_padded_tokens(tokens, chunk), heads, head_dim);
}

int kda_launch_chunk_prepare(const struct kernel *kernel, const struct kda_chunk_prepare_args *args,
                             struct err *err)
{
    uint64_t c = args->chunk, d = args->head_dim;
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_chunk_prepare", kernel, err);
    guard_pointer(&g, "k", args->k, 4);
    guard_pointer(&g, "v", args->v, 4);
    guard_pointer(&g, "gate", args->gate, 4);
    guard_pointer(&g, "beta", args->beta, 4);
    guard_pointer(&g, "gc", args->gc, 4);
    guard_pointer(&g, "u", args->u, QUAD_ALIGN);
    guard_pointer(&g, "w", args->w, QUAD_ALIGN);
    guard_chunks(&g, args->heads, args->head_dim, args->chunk, args->tokens);
    guard_product(&g, "shared floats", c, d + c + 1, 1);
    guard_shared(&g, (c * d + c * c + c) * sizeof(float), KDA_CHUNK_SHARED);
    guard_axis(&g, "H", 'y', args->heads);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->tokens, args->chunk), args->heads, 1);
    launch_block(&l, CHUNK_THREADS, 1, 1);
    launch_shared(&l, (c * d + c * c + c) * sizeof(float));
    launch_ptr(&l, args->k);
    launch_ptr(&l, args->v);
    launch_ptr(&l, args->gate);
    launch_ptr(&l, args->beta);
    launch_ptr(&l, args->gc);
    launch_ptr(&l, args->u);
    launch_ptr(&l, args->w);
    launch_u32(&l, args->heads);
    launch_u32(&l, args->head_dim);
    launch_u32(&l, args->chunk);
    launch_u32(&l, args->tokens);
    return launch_submit(&l, err);
}

static void guard_chunk_scan(struct launch_guard *g, const struct kda_chunk_scan_args *args)
{
    guard_pointer(g, "q", args->q, 4);
    guard_pointer(g, "k", args->k, 4);
    guard_pointer(g, "gc", args->gc, 4);
    guard_pointer(g, "u", args->u, QUAD_ALIGN);
    guard_pointer(g, "w", args->w, 4);
    guard_pointer(g, "out", args->out, QUAD_ALIGN);
    guard_pointer(g, "state", args->state, QUAD_ALIGN);
    guard_state(g, args->state, args->heads, args->head_dim);
    guard_chunks(g, args->heads, args->head_dim, args->chunk, args->tokens);
    if (!g->refused) /* chunk is not 0 here */
        guard_that(g, args->num_chunks == blocks_for(args->tokens, args->chunk),
                   "num_chunks = %u, but T = %u in chunks of %u makes %u", args->num_chunks,
                   args->tokens, args->chunk, blocks_for(args->tokens, args->chunk));
    guard_that(g, isfinite(args->scale), "scale = %g is not finite", (double)args->scale);
}

int kda_launch_chunk_scan(const struct kernel *kernel, const struct kda_chunk_scan_args *args,
                          struct err *err)
{
    uint64_t c = args->chunk, d = args->head_dim;
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_chunk_scan", kernel, err);
    guard_chunk_scan(&g, args);
    guard_product(&g, "shared floats", c, 2 * d + c, 1);
    guard_shared(&g, (2 * c * d + c * c) * sizeof(float), KDA_CHUNK_SHARED);
    guard_axis(&g, "H", 'x', args->heads);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, args->heads, 1, 1);
    launch_block(&l, CHUNK_THREADS, 1, 1);
    launch_shared(&l, (2 * c * d + c * c) * sizeof(float));
    launch_ptr(&l, args->q);
    launch_ptr(&l, args->k);
    launch_ptr(&l, args->gc);
    launch_ptr(&l, args->u);
    launch_ptr(&l, args->w);
    launch_ptr(&l, args->state);
    launch_ptr(&l, args->out);
    launch_u32(&l, args->heads);
    launch_u32(&l, args->head_dim);
    launch_u32(&l, args->chunk);
    launch_u32(&l, args->num_chunks);
    launch_u32(&l, args->tokens);
    launch_f32(&l, args->scale);
    return launch_submit(&l, err);
}

static void guard_recurrent(struct launch_guard *g, const struct kda_recurrent_args *args)
{
    guard_pointer(g, "q", args->q, 2);
    guard_pointer(g, "k", args->k, 2);
    guard_pointer(g, "v", args->v, 2);
    guard_pointer(g, "gate", args->gate, 4);
    guard_pointer(g, "beta", args->beta, 4);
    guard_pointer(g, "out", args->out, 4);
    guard_state(g, args->state, args->heads, args->head_dim);
    guard_that(g, isfinite(args->scale), "scale = %g is not finite", (double)args->scale);
    guard_axis(g, "H", 'x', args->heads);
}

static void recurrent_args(struct launch *l, const struct kda_recurrent_args *args)
{
    launch_ptr(l, args->q);
    launch_ptr(l, args->k);
    launch_ptr(l, args->v);
    launch_ptr(l, args->gate);
    launch_ptr(l, args->beta);
    launch_ptr(l, args->state);
    launch_ptr(l, args->out);
    launch_u32(l, args->heads);
    launch_u32(l, args->head_dim);
    launch_f32(l, args->scale);
}

int kda_launch_recurrent(const struct kernel *kernel, const struct kda_recurrent_args *args,
                         struct err *err)
{
    uint64_t d = args->head_dim;
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_recurrent_decode_bf16", kernel, err);
    guard_recurrent(&g, args);
    guard_shared(&g, 3 * d * sizeof(float), gb10_limits.shared_per_block);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, args->heads, 1, 1);
    launch_block(&l, d < RECURRENT_THREADS ? args->head_dim : RECURRENT_THREADS, 1, 1);
    launch_shared(&l, 3 * d * sizeof(float));
    recurrent_args(&l, args);
    return launch_submit(&l, err);
}

int kda_launch_recurrent_smem(const struct kernel *kernel, const struct kda_recurrent_args *args,
                              uint32_t columns, struct err *err)
{
    uint64_t d = args->head_dim, vpb = columns;
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_recurrent_decode_bf16_smem", kernel, err);
    guard_recurrent(&g, args);
    guard_range(&g, "VPB", columns, 1, BLOCK_MAX);
    if (!g.refused) /* columns is not 0 here */
        guard_that(&g, args->head_dim % columns == 0, "VPB = %u does not divide D = %u", columns,
                   args->head_dim);
    guard_shared(&g, (3 * d + vpb * (d + 1)) * sizeof(float), gb10_limits.shared_per_block);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, args->heads, args->head_dim / columns, 1);
    launch_block(&l, columns, 1, 1);
    launch_shared(&l, (3 * d + vpb * (d + 1)) * sizeof(float));
    recurrent_args(&l, args);
    launch_u32(&l, columns);
    return launch_submit(&l, err);
}
