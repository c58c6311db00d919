/*
 * What kda_chunk_prepare and kda_chunk_scan share: the position of a chunk, and two block-wide
 * loops, each over tiles of 8 rows by 4 columns that a thread holds in registers.
 *
 * Buffers are fp32 [T_pad, H, D]. Only the n = min(C, T - first) positions of a chunk that exist
 * are read or written; nothing is ever loaded from the pad, so its contents (NaN included) cannot
 * matter. Rows are read four floats at a time: D % 4 == 0 and 16-byte aligned buffers, which the
 * launcher checks.
 */
#ifndef KDA_CHUNK_COMMON_CUH
#define KDA_CHUNK_COMMON_CUH

#include <cuda_bf16.h>

#define CHUNK_THREADS 128
#define TILE_ROWS     8
#define TILE_COLUMNS  4
#define SCORE_ROWS    4 /* rows whose products with one k are formed together */

struct chunk {
    unsigned head_dim; /* D, also the pitch of a [C, D] buffer in shared memory */
    unsigned size;     /* C */
    unsigned count;    /* n: positions that exist */
    size_t row;        /* elements from a position to the next: H * D */
    size_t base;       /* element of position 0, this head, channel 0 */
};

__device__ __forceinline__ struct chunk chunk_at(unsigned index, unsigned head, unsigned heads,
                                                 unsigned head_dim, unsigned size, unsigned tokens)
{
    const unsigned first = index * size;
    struct chunk ch;

    ch.head_dim = head_dim;
    ch.size = size;
    ch.count = first >= tokens ? 0 : min(size, tokens - first);
    ch.row = (size_t)heads * head_dim;
    ch.base = first * ch.row + (size_t)head * head_dim;
    return ch;
}

__device__ __forceinline__ float4 fma4(float4 acc, float a, float4 b)
{
    return make_float4(acc.x + a * b.x, acc.y + a * b.y, acc.z + a * b.z, acc.w + a * b.w);
}

__device__ __forceinline__ float4 quad_at(const float *p)
{
    return *reinterpret_cast<const float4 *>(p);
}

__device__ __forceinline__ float4 *quad_to(float *p)
{
    return reinterpret_cast<float4 *>(p);
}

__device__ __forceinline__ float4 sub4(float4 a, float4 b)
{
    return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
}

/* A tile of the calling thread; rows past the end are computed on row 0 and not stored. */
struct tile {
    float4 row[TILE_ROWS];
    unsigned first, column; /* row and column of its corner */
};

__device__ __forceinline__ unsigned tile_count(unsigned rows, unsigned columns)
{
    return (rows + TILE_ROWS - 1) / TILE_ROWS * (columns / TILE_COLUMNS);
}

__device__ __forceinline__ void tile_begin(struct tile &t, unsigned index, unsigned columns)
{
    t.first = index / (columns / TILE_COLUMNS) * TILE_ROWS;
    t.column = index % (columns / TILE_COLUMNS) * TILE_COLUMNS;
#pragma unroll
    for (unsigned r = 0; r < TILE_ROWS; r++)
        t.row[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

/* t += L R over `depth` columns of L [rows, pitch] (shared, row-major) and rows of R. depth % 4
   == 0. */
__device__ __forceinline__ void tile_add_product(struct tile &t, const float *left, unsigned pitch,
                                                 unsigned rows, const float *right,
                                                 size_t right_pitch, unsigned depth)
{
    right += t.column;
#pragma unroll 4
    for (unsigned d = 0; d < depth; d += 4) {
        const float4 b0 = quad_at(right + d * right_pitch);
        const float4 b1 = quad_at(right + (d + 1) * right_pitch);
        const float4 b2 = quad_at(right + (d + 2) * right_pitch);
        const float4 b3 = quad_at(right + (d + 3) * right_pitch);
#pragma unroll
        for (unsigned r = 0; r < TILE_ROWS; r++) {
            const unsigned i = t.first + r < rows ? t.first + r : 0;
            const float4 a = quad_at(left + (size_t)i * pitch + d);
            t.row[r] = fma4(fma4(fma4(fma4(t.row[r], a.x, b0), a.y, b1), a.z, b2), a.w, b3);
        }
    }
}

/* t += L R where L is given transposed, left[j * pitch + i] = L[i][j], and R [depth,
   right_pitch] shared. LOWER: only the part j <= i of L counts, the rest of the array is
   something else. */
template <bool LOWER>
__device__ __forceinline__ void
tile_add_transposed(struct tile &t, const float *left, unsigned pitch, unsigned rows,
                    const float *right, unsigned right_pitch, unsigned depth)
{
    const unsigned end = LOWER ? min(depth, t.first + TILE_ROWS) : depth;

    right += t.column;
#pragma unroll 4
    for (unsigned j = 0; j < end; j++) {
        const float4 b = quad_at(right + j * right_pitch);
#pragma unroll
        for (unsigned r = 0; r < TILE_ROWS; r++) {
            const unsigned i = t.first + r;
            const bool counts = i < rows && (!LOWER || j <= i);
            t.row[r] = fma4(t.row[r], counts ? left[j * pitch + i] : 0.0f, b);
        }
    }
}

/* Copies the chunk's rows of channels [first, first + width) to shared memory, `width` floats a
   row: a warp a row, without a division to find it. */
__device__ __forceinline__ void chunk_load(float *to, const float *from, const struct chunk &ch,
                                           unsigned first, unsigned width)
{
    for (unsigned i = threadIdx.x / 32; i < ch.count; i += CHUNK_THREADS / 32)
        for (unsigned d = threadIdx.x % 32; d < width; d += 32)
            to[i * width + d] = from[ch.base + i * ch.row + first + d];
}

/* The rows of decayed_products, of `pitch` floats each. */
struct decayed_rows {
    const float *left, *gc; /* row i at left + i * left_pitch, gc + i * pitch */
    size_t left_pitch;
    const float *k; /* row j at k + j * pitch */
    unsigned pitch;
};

/*
 * sum[r] = sum_d left_i[d] k_j[d] exp(gc_i[d] - gc_j[d]) over the channels of a row, for i = first
 * + r, of which those with j <= i < count are wanted: four at a time, for four independent chains
 * of exponentials. gc falls along the chunk, so for those the exponent is never positive: a strong
 * gate underflows to its exact limit 0 where exp(-gc_j) alone would overflow. Lanes differ in j;
 * each starts at another channel, so that they meet in 32 different banks.
 */
__device__ __forceinline__ void decayed_products(float sum[SCORE_ROWS],
                                                 const struct decayed_rows &in, unsigned first,
                                                 unsigned count, unsigned j)
{
    const float *kj = in.k + j * in.pitch, *gj = in.gc + j * in.pitch;
    const float *left[SCORE_ROWS], *gc[SCORE_ROWS];
    unsigned d = j % in.pitch;

#pragma unroll
    for (unsigned r = 0; r < SCORE_ROWS; r++) {
        const unsigned i = min(first + r, count - 1);
        left[r] = in.left + i * in.left_pitch;
        gc[r] = in.gc + i * in.pitch;
        sum[r] = 0.0f;
    }
#pragma unroll 2
    for (unsigned e = 0; e < in.pitch; e++) {
        const float k = kj[d], g = gj[d];
#pragma unroll
        for (unsigned r = 0; r < SCORE_ROWS; r++)
            sum[r] += left[r][d] * k * expf(gc[r][d] - g);
        d = d + 1 == in.pitch ? 0 : d + 1;
    }
}

#endif
