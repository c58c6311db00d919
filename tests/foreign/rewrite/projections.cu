// The three projections. The GEMM runs on the matrix units (mma.sync): its eight warps take every
// eighth slice of 16 along K and add up their tiles in shared memory. The GEMVs sum by shuffles.
#include "toolbox.cuh"

namespace
{
__device__ uint32_t pair_at(const bf16 *m, unsigned row, unsigned rows, unsigned k, unsigned depth)
{
    return row < rows && k < depth ? *(const uint32_t *)(m + (size_t)row * depth + k) : 0u;
}

// One row of A times one row of B over a warp: lane l takes elements 8l..8l+7 of every 256.
__device__ float row_dot(const bf16 *a, const bf16 *b, unsigned depth, unsigned lane)
{
    float sum = 0.0f;
    for (unsigned k = lane * 8; k < depth; k += 256)
        for (unsigned i = 0; i < 8; i++)
            sum += up(a[k + i]) * up(b[k + i]);
    return butterfly(sum);
}

// Warps 0..3 of the block own an output each and warps 4..7 rest: a block has four outputs.
__device__ void four_outputs(const bf16 *a, const bf16 *b, bf16 *c, unsigned n_total,
                             unsigned depth)
{
    const unsigned n = blockIdx.x * 4 + (threadIdx.x >> 5);
    if (threadIdx.x >= 128 || n >= n_total)
        return;
    const float sum = row_dot(a, b + (size_t)n * depth, depth, threadIdx.x & 31);
    if ((threadIdx.x & 31) == 7)
        c[n] = down(sum);
}
} // namespace

extern "C" __global__ void dense_gemm_bf16(const bf16 *a, const bf16 *b, bf16 *c, unsigned m_total,
                                           unsigned n_total, unsigned depth)
{
    __shared__ float tiles[8][16][17];
    const unsigned t = threadIdx.y * 16 + threadIdx.x, warp = t >> 5, lane = t & 31;
    const unsigned m0 = blockIdx.y * 16, n0 = blockIdx.x * 16, g = lane >> 2, p = (lane & 3) * 2;
    float left[4] = {}, right[4] = {};
    for (unsigned k = warp * 16; k < depth; k += 128) {
        const uint32_t fa[4] = {pair_at(a, m0 + g, m_total, k + p, depth),
                                pair_at(a, m0 + g + 8, m_total, k + p, depth),
                                pair_at(a, m0 + g, m_total, k + p + 8, depth),
                                pair_at(a, m0 + g + 8, m_total, k + p + 8, depth)};
        const uint32_t f0[2] = {pair_at(b, n0 + g, n_total, k + p, depth),
                                pair_at(b, n0 + g, n_total, k + p + 8, depth)};
        const uint32_t f1[2] = {pair_at(b, n0 + g + 8, n_total, k + p, depth),
                                pair_at(b, n0 + g + 8, n_total, k + p + 8, depth)};
        mma16816(left, fa, f0);
        mma16816(right, fa, f1);
    }
    for (unsigned i = 0; i < 4; i++) {
        tiles[warp][g + i / 2 * 8][p + i % 2] = left[i];
        tiles[warp][g + i / 2 * 8][p + i % 2 + 8] = right[i];
    }
    __syncthreads();
    float sum = 0.0f;
    for (int w = 7; w >= 0; w--)
        sum += tiles[w][threadIdx.y][threadIdx.x];
    if (m0 + threadIdx.y < m_total && n0 + threadIdx.x < n_total)
        c[(size_t)(m0 + threadIdx.y) * n_total + n0 + threadIdx.x] = down(sum);
}

extern "C" __global__ void dense_gemv_bf16(const bf16 *a, const bf16 *b, bf16 *c, unsigned n,
                                           unsigned k)
{
    four_outputs(a, b, c, n, k);
}

extern "C" __global__ void dense_gemv_bf16_batchm(const bf16 *a, const bf16 *b, bf16 *c, unsigned m,
                                                  unsigned n, unsigned k, unsigned out_stride)
{
    for (unsigned row = 0; row < m; row++)
        four_outputs(a + (size_t)row * k, b, c + (size_t)row * out_stride, n, k);
}
