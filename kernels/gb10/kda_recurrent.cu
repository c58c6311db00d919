/*
 * One token of the KDA recurrence, per head with state S [k][v] and log decay per key channel:
 *
 *     S = exp(gate) S row by row          delta = (v - S^T k) beta
 *     S = S + k delta^T                   out = S^T (q scale)
 *
 * kda_recurrent_decode_bf16: a block a head, a thread a column. Two reads and one write of S: pass
 * 2 decays the original state again instead of reading a decayed one that pass 1 would have
 * written.
 * Grid H, block min(128, D), dynamic shared 3 D floats.
 *
 * kda_recurrent_decode_bf16_smem: a block VPB columns of a head, the decayed columns kept in shared
 * memory. One read and one write of S, and D / VPB times as many blocks.
 * Grid (H, D / VPB), block VPB, dynamic shared (3 D + VPB (D + 1)) floats.
 *
 * Bits. The two must be equal, and one sees a decayed state that the other computes twice. Every
 * operation on a column is one of the functions below with __fmul_rn / __fadd_rn, which no compiler
 * fuses, in the order of k; so they are equal by construction.
 */
#include <cuda_bf16.h>

#define BATCH                                                                                      \
    16 /* rows loaded before the first of them is stored: nvcc cannot tell the rows apart */

/* The head's operands in dynamic shared memory, D floats each. */
struct recurrent_head {
    float *k, *q, *decay;
};

__device__ __forceinline__ struct recurrent_head
recurrent_load(float *shared, const __nv_bfloat16 *q, const __nv_bfloat16 *k, const float *gate,
               unsigned head_dim, float scale)
{
    const size_t row = (size_t)blockIdx.x * head_dim;
    struct recurrent_head s = {shared, shared + head_dim, shared + 2 * head_dim};

    for (unsigned d = threadIdx.x; d < head_dim; d += blockDim.x) {
        s.k[d] = __bfloat162float(k[row + d]);
        s.q[d] = __bfloat162float(q[row + d]) * scale;
        s.decay[d] = expf(gate[row + d]);
    }
    __syncthreads();
    return s;
}

__device__ __forceinline__ float decayed(float state, float decay)
{
    return __fmul_rn(state, decay);
}

/* acc + a b in two roundings: a term of a dot product, and the rank-one update */
__device__ __forceinline__ float add_product(float acc, float a, float b)
{
    return __fadd_rn(acc, __fmul_rn(a, b));
}

__device__ __forceinline__ float delta_of(float v, float projected, float beta)
{
    return __fmul_rn(__fadd_rn(v, -projected), beta);
}

/* Rows d0 .. d0 + BATCH - 1 of a column; those past the last are zero and not used. */
__device__ __forceinline__ void load_batch(float x[BATCH], const float *column, unsigned d0,
                                           unsigned head_dim)
{
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++)
        x[i] = d0 + i < head_dim ? column[(size_t)(d0 + i) * head_dim] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(128)
    kda_recurrent_decode_bf16(const __nv_bfloat16 *__restrict__ q,
                              const __nv_bfloat16 *__restrict__ k,
                              const __nv_bfloat16 *__restrict__ v, const float *__restrict__ gate,
                              const float *__restrict__ beta, float *__restrict__ state,
                              float *__restrict__ out, unsigned /*heads*/, unsigned head_dim,
                              float scale)
{
    extern __shared__ float shared[];
    const struct recurrent_head s = recurrent_load(shared, q, k, gate, head_dim, scale);
    const size_t row = (size_t)blockIdx.x * head_dim;

    for (unsigned c = threadIdx.x; c < head_dim; c += blockDim.x) {
        float *column = state + row * head_dim + c;
        float projected = 0.0f, result = 0.0f;

#pragma unroll 32
        for (unsigned d = 0; d < head_dim; d++)
            projected =
                add_product(projected, decayed(column[(size_t)d * head_dim], s.decay[d]), s.k[d]);
        const float delta = delta_of(__bfloat162float(v[row + c]), projected, beta[blockIdx.x]);
        for (unsigned d0 = 0; d0 < head_dim; d0 += BATCH) {
            float x[BATCH];

            load_batch(x, column, d0, head_dim);
#pragma unroll
            for (unsigned i = 0; i < BATCH; i++) {
                const unsigned d = d0 + i;
                if (d < head_dim) {
                    const float next = add_product(decayed(x[i], s.decay[d]), s.k[d], delta);
                    column[(size_t)d * head_dim] = next;
                    result = add_product(result, next, s.q[d]);
                }
            }
        }
        out[row + c] = result;
    }
}

extern "C" __global__ void kda_recurrent_decode_bf16_smem(
    const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
    const __nv_bfloat16 *__restrict__ v, const float *__restrict__ gate,
    const float *__restrict__ beta, float *__restrict__ state, float *__restrict__ out,
    unsigned /*heads*/, unsigned head_dim, float scale, unsigned columns)
{
    extern __shared__ float shared[];
    const struct recurrent_head s = recurrent_load(shared, q, k, gate, head_dim, scale);
    const size_t row = (size_t)blockIdx.x * head_dim;
    const unsigned c = blockIdx.y * columns + threadIdx.x;
    float *column = state + row * head_dim + c;
    float *kept = shared + 3 * head_dim + threadIdx.x * (head_dim + 1); /* + 1: one bank a thread */
    float projected = 0.0f, result = 0.0f;

    for (unsigned d0 = 0; d0 < head_dim; d0 += BATCH) {
        float x[BATCH];

        load_batch(x, column, d0, head_dim);
#pragma unroll
        for (unsigned i = 0; i < BATCH; i++)
            if (d0 + i < head_dim) {
                x[i] = decayed(x[i], s.decay[d0 + i]);
                projected = add_product(projected, x[i], s.k[d0 + i]);
            }
            /* A loop of its own, so that no load waits for a store to `kept`. */
#pragma unroll
        for (unsigned i = 0; i < BATCH; i++)
            if (d0 + i < head_dim)
                kept[d0 + i] = x[i];
    }
    const float delta = delta_of(__bfloat162float(v[row + c]), projected, beta[blockIdx.x]);
#pragma unroll 32
    for (unsigned d = 0; d < head_dim; d++) {
        const float next = add_product(kept[d], s.k[d], delta);
        column[(size_t)d * head_dim] = next;
        result = add_product(result, next, s.q[d]);
    }
    out[row + c] = result;
}
