/*
 * The first half of the chunked KDA recurrence: for one chunk of one head, in fp64 with the
 * bounds of an fp32 kernel,
 *
 *     gc_i   = gate_0 + .. + gate_i
 *     A_ij   = -beta_i sum_d key_i key_j exp(gc_i - gc_j)   for j < i, else 0
 *     T      = (I - A)^-1, by forward substitution of rows
 *     u      = T (beta value),   w = T (beta key exp(gc))
 *
 * with which the chunk's corrected values are u - w S for the state S before it (the WY form of
 * the product of the tokens' maps; S. Yang et al., "Parallelizing Linear Transformers with the
 * Delta Rule over Sequence Length", 2024, with a decay per channel).
 *
 * Declared computation: fp32, fused or not; gc by additions in sequence or in any scan tree that
 * gives element i no more than i of them; exponents as differences of the stored gc; exp(x) within
 * kda_exp_ulps(x) of kda_pointwise.h, subnormal results possibly flushed; row i of T from the rows
 * above it, sums in any order.
 *
 * Bounds. The substitution's elementwise worst case |(I - |A|)^-1| explodes for correlated keys.
 * But the computed T^ satisfies (I - A^) T^ = I + R with a small residual R, hence T^ - T = T (dA
 * T^ + R): errors pass once through the true T, which the delta rule keeps of order one.
 */
#ifndef REFERENCE_KDA_CHUNK_TERMS_H
#define REFERENCE_KDA_CHUNK_TERMS_H

#include <stdbool.h>

#include "reference/kda_recurrence.h"

/* What prepare makes and scan takes; [count][D] each. */
struct kda_chunk_terms {
    struct kda_field gc, u, w;
};

void kda_chunk_terms_init(struct kda_chunk_terms *x, size_t tokens, size_t head_dim);
void kda_chunk_terms_release(struct kda_chunk_terms *x);

/* `t` is one chunk: at most as many tokens as `out` was made for. The query is not looked at. */
void kda_chunk_prepare(const struct kda_tokens *t, struct kda_chunk_terms *out);

/* Operands of the products p_ij = sum_d left_i right_j exp(gc_i - gc_j), rows of D. */
struct kda_decayed {
    size_t head_dim, count;
    const double *left, *right;
    const struct kda_field *gc;
    double factor_roundings; /* roundings of a product with one more factor, done by the caller */
    bool diagonal;           /* i = j as well as j < i */
};

/* `out` has room for [count][count]; elements above the diagonal (and on it, unless wanted) are
   zero. */
void kda_decayed_products(const struct kda_decayed *in, struct kda_field *out);

/* exp(x + s) - exp(x) <= kda_exponent_error(s) exp(x) for an exponent's error s and exp's own;
   infinite for errors so large (above 1/2) that a first-order bound means nothing. */
double kda_exponent_error(double s);

#endif
