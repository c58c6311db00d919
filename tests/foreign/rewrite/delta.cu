// The gated delta rule's four kernels in one file. A thread owns a column of the state and walks
// its rows; the token recurrence is run as it stands (no WY form), with two sums a dot product.
#include "toolbox.cuh"

namespace
{
constexpr int N = 128, TOKENS = 4;

struct Shape {
    unsigned nk, nv, qk_stride, v_stride, gb_stride;
};

struct Staged {
    float k[TOKENS][N], q[TOKENS][N];
};

__device__ float dot_column(const float *column, const float *row)
{
    float even = 0.0f, odd = 0.0f;
    for (int r = 0; r < N; r += 2) {
        even += column[r] * row[r];
        odd += column[r + 1] * row[r + 1];
    }
    return even + odd;
}

// Runs the tokens on a column kept by the thread; `seen` is called after each.
template <class Seen>
__device__ void walk(Staged &st, float *column, const bf16 *query, const bf16 *key,
                     const bf16 *value, const float *gate, const float *beta, bf16 *output, Shape s,
                     Seen seen)
{
    const unsigned vh = blockIdx.x, kh = vh * s.nk / s.nv, c = threadIdx.x;
    const size_t first = (size_t)blockIdx.y * TOKENS;
    for (int t = 0; t < TOKENS; t++) {
        st.k[t][c] = up(key[(first + t) * s.qk_stride + kh * N + c]);
        st.q[t][c] = up(query[(first + t) * s.qk_stride + kh * N + c]);
    }
    __syncthreads();
    for (int t = 0; t < TOKENS; t++) {
        const size_t row = first + t;
        const float g = fminf(fmaxf(gate[row * s.gb_stride + vh], 1e-6f), 1.0f - 1e-6f);
        const float v = up(value[row * s.v_stride + (size_t)vh * N + c]);
        const float u = (v - g * dot_column(column, st.k[t])) * beta[row * s.gb_stride + vh];
        for (int r = 0; r < N; r++) {
            const float kept = __fmul_rn(g, column[r]), added = __fmul_rn(st.k[t][r], u);
            column[r] = __fadd_rn(kept, added);
        }
        output[(row * s.nv + vh) * N + c] = down(dot_column(column, st.q[t]) * rsqrtf((float)N));
        seen(t, g, u);
    }
}

__device__ float *state_of(void *p, unsigned table, unsigned nv)
{
    float *base = table ? ((float **)p)[blockIdx.y] : (float *)p + (size_t)blockIdx.y * nv * N * N;
    return base + (size_t)blockIdx.x * N * N + threadIdx.x;
}
} // namespace

extern "C" __global__ void gated_delta_rule_wy4(void *h, const bf16 *q, const bf16 *k,
                                                const bf16 *v, const float *gate, const float *beta,
                                                bf16 *out, void *h0, void *h1, void *h2,
                                                unsigned batch, unsigned nk, unsigned nv, unsigned,
                                                unsigned, unsigned qk_stride, unsigned v_stride,
                                                unsigned gb_stride, unsigned table)
{
    __shared__ Staged st;
    float column[N];
    float *state = state_of(h, table, nv);
    float *after[TOKENS] = {state_of(h0, table, nv), state_of(h1, table, nv),
                            state_of(h2, table, nv), state};
    for (int r = 0; r < N; r++)
        column[r] = state[(size_t)r * N];
    walk(st, column, q, k, v, gate, beta, out, Shape{nk, nv, qk_stride, v_stride, gb_stride},
         [&](int t, float, float) {
             for (int r = 0; r < N; r++)
                 after[t][(size_t)r * N] = column[r];
         });
}

extern "C" __global__ void gated_delta_rule_wy4_woa(float *const *table, const bf16 *q,
                                                    const bf16 *k, const bf16 *v, const float *gate,
                                                    const float *beta, bf16 *out, float *stash,
                                                    unsigned batch, unsigned nk, unsigned nv,
                                                    unsigned, unsigned, unsigned qk_stride,
                                                    unsigned v_stride, unsigned gb_stride,
                                                    unsigned stash_seq_floats, unsigned *flag)
{
    extern __shared__ float4 head[]; // the head's state, fetched in the background
    __shared__ Staged st;
    const unsigned c = threadIdx.x, vh = blockIdx.x, group = nv / nk;
    const float4 *from = (const float4 *)(table[blockIdx.y] + (size_t)vh * N * N);
    for (int i = c; i < N * N / 4; i += N)
        fetch16(&head[i], &from[i]);
    fetch_commit();
    if (c == 0 && vh == nv - 1 && blockIdx.y == batch - 1)
        atomicExch(flag, 1u);
    fetch_wait<0>();
    __syncthreads();
    float column[N];
    for (int r = 0; r < N; r++)
        column[r] = ((float *)head)[r * N + c];
    float *su = stash + (size_t)blockIdx.y * stash_seq_floats, *sg = su + TOKENS * nv * N,
          *sk = sg + TOKENS * nv;
    walk(st, column, q, k, v, gate, beta, out, Shape{nk, nv, qk_stride, v_stride, gb_stride},
         [&](int t, float g, float u) {
             su[((size_t)t * nv + vh) * N + c] = u;
             if (c == 64)
                 sg[t * nv + vh] = g;
             if ((vh + 1) % group == 0) // the last head of the group stashes k
                 sk[((size_t)t * nk + vh / group) * N + c] = st.k[t][c];
         });
}

extern "C" __global__ void gated_delta_rule_wy4_fold(float *const *table, const float *stash,
                                                     const unsigned *na_tab, float *const *hi,
                                                     unsigned slab, const unsigned *flag,
                                                     unsigned k_rows, unsigned batch, unsigned nk,
                                                     unsigned nv, unsigned, unsigned,
                                                     unsigned stash_seq_floats)
{
    const unsigned b = blockIdx.y, vh = blockIdx.x, c = threadIdx.x, na = na_tab[b];
    const size_t head = (size_t)vh * N * N + c;
    float *h = table[b] + head;
    if (na > 0 && *flag) {
        const float *u = stash + (size_t)b * stash_seq_floats, *g = u + TOKENS * nv * N,
                    *k = g + TOKENS * nv;
        for (int r = 0; r < N; r++) {
            float x = h[(size_t)r * N];
            for (unsigned t = 0; t < na; t++) {
                const float kr = k[((size_t)t * nk + vh / (nv / nk)) * N + r];
                const float ut = u[((size_t)t * nv + vh) * N + c];
                x = __fadd_rn(__fmul_rn(g[t * nv + vh], x), __fmul_rn(kr, ut));
            }
            h[(size_t)r * N] = x;
        }
    } else if (na > 0 && na < k_rows) {
        const float *saved = hi[(size_t)(na - 1) * slab + b] + head;
        for (int r = 0; r < N; r++)
            h[(size_t)r * N] = saved[(size_t)r * N];
    }
}

extern "C" __global__ void gated_delta_rule_wy4_flag_clear(unsigned *flag)
{
    if (threadIdx.x == blockDim.x - 1)
        atomicExch(flag, 0u);
}
