/*
 * Launchers of the projections C[m,n] = sum_k A[m,k] B[n,k]: bf16 in and out, fp32 accumulation.
 * Rows are read 16 bytes at a time: k % 8 == 0, A and B aligned to 16 bytes.
 */
#ifndef OPS_KDA_DENSE_LAUNCH_H
#define OPS_KDA_DENSE_LAUNCH_H

#include "base/err.h"
#include "device/launch.h"

#define KDA_BATCHM_MAX_ROWS 16 /* rows that dense_gemv_bf16_batchm keeps in one pass */

struct kda_kernels; /* kernels/ops/kda.h */

struct kda_dense_args {
    dev_ptr a; /* bf16 [m, k] */
    dev_ptr b; /* bf16 [n, k] */
    dev_ptr c; /* bf16 [m, n]; with batchm row r at r * out_stride */
    uint32_t m, n, k;
    uint32_t out_stride; /* 0 stands for n; only batchm takes another, >= n */
};

/* gemv takes m = 1, batchm 2..16, gemm any. */
int kda_launch_gemm(const struct kernel *kernel, const struct kda_dense_args *args,
                    struct err *err);
int kda_launch_gemv(const struct kernel *kernel, const struct kda_dense_args *args,
                    struct err *err);
int kda_launch_gemv_batchm(const struct kernel *kernel, const struct kda_dense_args *args,
                           struct err *err);

/* The block's projection: gemv for m = 1; for 2..16 rows batchm where the table has it; else
   gemm. */
int kda_dense_mm(const struct kda_kernels *kernels, const struct kda_dense_args *args,
                 struct err *err);

#endif
