/*
 * What the two convolution operators share: the order of their buffers, and their inputs.
 */
#ifndef OPS_KDA_CONV_COMMON_H
#define OPS_KDA_CONV_COMMON_H

#include "problem/operator.h"
#include "reference/causal_conv1d.h"

extern const char *const conv_biases[]; /* choices of "bias": null, set */
extern const char *const conv_states[]; /* choices of "state": carried, zero */

#define CONV_CONTRACT                                                                              \
    "bf16 input, weight, bias and result, fp32 state; fp32 sums in any order, multiply-adds "      \
    "fused or not; exp(x) within 2 + 1.173 |x| ulp, division and root within 2; one rounding to "  \
    "bf16; state moved bit "                                                                       \
    "for bit"

/* Buffers, in this order; each operator's twins follow. */
enum {
    CONV_STATE,  /* f32 [.., dim, d_conv] */
    CONV_X,      /* bf16 [rows, dim or more] */
    CONV_WEIGHT, /* bf16 [dim, d_conv] */
    CONV_BIAS,   /* bf16 [dim] */
    CONV_Y,      /* bf16 [rows, dim or more] */
    CONV_BUFFERS
};

int conv_add_weights(struct problem *p, struct err *err); /* CONV_WEIGHT and CONV_BIAS */

/* Fills the inputs by the parameters dim and state. The channels of one group of 128 (a head)
   share a size: every fourth group is ordinary, the others are of norm ~1e-3 (an epsilon outside a
   root shows), zero, and large (silu saturates, exp overflows). Gaps of wider rows hold poison. */
void conv_fill_inputs(struct problem *p);

/* The inputs widened, to be released; `state` is the reference's to change. */
struct conv_operands {
    float *state, *x, *weight, *bias; /* bias NULL when there is none */
    size_t window;                    /* d_conv */
};
struct conv_operands conv_operands_of(const struct problem *p);
void conv_operands_release(struct conv_operands *o);

/* One token of a channel: its window, the place `state` of the operands, moves by one. */
struct bounded conv_step(const struct conv_operands *o, size_t channel, size_t state, float x);

#endif
