/*
 * Memory ceilings: what plain kernels reach when they only read, write or copy, and the launch
 * that does nothing.
 *
 * Each thread moves 16 bytes at a time in a grid-stride loop with four independent loads in
 * flight. The grid is the caller's, who tries several and keeps the fastest. Whatever is read is
 * folded into one word that is stored only when it has one value out of 2^32, so the compiler
 * cannot drop the loads.
 */

#define MAGIC 0x9e3779b9u

static __device__ __forceinline__ unsigned int fold(uint4 v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

extern "C" __global__ void bench_empty()
{
}

/* src: `vectors` times 16 bytes; sink: one word. Also empties the L2 before a cold sample:
   clean lines of src take the place of whatever was there. */
extern "C" __global__ void bench_read(const uint4 *src, unsigned int *sink, unsigned int vectors)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int acc = 0;

    for (; i + 3 * stride < vectors; i += 4 * stride) {
        const uint4 a = src[i], b = src[i + stride], c = src[i + 2 * stride],
                    d = src[i + 3 * stride];
        acc ^= fold(a) ^ fold(b) ^ fold(c) ^ fold(d);
    }
    for (; i < vectors; i += stride)
        acc ^= fold(src[i]);
    if (acc == MAGIC)
        sink[0] = acc;
}

/* The value differs from word to word, so that a memory that compresses constants gains nothing. */
extern "C" __global__ void bench_write(uint4 *dst, unsigned int vectors, unsigned int seed)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += stride) {
        const unsigned int w = ((unsigned int)i + seed) * 2654435761u;
        dst[i] = make_uint4(w, w ^ 0x85ebca6bu, w * 3u, w + 0xc2b2ae35u);
    }
}

extern "C" __global__ void bench_copy(const uint4 *src, uint4 *dst, unsigned int vectors)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; i + 3 * stride < vectors; i += 4 * stride) {
        const uint4 a = src[i], b = src[i + stride], c = src[i + 2 * stride],
                    d = src[i + 3 * stride];
        dst[i] = a;
        dst[i + stride] = b;
        dst[i + 2 * stride] = c;
        dst[i + 3 * stride] = d;
    }
    for (; i < vectors; i += stride)
        dst[i] = src[i];
}

/* `passes` times over a buffer that the L2 holds. Each pass gives a block the part seven parts
   on; 7 and the grid share no factor, so a block meets no part twice within gridDim.x passes,
   and its L1, which is far smaller than all of them, has nothing of what it reads. */
extern "C" __global__ void bench_l2_read(const uint4 *src, unsigned int *sink, unsigned int vectors,
                                         unsigned int passes)
{
    const unsigned int part = vectors / gridDim.x;
    unsigned int acc = 0;

    for (unsigned int p = 0; p < passes; p++) {
        const uint4 *mine = src + (size_t)((blockIdx.x + p * 7u) % gridDim.x) * part;
        unsigned int i = threadIdx.x;

        for (; i + 3 * blockDim.x < part; i += 4 * blockDim.x) {
            const uint4 a = mine[i], b = mine[i + blockDim.x], c = mine[i + 2 * blockDim.x],
                        d = mine[i + 3 * blockDim.x];
            acc ^= fold(a) ^ fold(b) ^ fold(c) ^ fold(d);
        }
        for (; i < part; i += blockDim.x)
            acc ^= fold(mine[i]);
        acc = acc * 5u + p;
    }
    if (acc == MAGIC)
        sink[0] = acc;
}

/*
 * y = A x as an inference engine's decode does it: one warp a row of bf16, fp32 sums. The
 * sentinel's half that GB10's slow state hits (3.3 times slower while copies keep their speed).
 * Grid ceil(rows / (blockDim.x / 32)), block a multiple of 32; cols a multiple of 8.
 */
extern "C" __global__ void bench_gemv(const uint4 *a, const uint4 *x, float *y, unsigned int rows,
                                      unsigned int cols)
{
    const unsigned int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const unsigned int lane = threadIdx.x % 32;
    const unsigned int vectors = cols / 8;
    float sum = 0.0f;

    if (row >= rows)
        return;
    for (unsigned int i = lane; i < vectors; i += 32) {
        const uint4 av = a[(size_t)row * vectors + i], xv = x[i];
        const unsigned int aw[4] = {av.x, av.y, av.z, av.w}, xw[4] = {xv.x, xv.y, xv.z, xv.w};

        for (int j = 0; j < 4; j++) { /* a bf16 is the upper half of an fp32 */
            sum += __uint_as_float(aw[j] << 16) * __uint_as_float(xw[j] << 16);
            sum += __uint_as_float(aw[j] & 0xffff0000u) * __uint_as_float(xw[j] & 0xffff0000u);
        }
    }
    for (unsigned int offset = 16; offset; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0)
        y[row] = sum;
}
