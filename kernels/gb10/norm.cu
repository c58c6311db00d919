/*
 * l2_norm_bf16: x / sqrt(sum x^2 + eps) over each head, in place. A block a head and token; each
 * thread reads, and after the sum writes, its own channels.
 *
 * The quotient is formed with sqrtf and a division, both correctly rounded: rsqrtf would save a few
 * instructions of a kernel that waits for memory, and cost two more roundings.
 * Launch: grid (heads, tokens), block min(head_dim, 1024); head_dim % 32 == 0.
 */
#include "row_sum.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    l2_norm_bf16(__nv_bfloat16 *data, unsigned head_dim, float eps, unsigned stride)
{
    __nv_bfloat16 *row = data + (size_t)blockIdx.y * stride + (size_t)blockIdx.x * head_dim;
    float sum = 0.0f;

    for (unsigned d = threadIdx.x; d < head_dim; d += blockDim.x) {
        const float x = __bfloat162float(row[d]);
        sum += x * x;
    }
    const float norm = sqrtf(row_sum(sum, blockDim.x) + eps);
    for (unsigned d = threadIdx.x; d < head_dim; d += blockDim.x)
        row[d] = __float2bfloat16(__bfloat162float(row[d]) / norm);
}
