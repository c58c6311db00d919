/* Launches of dense_gemm_bf16, dense_gemv_bf16 and dense_gemv_bf16_batchm. */
#include "kernels/ops/kda_dense_launch.h"

#include "kernels/ops/kda.h"
#include "kernels/ops/launch_guard.h"

#define GEMM_TILE    16 /* a block of 16 x 16 threads computes 16 x 16 elements of C */
#define GEMV_ROWS    4  /* rows of B a block of gemv or batchm takes */
#define GEMV_THREADS 256
#define ROW_ALIGN    16 /* bytes: rows are read 8 bf16 at a time */
#define ROW_ELEMENTS 8

static void guard_dense(struct launch_guard *g, const struct kda_dense_args *args)
{
    guard_pointer(g, "A", args->a, ROW_ALIGN);
    guard_pointer(g, "B", args->b, ROW_ALIGN);
    guard_pointer(g, "C", args->c, 2);
    guard_size(g, "M", args->m);
    guard_size(g, "N", args->n);
    guard_size(g, "K", args->k);
    guard_multiple(g, "K", args->k, ROW_ELEMENTS);
    guard_product(g, "A", args->m, args->k, 1);
    guard_product(g, "B", args->n, args->k, 1);
}

static void guard_packed_rows(struct launch_guard *g, const struct kda_dense_args *args)
{
    guard_that(g, args->out_stride == 0 || args->out_stride == args->n,
               "out_stride = %u: this kernel writes rows of N = %u elements without a gap",
               args->out_stride, args->n);
    guard_product(g, "C", args->m, args->n, 1);
}

int kda_launch_gemm(const struct kernel *kernel, const struct kda_dense_args *args, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "dense_gemm_bf16", kernel, err);
    guard_dense(&g, args);
    guard_packed_rows(&g, args);
    guard_axis(&g, "N / 16", 'x', blocks_for(args->n, GEMM_TILE));
    guard_axis(&g, "M / 16", 'y', blocks_for(args->m, GEMM_TILE));
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->n, GEMM_TILE), blocks_for(args->m, GEMM_TILE), 1);
    launch_block(&l, GEMM_TILE, GEMM_TILE, 1);
    launch_ptr(&l, args->a);
    launch_ptr(&l, args->b);
    launch_ptr(&l, args->c);
    launch_u32(&l, args->m);
    launch_u32(&l, args->n);
    launch_u32(&l, args->k);
    return launch_submit(&l, err);
}

int kda_launch_gemv(const struct kernel *kernel, const struct kda_dense_args *args, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "dense_gemv_bf16", kernel, err);
    guard_dense(&g, args);
    guard_packed_rows(&g, args);
    guard_range(&g, "M", args->m, 1, 1);
    guard_axis(&g, "N / 4", 'x', blocks_for(args->n, GEMV_ROWS));
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->n, GEMV_ROWS), 1, 1);
    launch_block(&l, GEMV_THREADS, 1, 1);
    launch_ptr(&l, args->a);
    launch_ptr(&l, args->b);
    launch_ptr(&l, args->c);
    launch_u32(&l, args->n);
    launch_u32(&l, args->k);
    return launch_submit(&l, err);
}

int kda_launch_gemv_batchm(const struct kernel *kernel, const struct kda_dense_args *args,
                           struct err *err)
{
    uint32_t out_stride = args->out_stride == 0 ? args->n : args->out_stride;
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "dense_gemv_bf16_batchm", kernel, err);
    guard_dense(&g, args);
    guard_range(&g, "M", args->m, 2, KDA_BATCHM_MAX_ROWS);
    guard_least(&g, "out_stride", out_stride, "N", args->n);
    guard_product(&g, "C", args->m, out_stride, 1);
    guard_axis(&g, "N / 4", 'x', blocks_for(args->n, GEMV_ROWS));
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_grid(&l, blocks_for(args->n, GEMV_ROWS), 1, 1);
    launch_block(&l, GEMV_THREADS, 1, 1);
    launch_ptr(&l, args->a);
    launch_ptr(&l, args->b);
    launch_ptr(&l, args->c);
    launch_u32(&l, args->m);
    launch_u32(&l, args->n);
    launch_u32(&l, args->k);
    launch_u32(&l, out_stride);
    return launch_submit(&l, err);
}

int kda_dense_mm(const struct kda_kernels *kernels, const struct kda_dense_args *args,
                 struct err *err)
{
    if (args->m == 1)
        return kda_launch_gemv(kernels->gemv, args, err);
    if (args->m >= 2 && args->m <= KDA_BATCHM_MAX_ROWS && kernels->gemv_batchm != NULL)
        return kda_launch_gemv_batchm(kernels->gemv_batchm, args, err);
    return kda_launch_gemm(kernels->gemm, args, err);
}
