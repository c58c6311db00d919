/*
 * Launchers of the row-wise and elementwise kernels of a KDA block.
 */
#ifndef OPS_KDA_POINTWISE_LAUNCH_H
#define OPS_KDA_POINTWISE_LAUNCH_H

#include "base/err.h"
#include "device/launch.h"

struct kda_l2_args {
    dev_ptr data; /* bf16, head h of token t at t * stride + h * head_dim; in place */
    uint32_t heads, tokens;
    uint32_t head_dim;
    float eps;
    uint32_t stride;
};
int kda_launch_l2(const struct kernel *kernel, const struct kda_l2_args *args, struct err *err);

struct kda_gate_args {
    dev_ptr g_raw;   /* bf16 [tokens, heads, head_dim] */
    dev_ptr dt_bias; /* f32 [heads, head_dim] */
    dev_ptr a_log;   /* f32 [heads] */
    dev_ptr out;     /* f32 [tokens, heads, head_dim]: log decay in [lower_bound, 0] */
    uint32_t tokens, heads, head_dim;
    float lower_bound; /* negative */
};
int kda_launch_gate(const struct kernel *kernel, const struct kda_gate_args *args, struct err *err);

struct kda_o_norm_args {
    dev_ptr x;      /* f32 [rows, head_dim] */
    dev_ptr gate;   /* bf16 [rows, head_dim] */
    dev_ptr weight; /* bf16 [head_dim] */
    dev_ptr out;    /* bf16 [rows, head_dim] */
    uint32_t rows;
    uint32_t head_dim; /* one thread each: a multiple of 32, at most 1024 */
    float eps;
};
int kda_launch_o_norm(const struct kernel *kernel, const struct kda_o_norm_args *args,
                      struct err *err);

struct kda_sigmoid_args {
    dev_ptr src; /* bf16 [n] */
    dev_ptr dst; /* f32 [n] */
    uint32_t n;
};
int kda_launch_sigmoid(const struct kernel *kernel, const struct kda_sigmoid_args *args,
                       struct err *err);

#endif
