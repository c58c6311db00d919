/*
 * The gated delta rule, token by token, in fp64 (S. Yang, J. Kautz, A. Hatamizadeh, "Gated Delta
 * Networks: Improving Mamba2 with Delta Rule", ICLR 2025), for one value head with any dims. With
 * S [k_dim, v_dim]:
 *
 *     u  = beta (v - g S^T k)
 *     S' = g S + k u^T
 *     o  = scale S'^T q
 *
 * g is the decay itself, in [0, 1]; beta lies in [0, 2]; operands are exact.
 *
 * The bounds hold for a kernel that walks the tokens in order in fp32: the dots in any order, the
 * decay applied before or after the dot, multiply-adds fused or not, the output rounded once into
 * `out`.
 *
 * How the state's error e travels: a column s of S obeys s' = g (I - beta k k^T) s + beta v k, so
 *
 *     e' = g (I - beta k k^T) e + k du + ds
 *
 * du being the roundings of u and ds those of the update. Taken element by element this grows
 * with every token, since |I - beta k k^T| has row sums above 1; but its 2-norm is max(1, |1 -
 * beta k.k|), so the norm of a column's error is carried along, `column`, with the elementwise
 * bound, `element`, wherever that is the smaller. Worst adds norms. Spread adds in quadrature
 * what is independent: the spread of any fixed direction is at most the root of the summed
 * squares over the column.
 *
 * Spread takes the roundings of different tokens as independent, so it is for tokens that differ.
 * The same token thousands of times under a gate near 1 drives an fp32 state to a fixed point,
 * where every step errs alike: then only worst holds.
 */
#ifndef REFERENCE_GATED_DELTA_RULE_H
#define REFERENCE_GATED_DELTA_RULE_H

#include <stddef.h>

#include "reference/bounds.h"

struct gdr_error {
    double worst, spread;
};

/* One head on its way. The caller owns the arrays; zeroed errors mean an exact state. */
struct gdr_state {
    size_t k_dim, v_dim;
    double scale;              /* 1/sqrt(k_dim) */
    struct format out;         /* of the output */
    double *value;             /* k_dim x v_dim, k-major */
    struct gdr_error *column;  /* v_dim: 2-norm of the column's error; NULL: values only */
    struct gdr_error *element; /* k_dim x v_dim; NULL with `column` */
};

struct gdr_token {
    const double *query, *key; /* k_dim */
    const double *value;       /* v_dim */
    double gate, beta;
};

/* One token: advances the state; output (v_dim) may be NULL, so may u (v_dim). Without errors
   their radii are zero. */
void gdr_step(const struct gdr_state *s, const struct gdr_token *t, struct bounded *u,
              struct bounded *output);

/* The state's element as a bounded value: the smaller of the two bounds. */
struct bounded gdr_element(const struct gdr_state *s, size_t row, size_t column);

/* What ||I - beta k k^T||_2 cannot exceed, with the squared norm of k. */
double gdr_contraction(double beta, double key_square);

/* 1/sqrt(k_dim) rounds, and rsqrtf may err by 2 ulp (CUDA Programming Guide): relative to the
   scale. */
#define GDR_SCALE_ERROR (4.0 * U_FP32)

#endif
