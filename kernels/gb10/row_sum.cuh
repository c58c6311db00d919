/* Sums over the threads of a block, for the row-wise kernels, and the functions they share. */
#ifndef ROW_SUM_CUH
#define ROW_SUM_CUH

#include <cuda_bf16.h>

#define ROW_WARP      32
#define ROW_MAX_WARPS 32

/* The sum over the calling thread's warp, complete in lane 0. Whole warps only. */
__device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (unsigned step = ROW_WARP / 2; step > 0; step /= 2)
        x += __shfl_down_sync(0xffffffffu, x, step);
    return x;
}

/*
 * The sum of x over the threads [threadIdx.x / width * width, + width), in every one of them;
 * `width` and the block are multiples of 32, and every thread of the block takes part. Tree within
 * a warp, then the warps in order. One barrier; call it once a kernel.
 */
__device__ __forceinline__ float row_sum(float x, unsigned width)
{
    __shared__ float warps[ROW_MAX_WARPS];
    const unsigned first = threadIdx.x / width * (width / ROW_WARP);
    float sum = warp_sum(x);

    if (threadIdx.x % ROW_WARP == 0)
        warps[threadIdx.x / ROW_WARP] = sum;
    __syncthreads();
    sum = warps[first];
    for (unsigned w = 1; w < width / ROW_WARP; w++)
        sum += warps[first + w];
    return sum;
}

/* exp(-x) overflows to infinity for x below -88, which gives the exact limit 0 (and -0 for
   silu). */
__device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

__device__ __forceinline__ float silu(float x)
{
    return x / (1.0f + expf(-x));
}

#endif
