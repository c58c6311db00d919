/*
 * Launchers of the KDA recurrence: one token (two forms) and the chunked form (prepare, then scan).
 * The gate is a LOG decay (<= 0), which the kernels exponentiate.
 */
#ifndef OPS_KDA_RECURRENCE_LAUNCH_H
#define OPS_KDA_RECURRENCE_LAUNCH_H

#include "base/err.h"
#include "device/launch.h"

/* The chunk kernels stay within the 48 KiB of shared memory that need no opt-in. */
#define KDA_CHUNK_SHARED 49152u
/* Value columns a block of recurrent_smem takes in a KDA layer (VPB). */
#define KDA_SMEM_COLUMNS 32u

/* gc = cumsum of the gate within a chunk, and the WY factors u and w of each chunk. A position
   t >= tokens contributes nothing, whatever the pad rows hold. */
struct kda_chunk_prepare_args {
    dev_ptr k, v, gate; /* f32 [T_pad, heads, head_dim] */
    dev_ptr beta;       /* f32 [T_pad, heads] */
    dev_ptr gc, u, w;   /* f32 [T_pad, heads, head_dim] */
    uint32_t heads, head_dim;
    uint32_t chunk; /* positions, 1.. as far as the shared memory goes */
    uint32_t tokens;
};
int kda_launch_chunk_prepare(const struct kernel *kernel, const struct kda_chunk_prepare_args *args,
                             struct err *err);

/* The chunks in order: outputs of the rows t < tokens, and the state after the last. */
struct kda_chunk_scan_args {
    dev_ptr q, k, gc, u, w; /* f32 [T_pad, heads, head_dim] */
    dev_ptr state;          /* f32 [heads, head_dim, head_dim], k-major, carried in and out */
    dev_ptr out;            /* f32 [T_pad, heads, head_dim] */
    uint32_t heads, head_dim, chunk, num_chunks, tokens;
    float scale; /* 1 / sqrt(head_dim) in a layer */
};
int kda_launch_chunk_scan(const struct kernel *kernel, const struct kda_chunk_scan_args *args,
                          struct err *err);

/* One token of the recurrence for every head. */
struct kda_recurrent_args {
    dev_ptr q, k, v; /* bf16 [heads, head_dim]; q and k L2-normalised */
    dev_ptr gate;    /* f32 [heads, head_dim], log decay */
    dev_ptr beta;    /* f32 [heads], after the sigmoid */
    dev_ptr state;   /* f32 [heads, head_dim, head_dim], k-major, in place */
    dev_ptr out;     /* f32 [heads, head_dim] */
    uint32_t heads, head_dim;
    float scale;
};
int kda_launch_recurrent(const struct kernel *kernel, const struct kda_recurrent_args *args,
                         struct err *err);
/* The same bits with one read and one write of the state; `columns` (VPB) value columns a block. */
int kda_launch_recurrent_smem(const struct kernel *kernel, const struct kda_recurrent_args *args,
                              uint32_t columns, struct err *err);
/* Positions of the chunk buffers: tokens rounded up to a whole chunk (64 bits: cannot wrap). */
uint64_t kda_padded_tokens(uint32_t tokens, uint32_t chunk);

#endif
