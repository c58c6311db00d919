/*
 * The causal depthwise convolution of a KDA block and its rolling window.
 *
 *     window = [state[1..d_conv-1], x];  acc = bias + sum_i window[i] w[i]
 *     y = silu(acc);  state = window
 *
 * Declared computation: fp32, d_conv products and as many additions in any order, fused or not,
 * then silu (reference/kda_pointwise.h). The state is moved, not computed: bit for bit the last
 * d_conv inputs. y is given before its rounding to bf16; the l2norm form normalises these
 * unrounded values.
 */
#ifndef REFERENCE_CAUSAL_CONV1D_H
#define REFERENCE_CAUSAL_CONV1D_H

#include <stddef.h>

#include "reference/bounds.h"

#define CAUSAL_CONV1D_MAX_WINDOW 4

/* One channel's taps; oldest first, the last is the newest. */
struct conv_channel {
    const float *weight; /* window */
    size_t window;       /* 1..CAUSAL_CONV1D_MAX_WINDOW */
    float bias;          /* 0 when there is none: adding it is exact */
};

/* Takes x into `state` (window values, oldest first) and returns silu of the convolution. */
struct bounded causal_conv1d_step(const struct conv_channel *channel, float *state, float x);

#endif
