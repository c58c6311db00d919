// Helpers of a kernel set as somebody else might write it: other names and sums, nothing of ours.
#pragma once
#include <cuda_bf16.h>
#include <stdint.h>

using bf16 = __nv_bfloat16;

__device__ inline float up(bf16 x)
{
    return __bfloat162float(x);
}
__device__ inline bf16 down(float x)
{
    return __float2bfloat16_rn(x);
}

__device__ inline float butterfly(float x)
{
    for (int m = 1; m < 32; m <<= 1)
        x += __shfl_xor_sync(~0u, x, m);
    return x;
}

// Sum over a block of at most 1,024 threads, in every thread; `room` is 32 floats of shared memory.
__device__ inline float all_sum(float x, float *room)
{
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = (blockDim.x + 31) >> 5;
    x = butterfly(x);
    __syncthreads();
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    return butterfly(lane < warps ? room[lane] : 0.0f);
}

// 16 bytes of global memory to shared memory, in the background.
__device__ inline void fetch16(void *shared, const void *global)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
__device__ inline void fetch_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> __device__ inline void fetch_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// D += A B, 16x8x16, bf16 operands, fp32 sums.
__device__ inline void mma16816(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
