/*
 * The matrix-vector product that dense_gemv_bf16 and dense_gemv_bf16_batchm share, for 1 or more
 * rows of A: a block takes GEMV_OUTPUTS rows of B and GEMV_LANES threads walk each of them once,
 * in 16-byte steps.
 *
 * Bits. A row of batchm must equal gemv on that row. Both run this code, and the order of
 * additions of an output depends on K alone: per thread the even and the odd elements of its
 * vectors, their sum, eight threads' sums in order, then a tree over eight. Fused multiply-add
 * cannot tell them apart either: the product of two bf16 has at most 16 significant bits, so it is
 * exact in fp32 (down to products near 2^-133) and fused and separate rounding give the same bits.
 */
#ifndef DENSE_GEMV_CUH
#define DENSE_GEMV_CUH

#include "bf16_rows.cuh"

#define GEMV_OUTPUTS 4 /* rows of B a block */
#define GEMV_THREADS 256
#define GEMV_LANES   (GEMV_THREADS / GEMV_OUTPUTS)
#define GEMV_SUMMERS 8                /* threads that add up the partial sums of one output */
#define GEMV_PITCH   (GEMV_LANES + 8) /* keeps the four outputs a warp adds up in different banks */

/* One row's partial sums in shared memory. */
struct gemv_partials {
    float of[GEMV_OUTPUTS][GEMV_PITCH];
};

/* acc.x gathers the even elements, acc.y the odd ones: two chains hide the latency of an
   addition. */
__device__ __forceinline__ float2 gemv_dot(float2 acc, uint4 a, uint4 b)
{
    acc.x += bf16_low(a.x) * bf16_low(b.x);
    acc.y += bf16_high(a.x) * bf16_high(b.x);
    acc.x += bf16_low(a.y) * bf16_low(b.y);
    acc.y += bf16_high(a.y) * bf16_high(b.y);
    acc.x += bf16_low(a.z) * bf16_low(b.z);
    acc.y += bf16_high(a.z) * bf16_high(b.z);
    acc.x += bf16_low(a.w) * bf16_low(b.w);
    acc.y += bf16_high(a.w) * bf16_high(b.w);
    return acc;
}

/* The sum of GEMV_LANES partial sums, complete in the first of the GEMV_SUMMERS threads that
   share it. */
__device__ __forceinline__ float gemv_sum(const float *part, unsigned summer)
{
    float sum = part[summer];

#pragma unroll
    for (unsigned i = GEMV_SUMMERS; i < GEMV_LANES; i += GEMV_SUMMERS)
        sum += part[summer + i];
#pragma unroll
    for (unsigned step = GEMV_SUMMERS / 2; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step, GEMV_SUMMERS);
    return sum;
}

/* C[m * out_stride + n] = sum_k A[m * K + k] B[n * K + k] for m < rows <= MAX_ROWS. K % 8 == 0.
   `part` is shared memory for MAX_ROWS rows. */
template <unsigned MAX_ROWS>
__device__ __forceinline__ void gemv_rows(struct gemv_partials *part, const __nv_bfloat16 *a,
                                          const __nv_bfloat16 *b, __nv_bfloat16 *c, unsigned rows,
                                          unsigned n_total, unsigned k_total, size_t out_stride)
{
    const unsigned output = threadIdx.x / GEMV_LANES, lane = threadIdx.x % GEMV_LANES;
    const unsigned first = blockIdx.x * GEMV_OUTPUTS;
    float2 acc[MAX_ROWS];

#pragma unroll
    for (unsigned m = 0; m < MAX_ROWS; m++)
        acc[m] = make_float2(0.0f, 0.0f);
    if (first + output < n_total) {
        const __nv_bfloat16 *weight = b + (size_t)(first + output) * k_total;
#pragma unroll 4
        for (unsigned i = lane; i < k_total / BF16_VECTOR; i += GEMV_LANES) {
            const uint4 w = bf16_vector(weight, i);
#pragma unroll
            for (unsigned m = 0; m < MAX_ROWS; m++)
                if (m < rows)
                    acc[m] = gemv_dot(acc[m], bf16_vector(a + (size_t)m * k_total, i), w);
        }
    }
#pragma unroll
    for (unsigned m = 0; m < MAX_ROWS; m++)
        part[m].of[output][lane] = acc[m].x + acc[m].y;
    __syncthreads();
    /* A warp adds up four sums at a time, so it is in or out of the loop as a whole. */
    for (unsigned s = threadIdx.x / GEMV_SUMMERS; s < rows * GEMV_OUTPUTS;
         s += GEMV_THREADS / GEMV_SUMMERS) {
        const unsigned m = s / GEMV_OUTPUTS, n = s % GEMV_OUTPUTS;
        const float sum = gemv_sum(part[m].of[n], threadIdx.x % GEMV_SUMMERS);
        if (threadIdx.x % GEMV_SUMMERS == 0 && first + n < n_total)
            c[m * out_stride + first + n] = __float2bfloat16(sum);
    }
}

#endif
