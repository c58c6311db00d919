/*
 * Depthwise causal convolution of window d_conv <= 4, then silu:
 * y = silu(bias + sum_i window[i] weight[i]), the last tap on the newest input. conv_state is the
 * window in fp32, newest last.
 *
 * causal_conv1d_update_l2norm: one token of `batch` sequences. Channels below qk_channels are
 * divided by sqrt(sum over the head of y^2 + l2_eps), with y not yet rounded to bf16. Grid
 * (ceil(dim, 256), batch). qk_channels % 256 == 0, so a block is normalised as a whole or not at
 * all, and its barrier is met by all of it.
 *
 * causal_conv1d_update_prefill: seq_len tokens of one sequence, silu only. Grid ceil(dim, 256). A
 * thread walks its channel alone, so it reads 16 tokens ahead; otherwise every token would wait
 * for the memory latency of the one before.
 *
 * Block 256, one channel a thread; its window stays in registers.
 */
#include "row_sum.cuh"

#define CONV_THREADS    256
#define CONV_MAX_WINDOW 4
#define CONV_AHEAD      16 /* tokens loaded before they are used */

/* A channel's window and taps, right-aligned: index 3 is the newest; what d_conv < 4 leaves out
   is zero. */
struct conv_channel {
    float window[CONV_MAX_WINDOW], tap[CONV_MAX_WINDOW], bias;
};

__device__ __forceinline__ struct conv_channel conv_load(const float *state,
                                                         const __nv_bfloat16 *weight,
                                                         const __nv_bfloat16 *bias,
                                                         unsigned channel, unsigned d_conv)
{
    struct conv_channel ch;

#pragma unroll
    for (unsigned i = 0; i < CONV_MAX_WINDOW; i++) {
        const unsigned back = CONV_MAX_WINDOW - i; /* 1 is the newest */
        const bool used = back <= d_conv;
        ch.window[i] = used ? state[d_conv - back] : 0.0f;
        ch.tap[i] =
            used ? __bfloat162float(weight[(size_t)channel * d_conv + d_conv - back]) : 0.0f;
    }
    ch.bias = bias != nullptr ? __bfloat162float(bias[channel]) : 0.0f;
    return ch;
}

/* Shifts the used part of the window by one, puts `x` last and returns silu of the convolution. */
__device__ __forceinline__ float conv_step(struct conv_channel &ch, float x, unsigned d_conv)
{
    float acc = ch.bias;

#pragma unroll
    for (unsigned i = 0; i < CONV_MAX_WINDOW; i++) {
        const float next = i + 1 < CONV_MAX_WINDOW ? ch.window[(i + 1) % CONV_MAX_WINDOW] : x;
        if (CONV_MAX_WINDOW - i <= d_conv) {
            ch.window[i] = next;
            acc += next * ch.tap[i];
        }
    }
    return silu(acc);
}

__device__ __forceinline__ void conv_store(const struct conv_channel &ch, float *state,
                                           unsigned d_conv)
{
#pragma unroll
    for (unsigned back = 1; back <= CONV_MAX_WINDOW; back++)
        if (back <= d_conv)
            state[d_conv - back] = ch.window[CONV_MAX_WINDOW - back];
}

extern "C" __global__ void __launch_bounds__(CONV_THREADS)
    causal_conv1d_update_l2norm(float *__restrict__ conv_state, const __nv_bfloat16 *__restrict__ x,
                                const __nv_bfloat16 *__restrict__ weight,
                                const __nv_bfloat16 *__restrict__ bias,
                                __nv_bfloat16 *__restrict__ y, unsigned batch, unsigned dim,
                                unsigned d_conv, unsigned qk_channels, unsigned head_dim,
                                float l2_eps)
{
    const unsigned channel = blockIdx.x * CONV_THREADS + threadIdx.x;
    const size_t at = (size_t)blockIdx.y * dim + channel;
    const bool inside = channel < dim && blockIdx.y < batch;
    float value = 0.0f;

    if (inside) {
        float *state = conv_state + at * d_conv;
        struct conv_channel ch = conv_load(state, weight, bias, channel, d_conv);
        value = conv_step(ch, __bfloat162float(x[at]), d_conv);
        conv_store(ch, state, d_conv);
    }
    if (blockIdx.x * CONV_THREADS < qk_channels)
        value = value / sqrtf(row_sum(value * value, head_dim) + l2_eps);
    if (inside)
        y[at] = __float2bfloat16(value);
}

extern "C" __global__ void __launch_bounds__(CONV_THREADS)
    causal_conv1d_update_prefill(float *__restrict__ conv_state,
                                 const __nv_bfloat16 *__restrict__ x,
                                 const __nv_bfloat16 *__restrict__ weight,
                                 const __nv_bfloat16 *__restrict__ bias,
                                 __nv_bfloat16 *__restrict__ y, unsigned dim, unsigned d_conv,
                                 unsigned seq_len, unsigned in_stride, unsigned out_stride)
{
    const unsigned channel = blockIdx.x * CONV_THREADS + threadIdx.x;

    if (channel >= dim)
        return;
    float *state = conv_state + (size_t)channel * d_conv;
    struct conv_channel ch = conv_load(state, weight, bias, channel, d_conv);
    for (unsigned t0 = 0; t0 < seq_len; t0 += CONV_AHEAD) {
        float input[CONV_AHEAD];

#pragma unroll
        for (unsigned i = 0; i < CONV_AHEAD; i++)
            input[i] = t0 + i < seq_len
                           ? __bfloat162float(x[(size_t)(t0 + i) * in_stride + channel])
                           : 0.0f;
#pragma unroll
        for (unsigned i = 0; i < CONV_AHEAD; i++)
            if (t0 + i < seq_len)
                y[(size_t)(t0 + i) * out_stride + channel] =
                    __float2bfloat16(conv_step(ch, input[i], d_conv));
    }
    conv_store(ch, state, d_conv);
}
