/*
 * The small kernels between the projections and the recurrence of a KDA layer.
 *
 * kda_o_norm_gated_bf16: x / sqrt(mean(x^2) + eps) * weight * sigmoid(gate) per row.
 *     Grid rows, block head_dim (a multiple of 32).
 * kda_split_widen: q | k | v rows of bf16 to three fp32 buffers.
 *     Grid (ceil(qkv, 256), T), block 256.
 * kda_pack_qkv_bf16: three bf16 buffers to q | k | v rows.
 *     Grid (ceil(qkv, 256), T), block 256.
 * kda_sigmoid_bf16_f32, kda_fill_f32.
 *     Grid ceil(n, 256), block 256.
 *
 * They move each element once with neighbouring threads on neighbouring elements; the geometry, one
 * element a thread, is the engine's. Rows from T on are not written.
 */
#include "row_sum.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    kda_o_norm_gated_bf16(const float *__restrict__ x, const __nv_bfloat16 *__restrict__ gate,
                          const __nv_bfloat16 *__restrict__ weight, __nv_bfloat16 *__restrict__ out,
                          unsigned head_dim, float eps)
{
    const unsigned d = threadIdx.x; /* the block is exactly head_dim threads */
    const size_t at = (size_t)blockIdx.x * head_dim + d;
    const float value = x[at];
    const float mean = row_sum(value * value, head_dim) / (float)head_dim;

    out[at] = __float2bfloat16(value / sqrtf(mean + eps) * __bfloat162float(weight[d]) *
                               sigmoid(__bfloat162float(gate[at])));
}

extern "C" __global__ void __launch_bounds__(256)
    kda_split_widen(const __nv_bfloat16 *__restrict__ src, float *__restrict__ q,
                    float *__restrict__ k, float *__restrict__ v, unsigned tokens, unsigned qkv)
{
    const unsigned c = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t t = blockIdx.y, to = t * qkv + c;

    if (c >= qkv || t >= tokens)
        return;
    src += t * 3 * qkv + c;
    q[to] = __bfloat162float(src[0]);
    k[to] = __bfloat162float(src[qkv]);
    v[to] = __bfloat162float(src[2 * (size_t)qkv]);
}

extern "C" __global__ void __launch_bounds__(256)
    kda_sigmoid_bf16_f32(const __nv_bfloat16 *__restrict__ src, float *__restrict__ dst, unsigned n)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        dst[i] = sigmoid(__bfloat162float(src[i]));
}

extern "C" __global__ void __launch_bounds__(256)
    kda_fill_f32(float *__restrict__ dst, unsigned n, float value)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        dst[i] = value;
}

extern "C" __global__ void __launch_bounds__(256)
    kda_pack_qkv_bf16(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
                      const __nv_bfloat16 *__restrict__ v, __nv_bfloat16 *__restrict__ dst,
                      unsigned tokens, unsigned qkv)
{
    const unsigned c = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t t = blockIdx.y, from = t * qkv + c;

    if (c >= qkv || t >= tokens)
        return;
    dst += t * 3 * qkv + c;
    dst[0] = q[from];
    dst[qkv] = k[from];
    dst[2 * (size_t)qkv] = v[from];
}
