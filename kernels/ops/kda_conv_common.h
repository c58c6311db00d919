/*
 * What the two convolution operators share: their inputs.
 */
#ifndef OPS_KDA_CONV_COMMON_H
#define OPS_KDA_CONV_COMMON_H

#include "problem/problem.h"
#include "reference/causal_conv1d.h"

extern const char *const conv_biases[]; /* choices of "bias": null, set */
extern const char *const conv_states[]; /* choices of "state": carried, zero */

#define CONV_CONTRACT                                                                              \
    "bf16 input, weight, bias and result, fp32 state; fp32 sums in any order, multiply-adds "      \
    "fused or not; exp(x) within 2 + 1.173 |x| ulp, division and root within 2; one rounding to "  \
    "bf16; state moved bit "                                                                       \
    "for bit"

/* How large a channel's values are: the channels of one group of 128 (a head) share it. Every
   fourth group is ordinary; the others are of norm ~1e-3 (an epsilon outside a root shows),
   zero, and large (silu saturates, exp overflows). */
double conv_channel_scale(size_t channel);

/* Fills `rows` rows of `dim` channels, `stride` apart, scaled by channel; poison in the gaps. */
void conv_fill_rows(struct buffer *b, uint64_t key, size_t rows, size_t stride, size_t dim);
/* [.., dim, d_conv]: the state carried in, scaled by channel, or zero. */
void conv_fill_state(struct buffer *b, uint64_t key, size_t dim, bool zero);

/* The channel's taps out of widened weight [dim, d_conv] and bias [dim] (or NULL). */
struct conv_channel conv_channel_of(const float *weight, const float *bias, size_t d_conv,
                                    size_t channel);

#endif
