/*
 * gated_delta_rule_wy4: the verify step of four draft tokens that writes the state after each.
 *
 * Design:
 * - The step itself is gdn_wy4_step.cuh, shared with the write-on-accept form, whose output must
 *   have the same bits.
 * - Four columns a lane: 16-byte loads and stores, and a quarter of the reads of k and q from
 *   shared memory that one column a thread would need.
 * - Rows are loaded eight ahead, because nvcc cannot move a load above the stores to four states
 *   that might alias it.
 *
 * State pointers must be 16-byte aligned. H is read twice (pass 2 finds it in L2: 64 KiB a block)
 * and overwritten in pass 2 by the thread that read it. Launch: grid (num_v_heads, batch), block
 * 128, no dynamic shared memory. k_dim and v_dim are part of the ABI; the launcher refuses all but
 * 128.
 */
#include "gdn_wy4_step.cuh"

/* Head's state in device memory: read from `h`, written to all four. */
struct parent_state {
    float4 *after[GDN_TOKENS]; /* after[3] is H itself */

    __device__ __forceinline__ float4 first(unsigned row, unsigned quad) const
    {
        return after[3][row * (GDN_DIM / 4) + quad];
    }
    __device__ __forceinline__ float4 second(unsigned row, unsigned quad) const
    {
        return after[3][row * (GDN_DIM / 4) + quad];
    }
    __device__ __forceinline__ void state(unsigned t, unsigned row, unsigned quad, float4 h) const
    {
        after[t][row * (GDN_DIM / 4) + quad] = h;
    }
    __device__ __forceinline__ void terms(unsigned, float) const
    {
    }
};

/* The head's state of sequence b: `state` is a table of pointers, or the first of contiguous
   states. */
__device__ __forceinline__ float4 *head_state(void *state, unsigned is_table, unsigned num_v_heads)
{
    const size_t head = (size_t)GDN_DIM * GDN_DIM, b = blockIdx.y;
    float *seq = is_table ? static_cast<float *const *>(state)[b]
                          : static_cast<float *>(state) + b * num_v_heads * head;

    return reinterpret_cast<float4 *>(seq + blockIdx.x * head);
}

extern "C" __global__ void __launch_bounds__(128)
    gated_delta_rule_wy4(void *h_state, const __nv_bfloat16 *__restrict__ query,
                         const __nv_bfloat16 *__restrict__ key,
                         const __nv_bfloat16 *__restrict__ value, const float *__restrict__ gate,
                         const float *__restrict__ beta, __nv_bfloat16 *__restrict__ output,
                         void *h_inter0, void *h_inter1, void *h_inter2, unsigned batch_size,
                         unsigned num_k_heads, unsigned num_v_heads, unsigned /*k_dim*/,
                         unsigned /*v_dim*/, unsigned qk_stride, unsigned v_stride,
                         unsigned gb_stride, unsigned state_is_table)
{
    __shared__ struct gdn_block block;
    struct parent_state io;

    if (blockIdx.y >= batch_size)
        return;
    io.after[0] = head_state(h_inter0, state_is_table, num_v_heads);
    io.after[1] = head_state(h_inter1, state_is_table, num_v_heads);
    io.after[2] = head_state(h_inter2, state_is_table, num_v_heads);
    io.after[3] = head_state(h_state, state_is_table, num_v_heads);
    gdn_wy4_step(block,
                 gdn_head_inputs(query, key, value, gate, beta, num_k_heads, num_v_heads, qk_stride,
                                 v_stride, gb_stride),
                 io,
                 output + ((size_t)blockIdx.y * GDN_TOKENS * num_v_heads + blockIdx.x) * GDN_DIM,
                 (size_t)num_v_heads * GDN_DIM);
}
