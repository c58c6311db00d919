/* Launches of causal_conv1d_update_l2norm and causal_conv1d_update_prefill. */
#include "kernels/ops/kda_conv_launch.h"

#include "kernels/ops/launch_guard.h"

#define CONV_THREADS    256
#define CONV_MAX_WINDOW 4
#define CONV_HEAD_DIM   128 /* a block normalises CONV_THREADS / CONV_HEAD_DIM = 2 heads */

struct tensors {
    dev_ptr conv_state, x, weight, bias, y;
};

static void guard_tensors(struct launch_guard *g, const struct tensors *t)
{
    guard_pointer(g, "conv_state", t->conv_state, 4);
    guard_pointer(g, "x", t->x, 2);
    guard_pointer(g, "weight", t->weight, 2);
    guard_optional(g, "bias", t->bias, 2);
    guard_pointer(g, "y", t->y, 2);
}

/* A block of channels each, `rows` of them, and the first arguments. */
static void begin(struct launch *l, const struct kernel *kernel, const struct tensors *t,
                  uint32_t dim, uint32_t rows)
{
    launch_init(l, kernel);
    launch_grid(l, blocks_for(dim, CONV_THREADS), rows, 1);
    launch_block(l, CONV_THREADS, 1, 1);
    launch_ptr(l, t->conv_state);
    launch_ptr(l, t->x);
    launch_ptr(l, t->weight);
    launch_ptr(l, t->bias);
    launch_ptr(l, t->y);
}

int kda_launch_conv_decode(const struct kernel *kernel, const struct kda_conv_decode_args *args,
                           struct err *err)
{
    const struct tensors tensors = {args->conv_state, args->x, args->weight, args->bias, args->y};
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "causal_conv1d_update_l2norm", kernel, err);
    guard_tensors(&g, &tensors);
    guard_size(&g, "batch", args->batch);
    guard_size(&g, "dim", args->dim);
    guard_range(&g, "d_conv", args->d_conv, 1, CONV_MAX_WINDOW);
    guard_multiple(&g, "qk_channels", args->qk_channels, CONV_THREADS);
    guard_least(&g, "dim", args->dim, "qk_channels", args->qk_channels);
    guard_that(&g, args->qk_channels == 0 || args->head_dim == CONV_HEAD_DIM,
               "head_dim = %u: a block normalises two heads of %u", args->head_dim, CONV_HEAD_DIM);
    guard_that(&g, args->l2_eps >= 0, "l2_eps = %g is not a number >= 0", (double)args->l2_eps);
    guard_product(&g, "conv_state", args->batch, args->dim, args->d_conv);
    guard_axis(&g, "dim / 256", 'x', blocks_for(args->dim, CONV_THREADS));
    guard_axis(&g, "batch", 'y', args->batch);
    if (g.refused)
        return -1;
    begin(&l, kernel, &tensors, args->dim, args->batch);
    launch_u32(&l, args->batch);
    launch_u32(&l, args->dim);
    launch_u32(&l, args->d_conv);
    launch_u32(&l, args->qk_channels);
    launch_u32(&l, args->head_dim);
    launch_f32(&l, args->l2_eps);
    return launch_submit(&l, err);
}

int kda_launch_conv_prefill(const struct kernel *kernel, const struct kda_conv_prefill_args *args,
                            struct err *err)
{
    const struct tensors tensors = {args->conv_state, args->x, args->weight, args->bias, args->y};
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "causal_conv1d_update_prefill", kernel, err);
    guard_tensors(&g, &tensors);
    guard_size(&g, "dim", args->dim);
    guard_range(&g, "d_conv", args->d_conv, 1, CONV_MAX_WINDOW);
    guard_size(&g, "seq_len", args->seq_len);
    guard_least(&g, "in_stride", args->in_stride, "dim", args->dim);
    guard_least(&g, "out_stride", args->out_stride, "dim", args->dim);
    guard_product(&g, "conv_state", args->dim, args->d_conv, 1);
    guard_product(&g, "x", args->seq_len, args->in_stride, 1);
    guard_product(&g, "y", args->seq_len, args->out_stride, 1);
    guard_axis(&g, "dim / 256", 'x', blocks_for(args->dim, CONV_THREADS));
    if (g.refused)
        return -1;
    begin(&l, kernel, &tensors, args->dim, 1);
    launch_u32(&l, args->dim);
    launch_u32(&l, args->d_conv);
    launch_u32(&l, args->seq_len);
    launch_u32(&l, args->in_stride);
    launch_u32(&l, args->out_stride);
    return launch_submit(&l, err);
}
