/*
 * dense_gemv_bf16: C[n] = sum_k A[k] B[n,k], the projection of one row. It reads B once and is
 * bound by memory: four 16-byte loads of B in flight a thread (dense_gemv.cuh).
 *
 * Partial sums meet in shared memory and one warp finishes the block's four outputs: one barrier
 * and three shuffles. Five shuffles for each output in each of the eight warps would be no faster
 * on a GPU, and cost the CPU device 5,120 thread switches a block.
 *
 * Launch: grid ceil(N, 4), block 256. K % 8 == 0, A and B 16-byte aligned; the launcher checks.
 */
#include "dense_gemv.cuh"

extern "C" __global__ void __launch_bounds__(GEMV_THREADS)
    dense_gemv_bf16(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b,
                    __nv_bfloat16 *__restrict__ c, unsigned n, unsigned k)
{
    __shared__ struct gemv_partials part[1];

    gemv_rows<1>(part, a, b, c, 1, n, k, n);
}
