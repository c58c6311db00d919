/*
 * dense_gemm_bf16: C[m,n] = sum_k A[m,k] B[n,k], bf16 in and out, fp32 accumulation in plain
 * multiply-adds.
 *
 * Design: the sixteen rows of threads split K. Row g of the block takes elements 8g..8g+7 of every
 * 128, and its sixteen threads a 4 x 4 piece of the tile each: two 16-byte shared loads feed
 * sixteen multiply-adds, which come in fours for a host compiler's vector instructions. The sixteen
 * partial tiles are added in order at the end. (One output a thread, the obvious use of this
 * geometry, needs two shared loads for each multiply-add.)
 *
 * Rows past M or N are zeros, never read; K % 8 == 0 and 16-byte aligned A and B (the launcher
 * checks), so no vector straddles the end of a row. Products of two bf16 are exact in fp32, so
 * fused and separate multiply-add give the same bits. Launch: grid (ceil(N, 16), ceil(M, 16)),
 * block (16, 16).
 */
#include "bf16_rows.cuh"

#define TILE        16
#define K_STEP      128 /* elements of K a round */
#define GROUP_K     (K_STEP / TILE)
#define PITCH       (TILE + 4) /* floats: rows stay 16-byte aligned and spread over the banks */
#define TILE_FLOATS (K_STEP * PITCH)

/* Eight elements of K of row `first + threadIdx.x`, transposed to tile[k][row]; zeros outside. */
__device__ __forceinline__ void load_vector(float *tile, const __nv_bfloat16 *matrix,
                                            unsigned first, unsigned rows, unsigned k_total,
                                            unsigned k0)
{
    const unsigned row = first + threadIdx.x, k = k0 + threadIdx.y * BF16_VECTOR;
    float *to = tile + threadIdx.y * BF16_VECTOR * PITCH + threadIdx.x;
    uint4 v = make_uint4(0, 0, 0, 0);

    if (row < rows && k < k_total)
        v = bf16_vector(matrix + (size_t)row * k_total, k / BF16_VECTOR);
    to[0] = bf16_low(v.x);
    to[PITCH] = bf16_high(v.x);
    to[2 * PITCH] = bf16_low(v.y);
    to[3 * PITCH] = bf16_high(v.y);
    to[4 * PITCH] = bf16_low(v.z);
    to[5 * PITCH] = bf16_high(v.z);
    to[6 * PITCH] = bf16_low(v.w);
    to[7 * PITCH] = bf16_high(v.w);
}

__device__ __forceinline__ float4 add_scaled(float4 acc, float a, float4 b)
{
    return make_float4(acc.x + a * b.x, acc.y + a * b.y, acc.z + a * b.z, acc.w + a * b.w);
}

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    dense_gemm_bf16(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b,
                    __nv_bfloat16 *__restrict__ c, unsigned m_total, unsigned n_total,
                    unsigned k_total)
{
    __shared__ float4 shared[2 * TILE_FLOATS / 4]; /* both operands; then the partial tiles */
    float *a_tile = reinterpret_cast<float *>(shared), *b_tile = a_tile + TILE_FLOATS;
    const unsigned group = threadIdx.y, row = threadIdx.x / 4, column = threadIdx.x % 4;
    const unsigned m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE;
    float4 acc0 = make_float4(0, 0, 0, 0), acc1 = acc0, acc2 = acc0, acc3 = acc0;

    for (unsigned k0 = 0; k0 < k_total; k0 += K_STEP) {
        load_vector(a_tile, a, m0, m_total, k_total, k0);
        load_vector(b_tile, b, n0, n_total, k_total, k0);
        __syncthreads();
#pragma unroll
        for (unsigned i = group * GROUP_K; i < (group + 1) * GROUP_K; i++) {
            const float4 av = reinterpret_cast<const float4 *>(a_tile + i * PITCH)[row];
            const float4 bv = reinterpret_cast<const float4 *>(b_tile + i * PITCH)[column];
            acc0 = add_scaled(acc0, av.x, bv);
            acc1 = add_scaled(acc1, av.y, bv);
            acc2 = add_scaled(acc2, av.z, bv);
            acc3 = add_scaled(acc3, av.w, bv);
        }
        __syncthreads();
    }
    /* Partial tile of group g: shared[g][row][column / 4]. */
    float4 *mine = shared + group * (TILE * TILE / 4) + row * 4 * (TILE / 4) + column;
    mine[0] = acc0;
    mine[TILE / 4] = acc1;
    mine[2 * (TILE / 4)] = acc2;
    mine[3 * (TILE / 4)] = acc3;
    __syncthreads();
    const unsigned cell = threadIdx.y * TILE + threadIdx.x;
    float sum = a_tile[cell];
#pragma unroll
    for (unsigned g = 1; g < TILE; g++)
        sum += a_tile[g * TILE * TILE + cell];
    if (m0 + threadIdx.y < m_total && n0 + threadIdx.x < n_total)
        c[(size_t)(m0 + threadIdx.y) * n_total + n0 + threadIdx.x] = __float2bfloat16(sum);
}
