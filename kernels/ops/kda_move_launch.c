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

/* Four buffers in the kernel's order. */
struct move {
    const char *entry;
    struct {
        const char *name;
        dev_ptr ptr;
        unsigned align;
    } buffer[4];
    uint32_t tokens, qkv;
};

static int launch_move(const struct kernel *kernel, const struct move *m, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, m->entry, kernel, err);
    for (int i = 0; i < 4; i++)
        guard_pointer(&g, m->buffer[i].name, m->buffer[i].ptr, m->buffer[i].align);
    guard_rows(&g, m->tokens, m->qkv);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(m->qkv, MOVE_THREADS), m->tokens, 1);
    launch_block(&l, MOVE_THREADS, 1, 1);
    for (int i = 0; i < 4; i++)
        launch_ptr(&l, m->buffer[i].ptr);
    launch_u32(&l, m->tokens);
    launch_u32(&l, m->qkv);
    return launch_submit(&l, err);
}

int kda_launch_split_widen(const struct kernel *kernel, const struct kda_split_widen_args *args,
                           struct err *err)
{
    const struct move m = {
        .entry = "kda_split_widen",
        .buffer = {{"src", args->src, 2}, {"q", args->q, 4}, {"k", args->k, 4}, {"v", args->v, 4}},
        .tokens = args->tokens,
        .qkv = args->qkv,
    };

    return launch_move(kernel, &m, err);
}

int kda_launch_pack(const struct kernel *kernel, const struct kda_pack_args *args, struct err *err)
{
    const struct move m = {
        .entry = "kda_pack_qkv_bf16",
        .buffer = {{"q", args->q, 2}, {"k", args->k, 2}, {"v", args->v, 2}, {"dst", args->dst, 2}},
        .tokens = args->tokens,
        .qkv = args->qkv,
    };

    return launch_move(kernel, &m, err);
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
