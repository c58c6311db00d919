/*
 * Arithmetic ceilings. Every thread (or warp) runs CHAINS independent chains, enough to cover the
 * latency of the unit, `rounds` times; operands come from the launch so that nothing is known at
 * compile time. The mma kernels use mma.sync, which is what sm_121 offers (it has no wgmma and no
 * tcgen05), so on Hopper they stay below the rate of its own wgmma instructions, which no kernel
 * of this project uses.
 */
#define CHAINS 16

/* 2 * CHAINS flops a round and thread. `a` slightly below 1 keeps the values finite. */
extern "C" __global__ void bench_ffma(float *sink, float a, float b, unsigned int rounds)
{
    float x[CHAINS];

#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        x[c] = (float)(threadIdx.x + c);
    for (unsigned int r = 0; r < rounds; r++)
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            x[c] = fmaf(x[c], a, b);
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    if (sum == 1.2345678e30f)
        sink[0] = sum;
}

/* The same flops with the product rounded on its own: what code without contraction can reach. */
extern "C" __global__ void bench_unfused(float *sink, float a, float b, unsigned int rounds)
{
    float x[CHAINS];

#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        x[c] = (float)(threadIdx.x + c);
    for (unsigned int r = 0; r < rounds; r++)
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            x[c] = __fadd_rn(__fmul_rn(x[c], a), b);
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    if (sum == 1.2345678e30f)
        sink[0] = sum;
}

#define TILES 8 /* independent accumulator tiles a warp */

/* Two bf16 (or one tf32) of magnitude 1 to 2 with mixed signs and mantissas: the products
   partly cancel, and the multipliers see data, not constants. */
static __device__ __forceinline__ unsigned int bf16_pair(unsigned int seed)
{
    return (seed * 2654435761u & 0x807f807fu) | 0x3f803f80u;
}

static __device__ __forceinline__ unsigned int tf32_word(unsigned int seed)
{
    return (seed * 2654435761u & 0x807fe000u) | 0x3f800000u;
}

/* 16 * 8 * 16 * 2 flops a tile, round and warp. */
extern "C" __global__ void bench_bf16_mma(float *sink, unsigned int seed, unsigned int rounds)
{
    unsigned int a[4], b[2];
    float d[TILES][4] = {};

    for (int i = 0; i < 4; i++)
        a[i] = bf16_pair(seed + 4 * threadIdx.x + i);
    for (int i = 0; i < 2; i++)
        b[i] = bf16_pair(seed + 7 * threadIdx.x + 1000 + i);
    for (unsigned int r = 0; r < rounds; r++)
#pragma unroll
        for (int t = 0; t < TILES; t++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(d[t][0]), "+f"(d[t][1]), "+f"(d[t][2]), "+f"(d[t][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < TILES; t++)
        sum += d[t][0] + d[t][1] + d[t][2] + d[t][3];
    if (sum == 1.2345678e30f)
        sink[0] = sum;
}

/* 16 * 8 * 8 * 2 flops a tile, round and warp. */
extern "C" __global__ void bench_tf32_mma(float *sink, unsigned int seed, unsigned int rounds)
{
    unsigned int a[4], b[2];
    float d[TILES][4] = {};

    for (int i = 0; i < 4; i++)
        a[i] = tf32_word(seed + 4 * threadIdx.x + i);
    for (int i = 0; i < 2; i++)
        b[i] = tf32_word(seed + 7 * threadIdx.x + 1000 + i);
    for (unsigned int r = 0; r < rounds; r++)
#pragma unroll
        for (int t = 0; t < TILES; t++)
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(d[t][0]), "+f"(d[t][1]), "+f"(d[t][2]), "+f"(d[t][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < TILES; t++)
        sum += d[t][0] + d[t][1] + d[t][2] + d[t][3];
    if (sum == 1.2345678e30f)
        sink[0] = sum;
}
