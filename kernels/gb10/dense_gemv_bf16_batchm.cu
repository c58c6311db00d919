/*
 * dense_gemv_bf16_batchm: C[m,n] = sum_k A[m,k] B[n,k] for 2..16 rows of A, so that a verify step
 * of K rows reads each projection's weight from memory once. Row m has the bits of dense_gemv_bf16
 * on that row: both are gemv_rows (dense_gemv.cuh).
 *
 * Up to eight rows at a time, unrolled for 2, 4 or 8: the sums stay in registers, and the loads of
 * all rows of A can be in flight together, which a test of each row would prevent. Rows 8 to 15 are
 * a second round over the block's four rows of B, which the first has left in the L1 cache; sixteen
 * sums of four outputs each in registers leave too few warps to hide the latency of the loads.
 *
 * Launch: grid ceil(N, 4), block 256. K % 8 == 0, A and B 16-byte aligned; the launcher checks.
 */
#include "dense_gemv.cuh"

extern "C" __global__ void __launch_bounds__(GEMV_THREADS, 2)
    dense_gemv_bf16_batchm(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b,
                           __nv_bfloat16 *__restrict__ c, unsigned m, unsigned n, unsigned k,
                           unsigned out_stride)
{
    __shared__ struct gemv_partials part[GEMV_MAX_ROWS];

    for (unsigned first = 0; first < m; first += GEMV_MAX_ROWS) {
        const __nv_bfloat16 *rows = a + (size_t)first * k;
        __nv_bfloat16 *out = c + (size_t)first * out_stride;
        const unsigned count = min(m - first, (unsigned)GEMV_MAX_ROWS);

        if (first > 0)
            __syncthreads(); /* the partial sums of the round before have been read */
        if (count <= 2)
            gemv_rows<2>(part, rows, b, out, count, n, k, out_stride);
        else if (count <= 4)
            gemv_rows<4>(part, rows, b, out, count, n, k, out_stride);
        else
            gemv_rows<8>(part, rows, b, out, count, n, k, out_stride);
    }
}
