/*
 * Launchers of the data movement between the projections and the recurrence: exact copies.
 */
#ifndef OPS_KDA_MOVE_LAUNCH_H
#define OPS_KDA_MOVE_LAUNCH_H

#include "base/err.h"
#include "device/launch.h"

struct kda_split_widen_args {
    dev_ptr src;     /* bf16 [tokens, 3 * qkv]: q | k | v */
    dev_ptr q, k, v; /* f32 [T_pad, qkv] each; rows from `tokens` on are not written */
    uint32_t tokens, qkv;
};
int kda_launch_split_widen(const struct kernel *kernel, const struct kda_split_widen_args *args,
                           struct err *err);

struct kda_pack_args {
    dev_ptr q, k, v; /* bf16 [tokens, qkv] each */
    dev_ptr dst;     /* bf16 [tokens, 3 * qkv] */
    uint32_t tokens, qkv;
};
int kda_launch_pack(const struct kernel *kernel, const struct kda_pack_args *args, struct err *err);

struct kda_fill_args {
    dev_ptr dst; /* f32 [n] */
    uint32_t n;
    float value;
};
int kda_launch_fill(const struct kernel *kernel, const struct kda_fill_args *args, struct err *err);

#endif
