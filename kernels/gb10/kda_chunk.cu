/*
 * The chunked form of the KDA recurrence: C positions at a time instead of one (WY form).
 *
 * kda_chunk_prepare: per chunk and head, in parallel, gc = cumsum(gate), the inverse A of the
 * chunk's unit lower triangular interactions, u = A (beta v) and w = A (beta k exp(gc)).
 * Grid (chunks, H), block 128, dynamic shared (C D + C C + C) floats.
 *
 * kda_chunk_scan: per head, the chunks in order, v' = u - w S, the outputs, the next S.
 * Grid H, block 128, dynamic shared (2 C D + C C) floats.
 *
 * Exponents. Only differences gc_i - gc_j with j <= i, gc_i, and gc_last - gc_i are exponentiated:
 * none is positive, so nothing overflows at any gate, and no anchor inside the chunk is needed.
 * Pad. Only positions < T are touched (kda_chunk_common.cuh), and gc_last is the last of those.
 *
 * Design:
 * - Products in register tiles of 8 rows x 4 columns: 12 vector loads for 128 multiply-adds,
 *   where a thread that owns one column of S needs a load for each.
 * - The inverse goes to the unused upper triangle, transposed, where a column of it is the private
 *   row of one thread: no barrier in the substitution.
 * - Interactions are formed in two halves of the channels: k and gc of a half fit where there is
 *   room for all of k alone, so both come from shared memory.
 */
#include "kda_chunk_common.cuh"

/* gc of the thread's channels, and the chunk's beta in shared memory. */
__device__ __forceinline__ void prepare_sums(const struct chunk &ch, const float *gate,
                                             const float *beta, float *gc, float *b, unsigned heads)
{
    const size_t first = ch.base / ch.row;

    for (unsigned i = threadIdx.x; i < ch.count; i += CHUNK_THREADS)
        b[i] = beta[(first + i) * heads + blockIdx.y];
    for (unsigned d = threadIdx.x; d < ch.head_dim; d += CHUNK_THREADS) {
        float sum = 0.0f;
#pragma unroll 8
        for (unsigned i = 0; i < ch.count; i++) {
            const size_t at = ch.base + i * ch.row + d;
            sum += gate[at];
            gc[at] = sum;
        }
    }
}

/* Work items of decayed_products: a position j and SCORE_ROWS positions i. */
__device__ __forceinline__ unsigned score_count(const struct chunk &ch)
{
    return (ch.count + SCORE_ROWS - 1) / SCORE_ROWS * ch.size;
}

/* a[i * C + j] = -beta_i sum_d k_i k_j exp(gc_i - gc_j) for j < i, in two halves of the
   channels: k and gc of a half fill x. Starts and ends with a barrier. */
__device__ __forceinline__ void prepare_interactions(const struct chunk &ch, const float *k,
                                                     const float *gc, const float *b, float *x,
                                                     float *a)
{
    const unsigned width = ch.head_dim / 2;
    const struct decayed_rows in = {x, x + ch.size * width, width, x, width};

    for (unsigned half = 0; half < 2; half++) {
        __syncthreads();
        chunk_load(x, k, ch, half * width, width);
        chunk_load(x + ch.size * width, gc, ch, half * width, width);
        __syncthreads();
        for (unsigned e = threadIdx.x; e < score_count(ch); e += CHUNK_THREADS) {
            const unsigned first = e / ch.size * SCORE_ROWS, j = e % ch.size;
            float sum[SCORE_ROWS];
            if (j >= min(first + SCORE_ROWS, ch.count))
                continue;
            decayed_products(sum, in, first, ch.count, j);
#pragma unroll
            for (unsigned r = 0; r < SCORE_ROWS; r++) {
                const unsigned i = first + r;
                float *cell = a + i * ch.size + j;
                if (j < i && i < ch.count)
                    *cell = half == 0 ? sum[r] : -b[i] * (*cell + sum[r]);
            }
        }
    }
    __syncthreads();
}

/*
 * The inverse X of (identity - strictly lower a): X[i][j] = a[i][j] + sum_{j<m<i} a[i][m] X[m][j],
 * X[j][j] = 1. Column j is one thread's work and goes to the upper triangle as row j: X[i][j] at
 * a[j * C + i]. All lanes are on the same diagonal at a time, so neither triangle has bank
 * conflicts.
 */
__device__ __forceinline__ void prepare_inverse(const struct chunk &ch, float *a)
{
    for (unsigned j = threadIdx.x; j < ch.count; j += CHUNK_THREADS) {
        float *column = a + j * ch.size + j;

        column[0] = 1.0f;
        for (unsigned s = 1; j + s < ch.count; s++) {
            const float *row = a + (j + s) * ch.size + j;
            float sum = row[0];
            for (unsigned e = 1; e < s; e++)
                sum += row[e] * column[e];
            column[s] = sum;
        }
    }
}

/* x = beta from, or beta from exp(gc) where gc is not null, over the chunk's rows; a warp a row. */
__device__ __forceinline__ void prepare_load(float *x, const float *from, const float *gc,
                                             const float *b, const struct chunk &ch)
{
    for (unsigned i = threadIdx.x / 32; i < ch.count; i += CHUNK_THREADS / 32)
        for (unsigned d = threadIdx.x % 32; d < ch.head_dim; d += 32) {
            const size_t at = ch.base + i * ch.row + d;
            const float scaled = b[i] * from[at];
            x[i * ch.head_dim + d] = gc == nullptr ? scaled : scaled * expf(gc[at]);
        }
}

/* out = X rhs, rhs in x, X transposed in the upper triangle of a. */
__device__ __forceinline__ void prepare_apply(const struct chunk &ch, const float *a,
                                              const float *x, float *out)
{
    for (unsigned index = threadIdx.x; index < tile_count(ch.count, ch.head_dim);
         index += CHUNK_THREADS) {
        struct tile t;

        tile_begin(t, index, ch.head_dim);
        tile_add_transposed<true>(t, a, ch.size, ch.count, x, ch.head_dim, ch.count);
#pragma unroll
        for (unsigned r = 0; r < TILE_ROWS; r++)
            if (t.first + r < ch.count)
                *quad_to(out + ch.base + (t.first + r) * ch.row + t.column) = t.row[r];
    }
}

extern "C" __global__ void __launch_bounds__(CHUNK_THREADS)
    kda_chunk_prepare(const float *__restrict__ k, const float *__restrict__ v,
                      const float *__restrict__ gate, const float *__restrict__ beta, float *gc,
                      float *__restrict__ u, float *__restrict__ w, unsigned heads,
                      unsigned head_dim, unsigned size, unsigned tokens)
{
    extern __shared__ float4 shared[];
    const struct chunk ch = chunk_at(blockIdx.x, blockIdx.y, heads, head_dim, size, tokens);
    float *x = reinterpret_cast<float *>(shared), *a = x + size * head_dim, *b = a + size * size;

    prepare_sums(ch, gate, beta, gc, b, heads);
    prepare_interactions(ch, k, gc, b, x, a);
    prepare_inverse(ch, a);
    prepare_load(x, v, nullptr, b, ch);
    __syncthreads();
    prepare_apply(ch, a, x, u);
    __syncthreads();
    prepare_load(x, k, gc, b, ch);
    __syncthreads();
    prepare_apply(ch, a, x, w);
}

/* p[j * C + i] = scale sum_d q_i k_j exp(gc_i - gc_j) for j <= i; k and gc are in shared memory. */
__device__ __forceinline__ void scan_scores(const struct chunk &ch, const float *q, const float *ks,
                                            const float *gs, float *p, float scale)
{
    const struct decayed_rows in = {q + ch.base, gs, ch.row, ks, ch.head_dim};

    for (unsigned e = threadIdx.x; e < score_count(ch); e += CHUNK_THREADS) {
        const unsigned first = e / ch.size * SCORE_ROWS, j = e % ch.size;
        float sum[SCORE_ROWS];
        if (j >= min(first + SCORE_ROWS, ch.count))
            continue;
        decayed_products(sum, in, first, ch.count, j);
#pragma unroll
        for (unsigned r = 0; r < SCORE_ROWS; r++)
            if (j <= first + r && first + r < ch.count)
                p[j * ch.size + first + r] = scale * sum[r];
    }
}

/* v' = u - w S, with w in shared memory. */
__device__ __forceinline__ void scan_values(const struct chunk &ch, const float *u, const float *ws,
                                            const float *state, float *values)
{
    for (unsigned index = threadIdx.x; index < tile_count(ch.count, ch.head_dim);
         index += CHUNK_THREADS) {
        struct tile t;

        tile_begin(t, index, ch.head_dim);
        tile_add_product(t, ws, ch.head_dim, ch.count, state, ch.head_dim, ch.head_dim);
#pragma unroll
        for (unsigned r = 0; r < TILE_ROWS; r++) {
            const unsigned i = t.first + r;
            if (i < ch.count)
                *quad_to(values + i * ch.head_dim + t.column) =
                    sub4(quad_at(u + ch.base + i * ch.row + t.column), t.row[r]);
        }
    }
}

/* out = qs S + p v', with qs = scale q exp(gc) in shared memory. */
__device__ __forceinline__ void scan_outputs(const struct chunk &ch, const float *qs,
                                             const float *p, const float *state,
                                             const float *values, float *out)
{
    for (unsigned index = threadIdx.x; index < tile_count(ch.count, ch.head_dim);
         index += CHUNK_THREADS) {
        struct tile t;

        tile_begin(t, index, ch.head_dim);
        tile_add_product(t, qs, ch.head_dim, ch.count, state, ch.head_dim, ch.head_dim);
        tile_add_transposed<true>(t, p, ch.size, ch.count, values, ch.head_dim, ch.count);
#pragma unroll
        for (unsigned r = 0; r < TILE_ROWS; r++)
            if (t.first + r < ch.count)
                *quad_to(out + ch.base + (t.first + r) * ch.row + t.column) = t.row[r];
    }
}

/* S = exp(gc_last) S + ks^T v', with ks = k exp(gc_last - gc) in shared memory. */
__device__ __forceinline__ void scan_state(const struct chunk &ch, const float *ks,
                                           const float *gc_last, const float *values, float *state)
{
    for (unsigned index = threadIdx.x; index < tile_count(ch.head_dim, ch.head_dim);
         index += CHUNK_THREADS) {
        struct tile t;

        tile_begin(t, index, ch.head_dim);
#pragma unroll
        for (unsigned r = 0; r < TILE_ROWS; r++)
            t.row[r] = fma4(t.row[r], expf(gc_last[t.first + r]),
                            quad_at(state + (t.first + r) * ch.head_dim + t.column));
        tile_add_transposed<false>(t, ks, ch.head_dim, ch.head_dim, values, ch.head_dim, ch.count);
#pragma unroll
        for (unsigned r = 0; r < TILE_ROWS; r++)
            *quad_to(state + (t.first + r) * ch.head_dim + t.column) = t.row[r];
    }
}

/* to = factor * from * exp(gc), or exp(last - gc) where `last` is not null, over the chunk's
   rows. */
__device__ __forceinline__ void scan_load_decayed(float *to, const float *from, const float *gc,
                                                  const float *last, float factor,
                                                  const struct chunk &ch)
{
    for (unsigned i = threadIdx.x / 32; i < ch.count; i += CHUNK_THREADS / 32)
        for (unsigned d = threadIdx.x % 32; d < ch.head_dim; d += 32) {
            const size_t at = ch.base + i * ch.row + d;
            to[i * ch.head_dim + d] =
                factor * from[at] * expf(last != nullptr ? last[d] - gc[at] : gc[at]);
        }
}

extern "C" __global__ void __launch_bounds__(CHUNK_THREADS)
    kda_chunk_scan(const float *__restrict__ q, const float *__restrict__ k,
                   const float *__restrict__ gc, const float *__restrict__ u,
                   const float *__restrict__ w, float *state, float *__restrict__ out,
                   unsigned heads, unsigned head_dim, unsigned size, unsigned num_chunks,
                   unsigned tokens, float scale)
{
    extern __shared__ float4 shared[];
    float *x = reinterpret_cast<float *>(shared), *y = x + size * head_dim,
          *p = y + size * head_dim;
    float *s = state + (size_t)blockIdx.x * head_dim * head_dim;

    for (unsigned c = 0; c < num_chunks; c++) {
        const struct chunk ch = chunk_at(c, blockIdx.x, heads, head_dim, size, tokens);
        if (ch.count == 0)
            return;
        const float *gc_last = gc + ch.base + (ch.count - 1) * ch.row;

        chunk_load(x, k, ch, 0, head_dim);
        chunk_load(y, gc, ch, 0, head_dim);
        __syncthreads();
        scan_scores(ch, q, x, y, p, scale);
        __syncthreads();
        chunk_load(x, w, ch, 0, head_dim);
        __syncthreads();
        scan_values(ch, u, x, s, y);
        __syncthreads();
        scan_load_decayed(x, q, gc, nullptr, scale, ch);
        __syncthreads();
        scan_outputs(ch, x, p, s, y, out);
        __syncthreads();
        scan_load_decayed(x, k, gc, gc_last, 1.0f, ch);
        __syncthreads();
        scan_state(ch, x, gc_last, y, s);
        __syncthreads();
    }
}
