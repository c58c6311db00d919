/*
 * The KDA token recurrence of one head in fp64, with the bounds of any fp32 kernel that performs
 * it.
 *
 *     S = diag(exp(gate_t)) S
 *     delta = beta_t (value_t - S^T key_t)
 *     S += key_t delta^T
 *     out_t = S^T (scale query_t)
 *
 * S is [D, D], key channel first. The gate is a LOG decay, one per key channel.
 *
 * Declared computation: fp32 throughout, multiply-adds fused or not; the two sums over D in any
 * order or tree; the scale applied to the query or to the sum; exp(x) within kda_exp_ulps(x) of
 * kda_pointwise.h, which may flush a subnormal result. Operands are exact, but for the radii that
 * a caller may state.
 *
 * Bounds. Elementwise worst cases explode: every token multiplies them by |I - beta k k^T| taken
 * element by element. So the state carries, per value column, radii in the 2-norm: in the norm
 * that map never exceeds L = max(1, |1 - beta |k|^2|), its two eigenvalues, and the decay never
 * exceeds its largest channel:
 *
 *     e_t <= L_t max_k exp(gate_t,k) e_(t-1) + local_t
 *
 * where local_t holds the roundings of that one token on the exact trajectory, magnitudes
 * inflated by e. Beside it each element carries its own radius, the smallest of e_t, of what its
 * row of the map makes of e_(t-1), and of the elementwise worst case (better in the first tokens,
 * and where channels decay at different rates); their norm caps e_t in turn. An output adds its
 * own sum's roundings. `spread` adds independent roundings in quadrature, `fixed` adds exp's
 * errors and the underflow floors, which repeat from token to token, linearly.
 */
#ifndef REFERENCE_KDA_RECURRENCE_H
#define REFERENCE_KDA_RECURRENCE_H

#include <stddef.h>

#include "reference/kda_field.h"

/* Consecutive tokens of one head, packed. */
struct kda_tokens {
    size_t head_dim; /* D */
    size_t count;
    const double *query, *key, *value; /* [count][D] */
    const double *gate;                /* [count][D], log decay, <= 0 */
    const double *beta;                /* [count] */
    double scale;
    /* How far the operands that a kernel uses may be from these; NULL where they are the same.
       Taken as systematic: added linearly. */
    const double *query_error, *key_error; /* [count]: 2-norm of the difference */
    const double *value_error;             /* [count][D]: per element */
    const double *gate_error;              /* [count]: the largest of any channel */
    const double *beta_error;              /* [count] */
};

/* The state of one head with the error that a kernel's copy of it may have. */
struct kda_state {
    size_t head_dim;
    struct kda_field cell;          /* [D][D] */
    double *worst, *spread, *fixed; /* [D]: radii of each value column in the 2-norm; owned */
    double *norm;                   /* [D]: 2-norm of each value column; owned */
};

void kda_state_init(struct kda_state *s,
                    size_t head_dim); /* zero and exact; aborts without memory */
void kda_state_release(struct kda_state *s);
/* Exact contents from an fp32 [D, D]. */
void kda_state_load(struct kda_state *s, const float *cells);

/* Takes `t` in order. `out` has room for [count][D]. Two runs of n and m tokens are one of n + m.
   */
void kda_recurrence_run(const struct kda_tokens *t, struct kda_state *s, struct kda_field *out);

/* The same values; no radius of `s` or `out` is looked at or changed. A tenth of the work. */
void kda_recurrence_values(const struct kda_tokens *t, struct kda_state *s, struct kda_field *out);

/* The product over the tokens of L_t max_k exp(gate_t,k): how much of the state's error survives
   them. */
double kda_contraction(const struct kda_tokens *t);

#endif
