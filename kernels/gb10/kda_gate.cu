/*
 * kda_gate_bf16: the log decay of each key channel,
 * lower_bound * sigmoid(exp(A_log[h]) (g_raw + dt_bias[h,d])), in [lower_bound, 0]. It stays a
 * logarithm: the recurrence exponentiates it, once.
 *
 * Launch: grid T * H, block 128: a block a head and token, so exp(A_log) is the block's own.
 */
#include "row_sum.cuh"

extern "C" __global__ void __launch_bounds__(128)
    kda_gate_bf16(const __nv_bfloat16 *__restrict__ g_raw, const float *__restrict__ dt_bias,
                  const float *__restrict__ a_log, float *__restrict__ out, unsigned tokens,
                  unsigned heads, unsigned head_dim, float lower_bound)
{
    const unsigned head = blockIdx.x % heads;
    const size_t row = (size_t)blockIdx.x * head_dim;

    if (blockIdx.x / heads >= tokens)
        return;
    const float rate = expf(a_log[head]);
    for (unsigned d = threadIdx.x; d < head_dim; d += blockDim.x) {
        const float raw = __bfloat162float(g_raw[row + d]) + dt_bias[(size_t)head * head_dim + d];
        out[row + d] = lower_bound * sigmoid(rate * raw);
    }
}
