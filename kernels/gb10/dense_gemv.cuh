/*
 * The matrix-vector product that dense_gemv_bf16 and dense_gemv_bf16_batchm share, for 1 or more
 * rows of A. A block takes GEMV_OUTPUTS rows of B; its threads split K in steps of eight elements,
 * and each takes its step for all outputs and all rows, so that A is loaded and widened once for
 * four outputs, B once for all rows, and four 16-byte loads of B are in flight a thread.
 *
 * Bits. A row of batchm must equal gemv on that row. Both run this code, and the order of
 * additions of an output depends on K alone: a thread's elements in order, eight threads add up
 * 32 partial sums each in order, then a tree over eight. Fused multiply-add cannot tell them apart
 * either: the product of two bf16 has at most 16 significant bits, so it is exact in fp32 (down to
 * products near 2^-133) and fused and separate rounding give the same bits.
 */
#ifndef DENSE_GEMV_CUH
#define DENSE_GEMV_CUH

#include "bf16_rows.cuh"

#define GEMV_OUTPUTS  4 /* rows of B a block; the components of a float4 */
#define GEMV_THREADS  256
#define GEMV_SUMMERS  8                             /* threads that finish one output */
#define GEMV_SHARE    (GEMV_THREADS / GEMV_SUMMERS) /* partial sums each of them adds */
#define GEMV_MAX_ROWS (GEMV_SHARE / GEMV_OUTPUTS)   /* of A in one pass: a warp finishes one each */
#define GEMV_PITCH    (GEMV_THREADS + GEMV_SUMMERS) /* floats; see gemv_partials */

/* One row's partial sums in shared memory. The four outputs that a warp finishes at once lie
   GEMV_PITCH apart, which puts its 32 lanes into 32 different banks. */
struct gemv_partials {
    float of[GEMV_OUTPUTS][GEMV_PITCH];
};

/* Element i of the four rows of B whose vectors are w. */
__device__ __forceinline__ void gemv_widen(const uint4 w[GEMV_OUTPUTS], float4 element[BF16_VECTOR])
{
    element[0] =
        make_float4(bf16_low(w[0].x), bf16_low(w[1].x), bf16_low(w[2].x), bf16_low(w[3].x));
    element[1] =
        make_float4(bf16_high(w[0].x), bf16_high(w[1].x), bf16_high(w[2].x), bf16_high(w[3].x));
    element[2] =
        make_float4(bf16_low(w[0].y), bf16_low(w[1].y), bf16_low(w[2].y), bf16_low(w[3].y));
    element[3] =
        make_float4(bf16_high(w[0].y), bf16_high(w[1].y), bf16_high(w[2].y), bf16_high(w[3].y));
    element[4] =
        make_float4(bf16_low(w[0].z), bf16_low(w[1].z), bf16_low(w[2].z), bf16_low(w[3].z));
    element[5] =
        make_float4(bf16_high(w[0].z), bf16_high(w[1].z), bf16_high(w[2].z), bf16_high(w[3].z));
    element[6] =
        make_float4(bf16_low(w[0].w), bf16_low(w[1].w), bf16_low(w[2].w), bf16_low(w[3].w));
    element[7] =
        make_float4(bf16_high(w[0].w), bf16_high(w[1].w), bf16_high(w[2].w), bf16_high(w[3].w));
}

__device__ __forceinline__ float4 gemv_add(float4 acc, float a, float4 b)
{
    return make_float4(acc.x + a * b.x, acc.y + a * b.y, acc.z + a * b.z, acc.w + a * b.w);
}

__device__ __forceinline__ float4 gemv_dot(float4 acc, uint4 a, const float4 element[BF16_VECTOR])
{
    acc = gemv_add(acc, bf16_low(a.x), element[0]);
    acc = gemv_add(acc, bf16_high(a.x), element[1]);
    acc = gemv_add(acc, bf16_low(a.y), element[2]);
    acc = gemv_add(acc, bf16_high(a.y), element[3]);
    acc = gemv_add(acc, bf16_low(a.z), element[4]);
    acc = gemv_add(acc, bf16_high(a.z), element[5]);
    acc = gemv_add(acc, bf16_low(a.w), element[6]);
    return gemv_add(acc, bf16_high(a.w), element[7]);
}

/* The sum of an output's partial sums, complete in the first of the GEMV_SUMMERS threads that
   share it. */
__device__ __forceinline__ float gemv_sum(const float *part, unsigned summer)
{
    float sum = part[summer];

#pragma unroll
    for (unsigned i = GEMV_SUMMERS; i < GEMV_THREADS; i += GEMV_SUMMERS)
        sum += part[summer + i];
#pragma unroll
    for (unsigned step = GEMV_SUMMERS / 2; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step, GEMV_SUMMERS);
    return sum;
}

/* Adds up and stores the outputs of the rows whose partial sums are in `part`. A warp finishes the
   four outputs of a row, so it takes part as a whole. */
__device__ __forceinline__ void gemv_finish(const struct gemv_partials *part, __nv_bfloat16 *c,
                                            unsigned rows, unsigned n_total, size_t out_stride)
{
    const unsigned m = threadIdx.x / GEMV_SHARE;
    const unsigned output = threadIdx.x / GEMV_SUMMERS % GEMV_OUTPUTS;
    const unsigned n = blockIdx.x * GEMV_OUTPUTS + output;

    if (m >= rows)
        return;
    const float sum = gemv_sum(part[m].of[output], threadIdx.x % GEMV_SUMMERS);
    if (threadIdx.x % GEMV_SUMMERS == 0 && n < n_total)
        c[m * out_stride + n] = __float2bfloat16(sum);
}

/* C[m * out_stride + n] = sum_k A[m * K + k] B[n * K + k] for m < rows <= MAX_ROWS <=
   GEMV_MAX_ROWS. K % 8 == 0. Rows past the last of A or B repeat it and are not stored. `part` is
   shared memory, MAX_ROWS of them. */
template <unsigned MAX_ROWS>
__device__ __forceinline__ void gemv_rows(struct gemv_partials *part, const __nv_bfloat16 *a,
                                          const __nv_bfloat16 *b, __nv_bfloat16 *c, unsigned rows,
                                          unsigned n_total, unsigned k_total, size_t out_stride)
{
    float4 acc[MAX_ROWS];

#pragma unroll
    for (unsigned m = 0; m < MAX_ROWS; m++)
        acc[m] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (unsigned i = threadIdx.x; i < k_total / BF16_VECTOR; i += GEMV_THREADS) {
        uint4 w[GEMV_OUTPUTS];
        float4 element[BF16_VECTOR];

#pragma unroll
        for (unsigned o = 0; o < GEMV_OUTPUTS; o++)
            w[o] = bf16_vector(
                b + (size_t)min(blockIdx.x * GEMV_OUTPUTS + o, n_total - 1) * k_total, i);
        gemv_widen(w, element);
#pragma unroll
        for (unsigned m = 0; m < MAX_ROWS; m++)
            acc[m] =
                gemv_dot(acc[m], bf16_vector(a + (size_t)min(m, rows - 1) * k_total, i), element);
    }
#pragma unroll
    for (unsigned m = 0; m < MAX_ROWS; m++) {
        part[m].of[0][threadIdx.x] = acc[m].x;
        part[m].of[1][threadIdx.x] = acc[m].y;
        part[m].of[2][threadIdx.x] = acc[m].z;
        part[m].of[3][threadIdx.x] = acc[m].w;
    }
    __syncthreads();
    gemv_finish(part, c, rows, n_total, out_stride);
}

#endif
