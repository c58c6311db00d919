/*
 * The speculative verify step of the gated delta rule: four tokens of one value head at once, and
 * the fold that replays some of them onto the state later. fp64, exact operands, a bound on every
 * result.
 *
 * With kd_tj = k_t . k_j, hk_t = H^T k_t, and D(t,j) = g_{j+1} ... g_t (D(t,-1) from token 0 on):
 *
 *     u_t = beta_t (v_t - D(t,-1) hk_t - sum_{j<t} D(t,j) kd_tj u_j)
 *     H_t = g_t H_{t-1} + k_t u_t^T,   o_t = scale H_t^T q_t
 *
 * The bounds hold for a kernel that takes this form in fp32 AND for one that walks the plain
 * recurrence (gated_delta_rule.h): any order of the dots up to a chain, decays applied where they
 * fit, multiply-adds fused or not, states updated in token order, the scale from 1/sqrtf or
 * rsqrtf, one rounding of the output to bf16. Gates are clamped first, as the kernels do; q and k
 * are taken as they come.
 *
 * Derivation. Let eps_t be the roundings of u_t by itself. An error of u_j reaches u_t through
 * kd_tj alone:
 *
 *     du_t = eps_t - beta_t sum_{j<t} D(t,j) kd_tj du_j  =  sum_s L_ts eps_s
 *
 * with signed L, so that the contraction of the delta rule is not lost: states move by
 * sum_s M_ts eps_s, M_ts = sum_j D(t,j) k_j L_js, and outputs by sum_s N_ts eps_s, N_ts = q_t .
 * M_ts. To these add the roundings of the updates and, for outputs, of their own dot. In the
 * plain recurrence the roundings of the updates also reach u_t, through k_t: eps_t includes them.
 * An error of the initial state passes in the 2-norm of its column (gated_delta_rule.h).
 */
#ifndef REFERENCE_GATED_DELTA_VERIFY_H
#define REFERENCE_GATED_DELTA_VERIFY_H

#include "reference/gated_delta_rule.h"

#define GDN_TOKENS 4

/* The engaged word: what flag_clear leaves and what write-on-accept verify leaves. */
#define GDN_DISENGAGED 0.0
#define GDN_ENGAGED    1.0

/* The clamp of the kernels: [1e-6f, 1.0f - 1e-6f], in fp32. NaN becomes the lower end, as by
   fmaxf. */
double gdn_clamp_gate(double gate);

/* One value head's operands. Gates as stored, not yet clamped. */
struct gdn_operands {
    size_t k_dim, v_dim;
    const double *query[GDN_TOKENS], *key[GDN_TOKENS]; /* k_dim each */
    const double *value[GDN_TOKENS];                   /* v_dim each */
    double gate[GDN_TOKENS], beta[GDN_TOKENS];
    const double *state;            /* k_dim x v_dim, before token 0 */
    const struct gdr_error *before; /* v_dim: its error, 2-norm per column; NULL: exact */
};

/* What to compute; every pointer may be NULL. Element (t, v) of u and output is at t * v_dim + v.
   */
struct gdn_results {
    double gate[GDN_TOKENS];           /* clamped */
    struct bounded *u;                 /* GDN_TOKENS x v_dim */
    struct bounded *output;            /* GDN_TOKENS x v_dim, rounded to bf16 */
    struct bounded *state[GDN_TOKENS]; /* k_dim x v_dim, after token t */
    struct gdr_error
        *after[GDN_TOKENS]; /* v_dim: the error of the state after token t, per column */
};

/* Doubles of scratch memory that gdn_verify_head() needs. */
size_t gdn_verify_scratch(size_t k_dim);

void gdn_verify_head(const struct gdn_operands *in, double *scratch, struct gdn_results *out);

/* Applies `tokens` of H = g_t H + k_t u_t^T in fp32 from stored, hence exact, u, g and k. */
struct gdn_fold {
    size_t k_dim, v_dim, tokens;
    const double *key[GDN_TOKENS]; /* k_dim each */
    const double *u[GDN_TOKENS];   /* v_dim each */
    double gate[GDN_TOKENS];       /* as stashed: already clamped */
    const double *state;           /* k_dim x v_dim */
};
void gdn_fold_head(const struct gdn_fold *in, struct bounded *state);

#endif
