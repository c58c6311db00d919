/*
 * dense_gemv_bf16_batchm: C[m,n] = sum_k A[m,k] B[n,k] for 2..16 rows of A in one pass over B, so a
 * verify step of K rows reads each projection's weight once. Row m has the bits of dense_gemv_bf16
 * on that row: both are gemv_rows (dense_gemv.cuh).
 *
 * Unrolled for up to 4, 8 or 16 rows, chosen by M: the sums stay in registers, and two rows do not
 * step over the instructions of fourteen absent ones. One set of partial sums serves all three.
 *
 * Launch: grid ceil(N, 4), block 256. K % 8 == 0, A and B 16-byte aligned; the launcher checks.
 */
#include "dense_gemv.cuh"

extern "C" __global__ void __launch_bounds__(GEMV_THREADS)
    dense_gemv_bf16_batchm(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b,
                           __nv_bfloat16 *__restrict__ c, unsigned m, unsigned n, unsigned k,
                           unsigned out_stride)
{
    __shared__ struct gemv_partials part[16];

    if (m <= 4)
        gemv_rows<4>(part, a, b, c, m, n, k, out_stride);
    else if (m <= 8)
        gemv_rows<8>(part, a, b, c, m, n, k, out_stride);
    else if (m <= 16)
        gemv_rows<16>(part, a, b, c, m, n, k, out_stride);
}
