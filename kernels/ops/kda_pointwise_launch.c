/* Launches of l2_norm_bf16, kda_gate_bf16, kda_o_norm_gated_bf16 and kda_sigmoid_bf16_f32. */
#include "kernels/ops/kda_pointwise_launch.h"

#include <math.h>

#include "kernels/ops/launch_guard.h"

#define BLOCK_MAX       1024
#define WARP            32 /* a row's reduction exchanges values within whole warps */
#define GATE_THREADS    128
#define SIGMOID_THREADS 256

static void guard_eps(struct launch_guard *g, float eps)
{
    guard_that(g, eps >= 0, "eps = %g is not a number >= 0", (double)eps);
}

int kda_launch_l2(const struct kernel *kernel, const struct kda_l2_args *args, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "l2_norm_bf16", kernel, err);
    guard_pointer(&g, "data", args->data, 2);
    guard_size(&g, "heads", args->heads);
    guard_size(&g, "tokens", args->tokens);
    guard_size(&g, "head_dim", args->head_dim);
    guard_multiple(&g, "head_dim", args->head_dim, WARP);
    guard_eps(&g, args->eps);
    guard_product(&g, "a token's heads", args->heads, args->head_dim, 1);
    guard_least(&g, "stride", args->stride, "heads * head_dim",
                (uint64_t)args->heads * args->head_dim);
    guard_product(&g, "data", args->tokens, args->stride, 1);
    guard_axis(&g, "heads", 'x', args->heads);
    guard_axis(&g, "tokens", 'y', args->tokens);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, args->heads, args->tokens, 1);
    launch_block(&l, args->head_dim < BLOCK_MAX ? args->head_dim : BLOCK_MAX, 1, 1);
    launch_ptr(&l, args->data);
    launch_u32(&l, args->head_dim);
    launch_f32(&l, args->eps);
    launch_u32(&l, args->stride);
    return launch_submit(&l, err);
}

int kda_launch_gate(const struct kernel *kernel, const struct kda_gate_args *args, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_gate_bf16", kernel, err);
    guard_pointer(&g, "g_raw", args->g_raw, 2);
    guard_pointer(&g, "dt_bias", args->dt_bias, 4);
    guard_pointer(&g, "A_log", args->a_log, 4);
    guard_pointer(&g, "out", args->out, 4);
    guard_size(&g, "T", args->tokens);
    guard_size(&g, "H", args->heads);
    guard_size(&g, "D", args->head_dim);
    guard_that(&g, args->lower_bound < 0 && isfinite(args->lower_bound),
               "lower_bound = %g is not a finite number below 0", (double)args->lower_bound);
    guard_product(&g, "out", args->tokens, args->heads, args->head_dim);
    guard_axis(&g, "T * H", 'x', (uint64_t)args->tokens * args->heads);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, args->tokens * args->heads, 1, 1);
    launch_block(&l, GATE_THREADS, 1, 1);
    launch_ptr(&l, args->g_raw);
    launch_ptr(&l, args->dt_bias);
    launch_ptr(&l, args->a_log);
    launch_ptr(&l, args->out);
    launch_u32(&l, args->tokens);
    launch_u32(&l, args->heads);
    launch_u32(&l, args->head_dim);
    launch_f32(&l, args->lower_bound);
    return launch_submit(&l, err);
}

int kda_launch_o_norm(const struct kernel *kernel, const struct kda_o_norm_args *args,
                      struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_o_norm_gated_bf16", kernel, err);
    guard_pointer(&g, "x", args->x, 4);
    guard_pointer(&g, "gate", args->gate, 2);
    guard_pointer(&g, "weight", args->weight, 2);
    guard_pointer(&g, "out", args->out, 2);
    guard_size(&g, "rows", args->rows);
    guard_range(&g, "head_dim", args->head_dim, WARP, BLOCK_MAX);
    guard_multiple(&g, "head_dim", args->head_dim, WARP);
    guard_eps(&g, args->eps);
    guard_product(&g, "x", args->rows, args->head_dim, 1);
    guard_axis(&g, "rows", 'x', args->rows);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, args->rows, 1, 1);
    launch_block(&l, args->head_dim, 1, 1);
    launch_ptr(&l, args->x);
    launch_ptr(&l, args->gate);
    launch_ptr(&l, args->weight);
    launch_ptr(&l, args->out);
    launch_u32(&l, args->head_dim);
    launch_f32(&l, args->eps);
    return launch_submit(&l, err);
}

int kda_launch_sigmoid(const struct kernel *kernel, const struct kda_sigmoid_args *args,
                       struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "kda_sigmoid_bf16_f32", kernel, err);
    guard_pointer(&g, "src", args->src, 2);
    guard_pointer(&g, "dst", args->dst, 4);
    guard_size(&g, "n", args->n);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->n, SIGMOID_THREADS), 1, 1);
    launch_block(&l, SIGMOID_THREADS, 1, 1);
    launch_ptr(&l, args->src);
    launch_ptr(&l, args->dst);
    launch_u32(&l, args->n);
    return launch_submit(&l, err);
}
