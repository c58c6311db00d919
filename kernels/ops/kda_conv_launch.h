/*
 * Launchers of the causal convolution of window d_conv <= 4 over channels, followed by silu.
 */
#ifndef OPS_KDA_CONV_LAUNCH_H
#define OPS_KDA_CONV_LAUNCH_H

#include "base/err.h"
#include "device/launch.h"

struct kda_conv_decode_args {
    dev_ptr conv_state; /* f32 [batch, dim, d_conv], newest last; shifted in place */
    dev_ptr x;          /* bf16 [batch, dim] */
    dev_ptr weight;     /* bf16 [dim, d_conv], last tap newest */
    dev_ptr bias;       /* bf16 [dim] or 0 */
    dev_ptr y;          /* bf16 [batch, dim] */
    uint32_t batch, dim, d_conv;
    uint32_t qk_channels; /* the first qk_channels are L2-normalised per head; a multiple of 256 */
    uint32_t head_dim;    /* 128: a block of 256 threads holds two heads */
    float l2_eps;
};
int kda_launch_conv_decode(const struct kernel *kernel, const struct kda_conv_decode_args *args,
                           struct err *err);

struct kda_conv_prefill_args {
    dev_ptr conv_state; /* f32 [dim, d_conv], carried in and out */
    dev_ptr x;          /* bf16, token t at t * in_stride */
    dev_ptr weight;     /* bf16 [dim, d_conv] */
    dev_ptr bias;       /* bf16 [dim] or 0 */
    dev_ptr y;          /* bf16, token t at t * out_stride */
    uint32_t dim, d_conv, seq_len, in_stride, out_stride;
};
int kda_launch_conv_prefill(const struct kernel *kernel, const struct kda_conv_prefill_args *args,
                            struct err *err);

#endif
