/*
 * Gated delta rule, four tokens at once (WY form): the device code that the parent kernel and its
 * write-on-accept form share. Per value head, H the state [k][v], per token t:
 *
 *     u_t = (v_t - g_t H^T k_t) beta_t      H = g_t H + k_t u_t^T      o_t = H^T q_t / sqrt(k_dim)
 *
 * Pass 1 over H forms hk_t = H^T k_t for all four tokens, from which u_0..u_3 follow with the
 * products k_i . k_j; pass 2 applies the four updates and forms the outputs.
 *
 * Mapping, block of 128: lane l of warp w owns columns 4l..4l+3 of rows 32w..32w+31, so a warp
 * reads one state row of 512 bytes with one 16-byte load a lane, and the arithmetic comes in
 * fours, which a host compiler turns into vector instructions. Sums over k are 32 rows in order
 * within a warp, then (warp 0 + warp 1) + (warp 2 + warp 3). Between passes a thread is the owner
 * of one column. Four barriers a block, no warp operation.
 */
#ifndef GDN_WY4_STEP_CUH
#define GDN_WY4_STEP_CUH

#include "gdn_wy4_common.cuh"

__device__ __forceinline__ void gdn_load(struct gdn_block &s, const struct gdn_inputs &in)
{
    const unsigned c = threadIdx.x;
    const __nv_bfloat16 *k = in.key + c, *q = in.query + c;
    const size_t step = in.qk_stride;

    s.k[c] = make_float4(__bfloat162float(k[0]), __bfloat162float(k[step]),
                         __bfloat162float(k[2 * step]), __bfloat162float(k[3 * step]));
    s.q[c] = make_float4(__bfloat162float(q[0]), __bfloat162float(q[step]),
                         __bfloat162float(q[2 * step]), __bfloat162float(q[3 * step]));
    if (c < GDN_TOKENS) {
        s.gate[c] = gdn_clamp_gate(in.gate[(size_t)c * in.gb_stride]);
        s.beta[c] = in.beta[(size_t)c * in.gb_stride];
    }
}

/* Sixteenths of the six k_i . k_j: 96 threads take eight rows each. Pair p is (1,0) (2,0) (2,1)
   (3,0) (3,1) (3,2). */
__device__ __forceinline__ void gdn_key_products(struct gdn_block &s)
{
    const unsigned segment = threadIdx.x % GDN_SEGMENTS, pair = threadIdx.x / GDN_SEGMENTS;
    const float *k = reinterpret_cast<const float *>(s.k);
    float sum = 0.0f;

    if (pair >= GDN_PAIRS)
        return;
    const unsigned i = pair < 1 ? 1 : pair < 3 ? 2 : 3, j = pair - i * (i - 1) / 2;
    for (unsigned r = segment; r < GDN_DIM; r += GDN_SEGMENTS)
        sum = gdn_madd(sum, k[r * GDN_TOKENS + i], k[r * GDN_TOKENS + j]);
    s.kd[pair][segment] = sum;
}

__device__ __forceinline__ float gdn_key_product(const struct gdn_block &s, unsigned pair)
{
    float sum = s.kd[pair][0];

#pragma unroll
    for (unsigned i = 1; i < GDN_SEGMENTS; i++)
        sum = gdn_add(sum, s.kd[pair][i]);
    return sum;
}

/* The four warps' sums of token t for the calling thread's column. */
__device__ __forceinline__ float gdn_column_sum(const struct gdn_block &s, unsigned t)
{
    const float *part = reinterpret_cast<const float *>(s.part) + t * GDN_DIM + threadIdx.x;
    const unsigned warp = GDN_TOKENS * GDN_DIM;

    return gdn_add(gdn_add(part[0], part[warp]), gdn_add(part[2 * warp], part[3 * warp]));
}

/* Pass 1: hk_t = H^T k_t over the warp's rows. `io` sees every row once and may keep it. */
template <class Io> __device__ __forceinline__ void gdn_project(struct gdn_block &s, Io &io)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float4 a0 = make_float4(0, 0, 0, 0), a1 = a0, a2 = a0, a3 = a0;

#pragma unroll 8
    for (unsigned r = warp * GDN_ROWS; r < (warp + 1) * GDN_ROWS; r++) {
        const float4 h = io.first(r, lane), k = s.k[r];
        a0 = gdn_madd4(a0, k.x, h);
        a1 = gdn_madd4(a1, k.y, h);
        a2 = gdn_madd4(a2, k.z, h);
        a3 = gdn_madd4(a3, k.w, h);
    }
    s.part[warp][0][lane] = a0;
    s.part[warp][1][lane] = a1;
    s.part[warp][2][lane] = a2;
    s.part[warp][3][lane] = a3;
}

/* u_t of the calling thread's column; every product of gates is formed from the left. */
__device__ __forceinline__ void gdn_solve(const struct gdn_block &s, const struct gdn_inputs &in,
                                          float u[GDN_TOKENS])
{
    const float g0 = s.gate[0], g1 = s.gate[1], g2 = s.gate[2], g3 = s.gate[3];
    const float g01 = gdn_mul(g0, g1), g12 = gdn_mul(g1, g2);
    float v[GDN_TOKENS], sum;

#pragma unroll
    for (unsigned t = 0; t < GDN_TOKENS; t++)
        v[t] = __bfloat162float(in.value[(size_t)t * in.v_stride + threadIdx.x]);
    sum = gdn_column_sum(s, 0);
    u[0] = gdn_mul(gdn_madd(v[0], -g0, sum), s.beta[0]);

    sum = gdn_mul(g0, gdn_column_sum(s, 1));
    sum = gdn_madd(sum, gdn_key_product(s, 0), u[0]);
    u[1] = gdn_mul(gdn_madd(v[1], -g1, sum), s.beta[1]);

    sum = gdn_mul(g01, gdn_column_sum(s, 2));
    sum = gdn_madd(sum, gdn_mul(g1, gdn_key_product(s, 1)), u[0]);
    sum = gdn_madd(sum, gdn_key_product(s, 2), u[1]);
    u[2] = gdn_mul(gdn_madd(v[2], -g2, sum), s.beta[2]);

    sum = gdn_mul(gdn_mul(g01, g2), gdn_column_sum(s, 3));
    sum = gdn_madd(sum, gdn_mul(g12, gdn_key_product(s, 3)), u[0]);
    sum = gdn_madd(sum, gdn_mul(g2, gdn_key_product(s, 4)), u[1]);
    sum = gdn_madd(sum, gdn_key_product(s, 5), u[2]);
    u[3] = gdn_mul(gdn_madd(v[3], -g3, sum), s.beta[3]);
}

/* Pass 2: the four updates of each row in token order; `io` sees the state after each. The
   compiler cannot tell that a store to one state leaves the others alone, so the loads of a
   batch are issued ahead of it. */
template <class Io> __device__ __forceinline__ void gdn_update(struct gdn_block &s, Io &io)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float4 u0 = s.u[0][lane], u1 = s.u[1][lane], u2 = s.u[2][lane], u3 = s.u[3][lane];
    const float g0 = s.gate[0], g1 = s.gate[1], g2 = s.gate[2], g3 = s.gate[3];
    float4 o0 = make_float4(0, 0, 0, 0), o1 = o0, o2 = o0, o3 = o0;

    for (unsigned first = warp * GDN_ROWS; first < (warp + 1) * GDN_ROWS; first += GDN_BATCH) {
        float4 rows[GDN_BATCH];

#pragma unroll
        for (unsigned r = 0; r < GDN_BATCH; r++)
            rows[r] = io.second(first + r, lane);
#pragma unroll
        for (unsigned r = 0; r < GDN_BATCH; r++) {
            const float4 k = s.k[first + r], q = s.q[first + r];
            float4 h = gdn_advance(rows[r], g0, k.x, u0);
            io.state(0, first + r, lane, h);
            o0 = gdn_madd4(o0, q.x, h);
            h = gdn_advance(h, g1, k.y, u1);
            io.state(1, first + r, lane, h);
            o1 = gdn_madd4(o1, q.y, h);
            h = gdn_advance(h, g2, k.z, u2);
            io.state(2, first + r, lane, h);
            o2 = gdn_madd4(o2, q.z, h);
            h = gdn_advance(h, g3, k.w, u3);
            io.state(3, first + r, lane, h);
            o3 = gdn_madd4(o3, q.w, h);
        }
    }
    s.part[warp][0][lane] = o0;
    s.part[warp][1][lane] = o1;
    s.part[warp][2][lane] = o2;
    s.part[warp][3][lane] = o3;
}

/*
 * The whole step of one head. `output` is at token 0 of this head, `out_stride` elements from
 * token to token. `io` supplies the state: first(row, quad) and second(row, quad) return four
 * columns of H in pass 1 and 2, state(t, row, quad, h) receives H after token t, and terms(t, u)
 * the calling thread's column of u_t.
 */
template <class Io>
__device__ __forceinline__ void gdn_wy4_step(struct gdn_block &s, const struct gdn_inputs &in,
                                             Io &io, __nv_bfloat16 *output, size_t out_stride)
{
    float u[GDN_TOKENS];

    gdn_load(s, in);
    __syncthreads();
    gdn_key_products(s);
    gdn_project(s, io);
    __syncthreads();
    gdn_solve(s, in, u);
#pragma unroll
    for (unsigned t = 0; t < GDN_TOKENS; t++) {
        reinterpret_cast<float *>(s.u)[t * GDN_DIM + threadIdx.x] = u[t];
        io.terms(t, u[t]);
    }
    __syncthreads();
    gdn_update(s, io);
    __syncthreads();
#pragma unroll
    for (unsigned t = 0; t < GDN_TOKENS; t++)
        output[t * out_stride + threadIdx.x] =
            __float2bfloat16(gdn_mul(gdn_column_sum(s, t), GDN_SCALE));
}

#endif
