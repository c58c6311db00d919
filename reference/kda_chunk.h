/*
 * The second half of the chunked KDA recurrence: one chunk of one head from prepare's gc, u and w
 * and the state S before it, in fp64 with the bounds of an fp32 kernel,
 *
 *     v'_i  = u_i - w_i S
 *     out_i = scale (query_i exp(gc_i)) S + sum_(j<=i) P_ij v'_j,
 *             P_ij = scale sum_d query_i key_j exp(gc_i - gc_j)
 *     S     = diag(exp(gc_last)) S + sum_i (key_i exp(gc_last - gc_i)) v'_i^T
 *
 * Declared computation: fp32, fused or not; sums in any order, the two parts of an output one sum
 * or two; the scale applied to the query, to P or at the end; exp(x) within
 * kda_exp_ulps(x) of kda_pointwise.h, subnormal results possibly flushed.
 *
 * Bounds. Within the chunk elementwise, from the radii that gc, u and w come with (zero where
 * they are a kernel's exact inputs, prepare's where they are its outputs). The state's error E
 * from the chunks before passes through M = diag(exp(gc_last)) - sum_i key_i exp(gc_last - gc_i)
 * w_i^T, the product of the tokens' maps: in the 2-norm of a value column no more than `carry` of
 * it survives (kda_contraction), and an output sees it through its own row of such a map, whose
 * norm is computed.
 */
#ifndef REFERENCE_KDA_CHUNK_H
#define REFERENCE_KDA_CHUNK_H

#include "reference/kda_chunk_terms.h"
#include "reference/kda_recurrence.h"

/* How much of the state's error survives the chunk when gc and w are prepare's terms rounded to
   fp32: the contraction and what the rounding adds to it. */
double kda_chunk_carry(const struct kda_tokens *t, const struct kda_chunk_terms *x);

/* Takes the chunk; value, gate and beta of `t` are not looked at. `out` has room for [count][D]. */
void kda_chunk_scan(const struct kda_tokens *t, const struct kda_chunk_terms *x, double carry,
                    struct kda_state *s, struct kda_field *out);

/* A whole sequence: chunks of `chunk` tokens from the first on, prepare and scan; `out` as above.
   */
void kda_chunk_run(const struct kda_tokens *t, size_t chunk, struct kda_state *s,
                   struct kda_field *out);

#endif
