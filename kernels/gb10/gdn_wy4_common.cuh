/*
 * Gated delta rule, K=4: arithmetic, operands and shared memory of the kernels of this family.
 *
 * Bits. woa's output must equal the parent's and fold's state the parent's states, bit for bit,
 * though they are three kernels in two modules. Every multiplication and addition that reaches an
 * output or a state is therefore spelled __fmul_rn / __fadd_rn, which no compiler may fuse into
 * one multiply-add: the three kernels agree by construction, whatever nvcc would contract, and
 * agree with the CPU device without -fmad=false. (An explicit fmaf would agree too, but costs a
 * library call per element on a processor without the instruction.) The price is 28 instead of 16
 * arithmetic instructions per state element, hidden behind memory on GB10: 273 GB/s carry 68 G
 * elements/s, and its 48 SMs issue about 14.7 T instructions/s.
 */
#ifndef GDN_WY4_COMMON_CUH
#define GDN_WY4_COMMON_CUH

#include <cuda_bf16.h>

#define GDN_DIM      128 /* k_dim = v_dim = threads of a block */
#define GDN_TOKENS   4
#define GDN_WARPS    4
#define GDN_ROWS     (GDN_DIM / GDN_WARPS) /* state rows of a warp */
#define GDN_BATCH    8                     /* rows in flight a thread in pass 2 */
#define GDN_PAIRS    6                     /* token pairs (i, j) with j < i */
#define GDN_SEGMENTS 16                    /* partial sums of one k_i . k_j */
#define GDN_GATE_MIN 1e-6f
#define GDN_GATE_MAX (1.0f - 1e-6f)
#define GDN_SCALE    0.08838834764831845f /* 1 / sqrt(128) */

__device__ __forceinline__ float gdn_mul(float a, float b)
{
    return __fmul_rn(a, b);
}

__device__ __forceinline__ float gdn_add(float a, float b)
{
    return __fadd_rn(a, b);
}

/* a + b c in two roundings */
__device__ __forceinline__ float gdn_madd(float a, float b, float c)
{
    return gdn_add(a, gdn_mul(b, c));
}

__device__ __forceinline__ float4 gdn_madd4(float4 a, float b, float4 c)
{
    return make_float4(gdn_madd(a.x, b, c.x), gdn_madd(a.y, b, c.y), gdn_madd(a.z, b, c.z),
                       gdn_madd(a.w, b, c.w));
}

/* The update of four columns of one state row by one token: g h + k u. */
__device__ __forceinline__ float4 gdn_advance(float4 h, float g, float k, float4 u)
{
    return gdn_madd4(
        make_float4(gdn_mul(g, h.x), gdn_mul(g, h.y), gdn_mul(g, h.z), gdn_mul(g, h.w)), k, u);
}

/* A decay of exactly 0 or 1, or one outside, is moved inside the open interval; NaN becomes the
   minimum. */
__device__ __forceinline__ float gdn_clamp_gate(float g)
{
    return fminf(fmaxf(g, GDN_GATE_MIN), GDN_GATE_MAX);
}

/* What one block knows about its head. Per-row quantities of the four tokens lie side by side. */
struct gdn_block {
    float4 k[GDN_DIM], q[GDN_DIM];                   /* [row]: tokens 0..3 */
    float4 part[GDN_WARPS][GDN_TOKENS][GDN_DIM / 4]; /* a warp's sums over its rows, per column */
    float4 u[GDN_TOKENS][GDN_DIM / 4];
    float kd[GDN_PAIRS][GDN_SEGMENTS];
    float gate[GDN_TOKENS], beta[GDN_TOKENS];
};

/* The operands of one head of one sequence, in the argument order of the kernels. */
struct gdn_inputs {
    const __nv_bfloat16 *query, *key, *value; /* at token 0 of this head */
    const float *gate, *beta;
    unsigned qk_stride, v_stride, gb_stride; /* elements from token to token */
};

/* Head `vh` of sequence `b` within the packed or sliced rows; row of token t is b * 4 + t. */
__device__ __forceinline__ struct gdn_inputs
gdn_head_inputs(const __nv_bfloat16 *query, const __nv_bfloat16 *key, const __nv_bfloat16 *value,
                const float *gate, const float *beta, unsigned num_k_heads, unsigned num_v_heads,
                unsigned qk_stride, unsigned v_stride, unsigned gb_stride)
{
    const unsigned vh = blockIdx.x, kh = vh / (num_v_heads / num_k_heads);
    const size_t row = (size_t)blockIdx.y * GDN_TOKENS;
    struct gdn_inputs in;

    in.query = query + row * qk_stride + kh * GDN_DIM;
    in.key = key + row * qk_stride + kh * GDN_DIM;
    in.value = value + row * v_stride + vh * GDN_DIM;
    in.gate = gate + row * gb_stride + vh;
    in.beta = beta + row * gb_stride + vh;
    in.qk_stride = qk_stride;
    in.v_stride = v_stride;
    in.gb_stride = gb_stride;
    return in;
}

#endif
