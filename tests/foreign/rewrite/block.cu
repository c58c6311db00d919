// The rest of the KDA block, without the optional kda_recurrent_decode_bf16_smem. A thread owns a
// column of the state throughout; the chunked form solves its triangle column by column, without an
// inverse.
#include "toolbox.cuh"

namespace
{
__device__ float squash(float x)
{
    return 1.0f / (1.0f + __expf(-x));
}

__device__ float window_step(float *w, const bf16 *taps, float bias, float x, unsigned n)
{
    float acc = 0.0f;
    for (unsigned i = 0; i < n; i++) {
        w[i] = i + 1 < n ? w[i + 1] : x;
        acc += w[i] * up(taps[i]);
    }
    acc += bias;
    return acc * squash(acc);
}
} // namespace

extern "C" __global__ void causal_conv1d_update_l2norm(float *state, const bf16 *x,
                                                       const bf16 *weight, const bf16 *bias,
                                                       bf16 *y, unsigned batch, unsigned dim,
                                                       unsigned d_conv, unsigned qk_channels,
                                                       unsigned head_dim, float eps)
{
    __shared__ float room[8];
    const unsigned c = blockIdx.x * 256 + threadIdx.x;
    const size_t at = (size_t)blockIdx.y * dim + c;
    float value = 0.0f;
    if (c < dim)
        value = window_step(state + at * d_conv, weight + c * d_conv, bias ? up(bias[c]) : 0.0f,
                            up(x[at]), d_conv);
    const float part = butterfly(value * value);
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = part;
    __syncthreads();
    if (c < qk_channels) {
        const float *r = room + threadIdx.x / head_dim * (head_dim / 32);
        float sum = eps;
        for (unsigned w = 0; w < head_dim / 32; w++)
            sum += r[w];
        value *= 1.0f / sqrtf(sum);
    }
    if (c < dim)
        y[at] = down(value);
}

extern "C" __global__ void causal_conv1d_update_prefill(float *state, const bf16 *x,
                                                        const bf16 *weight, const bf16 *bias,
                                                        bf16 *y, unsigned dim, unsigned d_conv,
                                                        unsigned tokens, unsigned in_stride,
                                                        unsigned out_stride)
{
    const unsigned c = blockIdx.x * 256 + threadIdx.x;
    for (unsigned t = 0; c < dim && t < tokens; t++)
        y[(size_t)t * out_stride + c] =
            down(window_step(state + (size_t)c * d_conv, weight + c * d_conv,
                             bias ? up(bias[c]) : 0.0f, up(x[(size_t)t * in_stride + c]), d_conv));
}

extern "C" __global__ void l2_norm_bf16(bf16 *data, unsigned head_dim, float eps, unsigned stride)
{
    __shared__ float room[32];
    bf16 *row = data + (size_t)blockIdx.y * stride + blockIdx.x * head_dim;
    float sum = 0.0f;
    for (unsigned d = threadIdx.x; d < head_dim; d += blockDim.x)
        sum += up(row[d]) * up(row[d]);
    sum = all_sum(sum, room);
    for (unsigned d = threadIdx.x; d < head_dim; d += blockDim.x)
        row[d] = down(up(row[d]) * rsqrtf(sum + eps));
}

extern "C" __global__ void kda_gate_bf16(const bf16 *raw, const float *dt_bias, const float *a_log,
                                         float *out, unsigned tokens, unsigned heads,
                                         unsigned head_dim, float lower_bound)
{
    const unsigned h = blockIdx.x % heads;
    for (unsigned d = threadIdx.x; d < head_dim; d += 128) {
        const size_t at = (size_t)blockIdx.x * head_dim + d;
        out[at] = lower_bound /
                  (1.0f + expf(-(expf(a_log[h]) * (up(raw[at]) + dt_bias[h * head_dim + d]))));
    }
}

extern "C" __global__ void kda_o_norm_gated_bf16(const float *x, const bf16 *gate,
                                                 const bf16 *weight, bf16 *out, unsigned head_dim,
                                                 float eps)
{
    __shared__ float room[32];
    const size_t at = (size_t)blockIdx.x * head_dim + threadIdx.x;
    const float mean = all_sum(x[at] * x[at], room) * (1.0f / head_dim);
    out[at] =
        down(x[at] * rsqrtf(mean + eps) * up(weight[threadIdx.x]) / (1.0f + expf(-up(gate[at]))));
}

extern "C" __global__ void kda_sigmoid_bf16_f32(const bf16 *src, float *dst, unsigned n)
{
    const unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        dst[i] = 1.0f / (1.0f + expf(-up(src[i])));
}

extern "C" __global__ void kda_fill_f32(float *dst, unsigned n, float value)
{
    const unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        dst[i] = value;
}

extern "C" __global__ void kda_split_widen(const bf16 *src, float *q, float *k, float *v,
                                           unsigned tokens, unsigned qkv)
{
    float *const to[3] = {q, k, v};
    const unsigned c = blockIdx.x * 256 + threadIdx.x, t = blockIdx.y;
    for (unsigned part = 0; c < qkv && part < 3; part++)
        to[part][(size_t)t * qkv + c] = up(src[((size_t)t * 3 + part) * qkv + c]);
}

extern "C" __global__ void kda_pack_qkv_bf16(const bf16 *q, const bf16 *k, const bf16 *v, bf16 *dst,
                                             unsigned tokens, unsigned qkv)
{
    const bf16 *const from[3] = {q, k, v};
    const unsigned c = blockIdx.x * 256 + threadIdx.x, t = blockIdx.y;
    for (unsigned part = 0; c < qkv && part < 3; part++)
        dst[((size_t)t * 3 + part) * qkv + c] = from[part][(size_t)t * qkv + c];
}

extern "C" __global__ void kda_recurrent_decode_bf16(const bf16 *q, const bf16 *k, const bf16 *v,
                                                     const float *gate, const float *beta,
                                                     float *state, float *out, unsigned heads,
                                                     unsigned head_dim, float scale)
{
    const size_t row = (size_t)blockIdx.x * head_dim;
    for (unsigned c = threadIdx.x; c < head_dim; c += blockDim.x) {
        float *s = state + row * head_dim + c;
        float seen = 0.0f, result = 0.0f;
        for (unsigned d = 0; d < head_dim; d++) { // decays in place, then reads it back
            s[(size_t)d * head_dim] *= expf(gate[row + d]);
            seen += s[(size_t)d * head_dim] * up(k[row + d]);
        }
        const float delta = (up(v[row + c]) - seen) * beta[blockIdx.x];
        for (unsigned d = head_dim; d-- > 0;) {
            s[(size_t)d * head_dim] += up(k[row + d]) * delta;
            result += s[(size_t)d * head_dim] * up(q[row + d]);
        }
        out[row + c] = result * scale;
    }
}

extern "C" __global__ void kda_chunk_prepare(const float *k, const float *v, const float *gate,
                                             const float *beta, float *gc, float *u, float *w,
                                             unsigned heads, unsigned dim, unsigned size,
                                             unsigned tokens)
{
    extern __shared__ float a[]; // [size][size]
    const unsigned first = blockIdx.x * size, n = min(size, tokens - first);
    const size_t pitch = (size_t)heads * dim, at = first * pitch + blockIdx.y * dim;
    for (unsigned d = threadIdx.x; d < dim; d += 128)
        for (unsigned i = 0; i < n; i++)
            gc[at + i * pitch + d] =
                gate[at + i * pitch + d] + (i ? gc[at + (i - 1) * pitch + d] : 0.0f);
    __syncthreads();
    for (unsigned e = threadIdx.x; e < n * n; e += 128) {
        const unsigned i = e / n, j = e % n;
        float sum = 0.0f;
        for (unsigned d = 0; j < i && d < dim; d++)
            sum += k[at + i * pitch + d] * k[at + j * pitch + d] *
                   expf(gc[at + i * pitch + d] - gc[at + j * pitch + d]);
        a[i * size + j] = -beta[(first + i) * heads + blockIdx.y] * sum;
    }
    __syncthreads();
    for (unsigned d = threadIdx.x; d < dim; d += 128)
        for (unsigned i = 0; i < n; i++) {
            const size_t here = at + i * pitch + d;
            const float b = beta[(first + i) * heads + blockIdx.y];
            float x = b * v[here], y = b * k[here] * expf(gc[here]);
            for (unsigned j = 0; j < i; j++) {
                x += a[i * size + j] * u[at + j * pitch + d];
                y += a[i * size + j] * w[at + j * pitch + d];
            }
            u[here] = x;
            w[here] = y;
        }
}

extern "C" __global__ void kda_chunk_scan(const float *q, const float *k, const float *gc,
                                          const float *u, const float *w, float *state, float *out,
                                          unsigned heads, unsigned dim, unsigned size,
                                          unsigned chunks, unsigned tokens, float scale)
{
    extern __shared__ float x[]; // v' [size][dim], then P [size][size]
    float *p = x + size * dim, *s = state + (size_t)blockIdx.x * dim * dim;
    const size_t pitch = (size_t)heads * dim;
    for (unsigned first = 0; first < tokens; first += size) {
        const unsigned n = min(size, tokens - first);
        const size_t at = first * pitch + blockIdx.x * dim, last = at + (n - 1) * pitch;
        for (unsigned e = threadIdx.x; e < n * n; e += 128) {
            const unsigned i = e / n, j = e % n;
            float sum = 0.0f;
            for (unsigned d = 0; j <= i && d < dim; d++)
                sum += q[at + i * pitch + d] * k[at + j * pitch + d] *
                       expf(gc[at + i * pitch + d] - gc[at + j * pitch + d]);
            p[i * size + j] = sum;
        }
        __syncthreads();
        for (unsigned c = threadIdx.x; c < dim; c += 128) {
            for (unsigned i = 0; i < n; i++) {
                float seen = 0.0f, o = 0.0f;
                for (unsigned d = 0; d < dim; d++) {
                    seen += w[at + i * pitch + d] * s[d * dim + c];
                    o += q[at + i * pitch + d] * expf(gc[at + i * pitch + d]) * s[d * dim + c];
                }
                x[i * dim + c] = u[at + i * pitch + c] - seen;
                for (unsigned j = 0; j <= i; j++)
                    o += p[i * size + j] * x[j * dim + c];
                out[at + i * pitch + c] = scale * o;
            }
            for (unsigned d = 0; d < dim; d++) {
                float sum = s[d * dim + c] * expf(gc[last + d]);
                for (unsigned i = 0; i < n; i++)
                    sum += k[at + i * pitch + d] * expf(gc[last + d] - gc[at + i * pitch + d]) *
                           x[i * dim + c];
                s[d * dim + c] = sum;
            }
        }
        __syncthreads();
    }
}
