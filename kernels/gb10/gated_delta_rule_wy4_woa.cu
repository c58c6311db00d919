/*
 * gated_delta_rule_wy4_woa, _fold, _flag_clear: write on accept. The verify kernel writes no state;
 * it stashes u, the clamped gates and k of its four tokens, and once it is known how many were
 * accepted, fold replays exactly those onto the state: 1 read + 1 write of H instead of the
 * parent's 2 reads + 4 writes.
 *
 * Stash of one sequence (floats): u[4][num_v_heads][v_dim] | g[4][num_v_heads] |
 * k[4][num_k_heads][k_dim], `stash_seq_floats` from sequence to sequence. That stride may be any
 * number, so the stash is only 4-byte aligned and is read and written one float at a time.
 *
 * Design:
 * - The parent's own step with another state policy (gdn_wy4_step.cuh): equal bits by construction,
 *   where a copy of its loops would be equal only as long as nvcc contracted both alike.
 * - H stays in dynamic shared memory between the passes, written and read by the same thread: one
 *   read of device memory, no barrier.
 * - fold is specialised by the number of accepted tokens, so their terms stay in registers.
 *
 * State pointers must be 16-byte aligned. Launch: grid (num_v_heads, batch), block 128; woa 64 KiB
 * of dynamic shared memory. k_dim and v_dim are part of the ABI; the launcher refuses all but 128.
 */
#include "gdn_wy4_step.cuh"

#define HEAD_QUADS ((size_t)GDN_DIM * GDN_DIM / 4)

/* Where the parts of one sequence's stash begin. */
struct stash_parts {
    float *u, *g, *k;
};

__device__ __forceinline__ struct stash_parts stash_of(float *stash, unsigned stash_seq_floats,
                                                       unsigned num_v_heads)
{
    struct stash_parts p;

    p.u = stash + (size_t)blockIdx.y * stash_seq_floats;
    p.g = p.u + (size_t)GDN_TOKENS * num_v_heads * GDN_DIM;
    p.k = p.g + (size_t)GDN_TOKENS * num_v_heads;
    return p;
}

__device__ __forceinline__ float4 *table_head(float *const *table, size_t entry)
{
    return reinterpret_cast<float4 *>(table[entry]) + blockIdx.x * HEAD_QUADS;
}

/* H is read once; the shared copy serves pass 2; updated states go nowhere, their terms to the
   stash. */
struct woa_state {
    const float4 *h;
    float4 *kept;
    float *u; /* this head's row of token 0 */
    size_t u_stride;

    __device__ __forceinline__ float4 first(unsigned row, unsigned quad) const
    {
        const float4 v =
            __ldg(&h[row * (GDN_DIM / 4) + quad]); /* may overtake the stores to `kept` */
        kept[row * (GDN_DIM / 4) + quad] = v;
        return v;
    }
    __device__ __forceinline__ float4 second(unsigned row, unsigned quad) const
    {
        return kept[row * (GDN_DIM / 4) + quad];
    }
    __device__ __forceinline__ void state(unsigned, unsigned, unsigned, float4) const
    {
    }
    __device__ __forceinline__ void terms(unsigned t, float value) const
    {
        u[t * u_stride + threadIdx.x] = value;
    }
};

/* The clamped gates of this head, and k of the key head by the first of the value heads that
   share it. */
__device__ __forceinline__ void stash_gate_and_key(const struct gdn_block &s,
                                                   const struct stash_parts &to,
                                                   unsigned num_k_heads, unsigned num_v_heads)
{
    const unsigned vh = blockIdx.x, group = num_v_heads / num_k_heads, c = threadIdx.x;

    if (c < GDN_TOKENS)
        to.g[c * num_v_heads + vh] = s.gate[c];
    if (vh % group != 0)
        return;
    const float4 k = s.k[c];
    float *row = to.k + (size_t)(vh / group) * GDN_DIM + c;
    const size_t step = (size_t)num_k_heads * GDN_DIM;
    row[0] = k.x;
    row[step] = k.y;
    row[2 * step] = k.z;
    row[3 * step] = k.w;
}

extern "C" __global__ void __launch_bounds__(128, 2) gated_delta_rule_wy4_woa(
    float *const *__restrict__ h_table, const __nv_bfloat16 *__restrict__ query,
    const __nv_bfloat16 *__restrict__ key, const __nv_bfloat16 *__restrict__ value,
    const float *__restrict__ gate, const float *__restrict__ beta,
    __nv_bfloat16 *__restrict__ output, float *__restrict__ stash, unsigned batch_size,
    unsigned num_k_heads, unsigned num_v_heads, unsigned /*k_dim*/, unsigned /*v_dim*/,
    unsigned qk_stride, unsigned v_stride, unsigned gb_stride, unsigned stash_seq_floats,
    unsigned *__restrict__ engaged_flag)
{
    __shared__ struct gdn_block block;
    extern __shared__ float4 kept[];
    struct woa_state io;

    if (blockIdx.y >= batch_size)
        return;
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
        *engaged_flag = 1;
    const struct stash_parts to = stash_of(stash, stash_seq_floats, num_v_heads);
    io.h = table_head(h_table, blockIdx.y);
    io.kept = kept;
    io.u = to.u + (size_t)blockIdx.x * GDN_DIM;
    io.u_stride = (size_t)num_v_heads * GDN_DIM;
    gdn_wy4_step(block,
                 gdn_head_inputs(query, key, value, gate, beta, num_k_heads, num_v_heads, qk_stride,
                                 v_stride, gb_stride),
                 io,
                 output + ((size_t)blockIdx.y * GDN_TOKENS * num_v_heads + blockIdx.x) * GDN_DIM,
                 (size_t)num_v_heads * GDN_DIM);
    stash_gate_and_key(block, to, num_k_heads, num_v_heads);
}

/* Applies tokens 0..COUNT-1 to the thread's quads; `key` holds k of the four tokens per row. */
template <unsigned COUNT>
__device__ __forceinline__ void fold_rows(float4 *h, const float4 *key,
                                          const struct stash_parts &from, unsigned num_v_heads)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *u = from.u + (size_t)blockIdx.x * GDN_DIM + lane * 4;
    const size_t step = (size_t)num_v_heads * GDN_DIM;
    float4 term[GDN_TOKENS];
    float g[GDN_TOKENS];

#pragma unroll
    for (unsigned t = 0; t < COUNT; t++) {
        term[t] = make_float4(u[t * step], u[t * step + 1], u[t * step + 2], u[t * step + 3]);
        g[t] = from.g[t * num_v_heads + blockIdx.x];
    }
    h += (size_t)warp * GDN_ROWS * (GDN_DIM / 4) + lane;
    key += warp * GDN_ROWS;
#pragma unroll 8
    for (unsigned r = 0; r < GDN_ROWS; r++) {
        const float4 k = key[r];
        float4 x = gdn_advance(h[r * (GDN_DIM / 4)], g[0], k.x, term[0]);
        if (COUNT > 1)
            x = gdn_advance(x, g[1], k.y, term[1]);
        if (COUNT > 2)
            x = gdn_advance(x, g[2], k.z, term[2]);
        if (COUNT > 3)
            x = gdn_advance(x, g[3], k.w, term[3]);
        h[r * (GDN_DIM / 4)] = x;
    }
}

__device__ __forceinline__ void fold_stash(float4 *h, float4 *key, const struct stash_parts &from,
                                           unsigned accepted, unsigned num_k_heads,
                                           unsigned num_v_heads)
{
    const unsigned kh = blockIdx.x / (num_v_heads / num_k_heads), c = threadIdx.x;
    const float *k = from.k + (size_t)kh * GDN_DIM + c;
    const size_t step = (size_t)num_k_heads * GDN_DIM;

    key[c] = make_float4(k[0], k[step], k[2 * step], k[3 * step]);
    __syncthreads();
    switch (accepted) {
    case 1:
        fold_rows<1>(h, key, from, num_v_heads);
        break;
    case 2:
        fold_rows<2>(h, key, from, num_v_heads);
        break;
    case 3:
        fold_rows<3>(h, key, from, num_v_heads);
        break;
    default:
        fold_rows<4>(h, key, from, num_v_heads);
        break;
    }
}

/* Copies one head's state; a batch is read before it is written, as the two might overlap for
   all nvcc knows. */
__device__ __forceinline__ void restore_rows(float4 *h, const float4 *saved)
{
    for (unsigned i = threadIdx.x; i < HEAD_QUADS; i += GDN_BATCH * GDN_DIM) {
        float4 rows[GDN_BATCH];

#pragma unroll
        for (unsigned r = 0; r < GDN_BATCH; r++)
            rows[r] = saved[i + r * GDN_DIM];
#pragma unroll
        for (unsigned r = 0; r < GDN_BATCH; r++)
            h[i + r * GDN_DIM] = rows[r];
    }
}

extern "C" __global__ void __launch_bounds__(128)
    gated_delta_rule_wy4_fold(float *const *__restrict__ h_table, float *stash,
                              const unsigned *__restrict__ na_tab, float *const *hi_tables,
                              unsigned slab_entries, const unsigned *__restrict__ engaged_flag,
                              unsigned k_rows, unsigned batch_size, unsigned num_k_heads,
                              unsigned num_v_heads, unsigned /*k_dim*/, unsigned /*v_dim*/,
                              unsigned stash_seq_floats)
{
    __shared__ float4 key[GDN_DIM];
    const unsigned b = blockIdx.y;

    if (b >= batch_size)
        return;
    const unsigned accepted = na_tab[b]; /* the same for the whole block, like the engaged word */
    if (accepted == 0)
        return;
    float4 *h = table_head(h_table, b);
    if (*engaged_flag != 0) {
        fold_stash(h, key, stash_of(stash, stash_seq_floats, num_v_heads), accepted, num_k_heads,
                   num_v_heads);
        return;
    }
    if (accepted >= k_rows)
        return; /* the parent left the state after the last token in H */
    restore_rows(h, table_head(hi_tables, (size_t)(accepted - 1) * slab_entries + b));
}

extern "C" __global__ void __launch_bounds__(32) gated_delta_rule_wy4_flag_clear(unsigned *flag)
{
    if (threadIdx.x == 0)
        *flag = 0;
}
