/* Inline PTX. */
#include <cuda_pipeline.h>

__device__ __forceinline__ void mma_bf16(float *d, const unsigned *a, const unsigned *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* a [16][16] row-major, b [8][16] (column n of B is row n), d [16][8] */
extern "C" __global__ void mma16816(const unsigned *a, const unsigned *b, float *d)
{
    const unsigned lane = threadIdx.x, g = lane / 4, t = lane % 4;
    unsigned ar[4] = {a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4]};
    unsigned br[2] = {b[g * 8 + t], b[g * 8 + t + 4]};
    float acc[4] = {1.0f, 1.0f, 1.0f, 1.0f};

    mma_bf16(acc, ar, br);
    d[g * 8 + t * 2] = acc[0];
    d[g * 8 + t * 2 + 1] = acc[1];
    d[(g + 8) * 8 + t * 2] = acc[2];
    d[(g + 8) * 8 + t * 2 + 1] = acc[3];
}

/* a [16][8], b [8][8] fp32 with tf32 values */
extern "C" __global__ void mma1688(const float *a, const float *b, float *d)
{
    const unsigned lane = threadIdx.x, g = lane / 4, t = lane % 4;
    unsigned a0 = __float_as_uint(a[g * 8 + t]), a1 = __float_as_uint(a[(g + 8) * 8 + t]);
    unsigned a2 = __float_as_uint(a[g * 8 + t + 4]), a3 = __float_as_uint(a[(g + 8) * 8 + t + 4]);
    unsigned b0 = __float_as_uint(b[t * 8 + g]), b1 = __float_as_uint(b[(t + 4) * 8 + g]);
    float c0 = 0, c1 = 0, c2 = 0, c3 = 0;

    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[g * 8 + t * 2]), "=f"(d[g * 8 + t * 2 + 1]), "=f"(d[(g + 8) * 8 + t * 2]),
          "=f"(d[(g + 8) * 8 + t * 2 + 1])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}

/* ldmatrix of two 8 x 8 matrices, plain and transposed: out[lane][4] */
extern "C" __global__ void matrices(const unsigned short *in, unsigned *out)
{
    __shared__ __align__(16) unsigned short s[2][8][8];
    const unsigned lane = threadIdx.x;

    for (unsigned i = lane; i < 128; i += 32)
        (&s[0][0][0])[i] = in[i];
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[lane / 8 % 2][lane % 8][0]);
    unsigned x, y, z, w;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(x), "=r"(y) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(z), "=r"(w) : "r"(at));
    out[lane * 4] = x;
    out[lane * 4 + 1] = y;
    out[lane * 4 + 2] = z;
    out[lane * 4 + 3] = w;
}

/* cp.async: PENDING 0 waits for the copy, 1 is off by one and reads too early. */
template <int PENDING> __device__ void stages(const float4 *in, float4 *out)
{
    extern __shared__ float4 s[];
    const unsigned t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[t]);

    s[t] = make_float4(-1, -1, -1, -1);
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" ::"r"(to), "l"(in + t), "n"(16));
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
    __syncthreads();
    out[t] = s[blockDim.x - 1 - t];
}
extern "C" __global__ void stages_right(const float4 *in, float4 *out) { stages<0>(in, out); }
extern "C" __global__ void stages_late(const float4 *in, float4 *out) { stages<1>(in, out); }

/* The pipeline primitives, with zero filling: the last 4 bytes of 16 become 0. */
extern "C" __global__ void pipeline(const float4 *in, float4 *out)
{
    __shared__ float4 s[32];

    __pipeline_memcpy_async(&s[threadIdx.x], in + threadIdx.x, 16, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x];
}

/* Declared registers, predicates, special registers, two instructions in one statement. */
extern "C" __global__ void scalars(const unsigned *in, unsigned *out)
{
    unsigned lane, doubled, chosen = 0;

    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("{\n\t.reg .u32 t;\n\tadd.u32 t, %1, %1;\n\tmov.u32 %0, t;\n\t}"
        : "=r"(doubled) : "r"(in[lane]));
    asm("{ .reg .pred p; setp.ne.b32 p, %1, 0; @p mov.u32 %0, 7; @!p mov.u32 %0, 9; }"
        : "=r"(chosen) : "r"(lane % 2));
    out[lane] = doubled * 16 + chosen;
}
