/* Launches of kda_split_widen, kda_pack_qkv_bf16 and kda_fill_f32. */
#include "kernels/ops/kda_move_launch.h"

#include "kernels/ops/launch_guard.h"

#define MOVE_THREADS 256

static void guard_rows(struct launch_guard *g, uint32_t tokens, uint32_t qkv)
{
    guard_size(g, "T", tokens);
    guard_size(g, "qkv", qkv);
    guard_product(g, "rows of 3 * qkv", tokens, 3, qkv);
    guard_axis(g, "qkv / 256", 'x', blocks_for(qkv, MOVE_THREADS));
    guard_axis(g, "T", 'y', tokens);
}

int kda_launch_split_widen(const struct kernel *kernel, const struct kda_split_widen_args *args,
                           struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_split_widen", kernel, err);
    guard_pointer(&g, "src", args->src, 2);
    guard_pointer(&g, "q", args->q, 4);
    guard_pointer(&g, "k", args->k, 4);
    guard_pointer(&g, "v", args->v, 4);
    guard_rows(&g, args->tokens, args->qkv);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->qkv, MOVE_THREADS), args->tokens, 1);
    launch_block(&l, MOVE_THREADS, 1, 1);
    launch_ptr(&l, args->src);
    launch_ptr(&l, args->q);
    launch_ptr(&l, args->k);
    launch_ptr(&l, args->v);
    launch_u32(&l, args->tokens);
    launch_u32(&l, args->qkv);
    return launch_submit(&l, err);
}

int kda_launch_pack(const struct kernel *kernel, const struct kda_pack_args *args, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_pack_qkv_bf16", kernel, err);
    guard_pointer(&g, "q", args->q, 2);
    guard_pointer(&g, "k", args->k, 2);
    guard_pointer(&g, "v", args->v, 2);
    guard_pointer(&g, "dst", args->dst, 2);
    guard_rows(&g, args->tokens, args->qkv);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->qkv, MOVE_THREADS), args->tokens, 1);
    launch_block(&l, MOVE_THREADS, 1, 1);
    launch_ptr(&l, args->q);
    launch_ptr(&l, args->k);
    launch_ptr(&l, args->v);
    launch_ptr(&l, args->dst);
    launch_u32(&l, args->tokens);
    launch_u32(&l, args->qkv);
    return launch_submit(&l, err);
}

int kda_launch_fill(const struct kernel *kernel, const struct kda_fill_args *args, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_fill_f32", kernel, err);
    guard_pointer(&g, "dst", args->dst, 4);
    guard_size(&g, "n", args->n);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->n, MOVE_THREADS), 1, 1);
    launch_block(&l, MOVE_THREADS, 1, 1);
    launch_ptr(&l, args->dst);
    launch_u32(&l, args->n);
    launch_f32(&l, args->value);
    return launch_submit(&l, err);
}
