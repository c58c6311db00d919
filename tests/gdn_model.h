/*
 * A gated-delta-rule kernel in plain C floats, in the forms and orders that real ones use, for
 * tests of the reference's bounds. Static functions: each test program has its own copy.
 */
#ifndef TESTS_GDN_MODEL_H
#define TESTS_GDN_MODEL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reference/detmath.h"
#include "reference/gated_delta_verify.h"

#define MODEL_K 128
#define MODEL_V 8

enum model_form { FORM_WY, FORM_TOKENS, FORM_TOKENS_DECAY_FIRST, FORMS };
enum model_order { ORDER_CHAIN, ORDER_BACKWARD, ORDER_PAIRWISE, ORDER_WARPS, ORDERS };
enum model_fault { FAULT_NONE, FAULT_NARROW_SUMS, FAULT_NARROW_STATE, FAULT_NARROW_BETA };

struct model {
    enum model_form form;
    enum model_order order;
    int fused;
    enum model_fault fault;
};

/* One head's operands as stored (bf16 values in floats where the kernel reads bf16), and as
   doubles. */
struct model_case {
    float query[GDN_TOKENS][MODEL_K], key[GDN_TOKENS][MODEL_K], value[GDN_TOKENS][MODEL_V];
    float gate[GDN_TOKENS], beta[GDN_TOKENS];
    float state[MODEL_K][MODEL_V];
    double query64[GDN_TOKENS][MODEL_K], key64[GDN_TOKENS][MODEL_K], value64[GDN_TOKENS][MODEL_V];
    double state64[MODEL_K][MODEL_V];
};

struct model_out {
    float u[GDN_TOKENS][MODEL_V], output[GDN_TOKENS][MODEL_V];
    float state[GDN_TOKENS][MODEL_K][MODEL_V];
};

/* --- random operands ------------------------------------------------------------------------- */

static inline double model_uniform(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return (double)(*s >> 11) * 0x1p-53;
}

static inline double model_normal(uint64_t *s)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += model_uniform(s);
    return sum;
}

static inline float model_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* A row of the given norm with a mean offset, rounded to bf16. */
static inline void model_row(float *row, double norm, uint64_t *s)
{
    double x[MODEL_K];
    double sum = 0.0;
    for (int i = 0; i < MODEL_K; i++) {
        x[i] = model_normal(s) + 0.75;
        sum += x[i] * x[i];
    }
    for (int i = 0; i < MODEL_K; i++)
        row[i] = model_bf16((float)(norm * x[i] / sqrt(sum)));
}

enum model_gates {
    GATES_LAZY,
    GATES_STRONG,
    GATES_ONE,
    GATES_ZERO,
    GATES_NEAR_ONE,
    GATES_MIXED,
    GATE_KINDS
};

static inline float model_gate(enum model_gates kind, uint64_t *s)
{
    double u = model_uniform(s);
    switch (kind) {
    case GATES_LAZY:
        return (float)det_exp(-0.001 - 0.2 * u);
    case GATES_STRONG:
        return (float)det_exp(-201.0 * u * u);
    case GATES_ONE:
        return 1.0f;
    case GATES_ZERO:
        return 0.0f;
    case GATES_NEAR_ONE:
        return (float)(1.0 - 1e-5 * u);
    default:
        return model_gate((enum model_gates)(u * GATES_MIXED), s);
    }
}

static inline void model_tokens(struct model_case *c, enum model_gates gates, uint64_t *s)
{
    for (int t = 0; t < GDN_TOKENS; t++) {
        double u = model_uniform(s);
        double norm = u < 0.05 ? 0.0 : u < 0.1 ? 1e-3 : 1.0;
        model_row(c->query[t], 1.0, s);
        model_row(c->key[t], norm, s);
        for (int v = 0; v < MODEL_V; v++)
            c->value[t][v] = model_bf16((float)model_normal(s));
        c->gate[t] = model_gate(gates, s);
        c->beta[t] = (float)det_sigmoid(3.0 * model_normal(s));
        for (int i = 0; i < MODEL_K; i++) {
            c->query64[t][i] = (double)c->query[t][i];
            c->key64[t][i] = (double)c->key[t][i];
        }
        for (int v = 0; v < MODEL_V; v++)
            c->value64[t][v] = (double)c->value[t][v];
    }
}

static inline void model_widen_state(struct model_case *c)
{
    for (int i = 0; i < MODEL_K; i++)
        for (int v = 0; v < MODEL_V; v++)
            c->state64[i][v] = (double)c->state[i][v];
}

static inline void model_random_state(struct model_case *c, double scale, uint64_t *s)
{
    for (int i = 0; i < MODEL_K; i++)
        for (int v = 0; v < MODEL_V; v++)
            c->state[i][v] = (float)(scale * model_normal(s));
    model_widen_state(c);
}

static inline struct gdn_operands model_operands(const struct model_case *c)
{
    struct gdn_operands in = {.k_dim = MODEL_K, .v_dim = MODEL_V, .state = c->state64[0]};
    for (int t = 0; t < GDN_TOKENS; t++) {
        in.query[t] = c->query64[t];
        in.key[t] = c->key64[t];
        in.value[t] = c->value64[t];
        in.gate[t] = (double)c->gate[t];
        in.beta[t] = (double)c->beta[t];
    }
    return in;
}

/* --- fp32 arithmetic ------------------------------------------------------------------------- */

static inline float model_sum_round(const struct model *m, float x)
{
    return m->fault == FAULT_NARROW_SUMS ? model_bf16(x) : x;
}

static inline float model_madd(const struct model *m, float a, float b, float c)
{
    if (m->fused)
        return fmaf(a, b, c);
    volatile float product = a * b;
    return product + c;
}

static inline float model_tree(const struct model *m, float *part, int n)
{
    for (int width = n / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            part[i] = model_sum_round(m, part[i] + part[i + width]);
    return part[0];
}

/* sum_i a[i] * b[i * stride], MODEL_K terms. */
static inline float model_dot(const struct model *m, const float *a, const float *b, int stride)
{
    float part[MODEL_K] = {0};
    float sum = 0.0f;
    int lanes = m->order == ORDER_PAIRWISE ? MODEL_K : 4;
    if (m->order == ORDER_CHAIN || m->order == ORDER_BACKWARD) {
        for (int i = 0; i < MODEL_K; i++) {
            int at = m->order == ORDER_CHAIN ? i : MODEL_K - 1 - i;
            sum = model_sum_round(m, model_madd(m, a[at], b[at * stride], sum));
        }
        return sum;
    }
    for (int i = 0; i < MODEL_K; i++) {
        int lane = m->order == ORDER_PAIRWISE ? i : i / (MODEL_K / 4);
        part[lane] = model_sum_round(m, model_madd(m, a[i], b[i * stride], part[lane]));
    }
    return model_tree(m, part, lanes);
}

static inline float model_clamp(float g)
{
    return fminf(fmaxf(g, 1e-6f), 1.0f - 1e-6f);
}

/* --- the kernel
   ---------------------------------------------------------------------------------- */

/* u_t of column v in the WY form, from the initial state. */
static inline float model_u_wy(const struct model *m, const struct model_case *c,
                               struct model_out *o, int t, int v)
{
    float decay = 1.0f;
    float sum = 0.0f;
    for (int j = t - 1; j >= 0; j--) {
        float kd = model_dot(m, c->key[t], c->key[j], 1);
        sum = model_madd(m, decay * kd, o->u[j][v], sum);
        decay *= model_clamp(c->gate[j]);
    }
    sum = model_madd(m, decay, model_dot(m, c->key[t], &c->state[0][v], MODEL_V), sum);
    return model_madd(m, -model_clamp(c->gate[t]), sum, c->value[t][v]);
}

static inline void model_token(const struct model *m, const struct model_case *c,
                               struct model_out *o, float state[MODEL_K][MODEL_V], int t, int v)
{
    float g = model_clamp(c->gate[t]);
    float beta = m->fault == FAULT_NARROW_BETA ? model_bf16(c->beta[t]) : c->beta[t];
    float left;
    if (m->form == FORM_TOKENS_DECAY_FIRST)
        for (int i = 0; i < MODEL_K; i++)
            state[i][v] *= g;
    if (m->form == FORM_WY)
        left = model_u_wy(m, c, o, t, v);
    else if (m->form == FORM_TOKENS)
        left = model_madd(m, -g, model_dot(m, c->key[t], &state[0][v], MODEL_V), c->value[t][v]);
    else
        left = c->value[t][v] - model_dot(m, c->key[t], &state[0][v], MODEL_V);
    o->u[t][v] = left * beta;
    for (int i = 0; i < MODEL_K; i++) {
        float decayed = m->form == FORM_TOKENS_DECAY_FIRST ? state[i][v] : g * state[i][v];
        state[i][v] = model_madd(m, c->key[t][i], o->u[t][v], decayed);
        if (m->fault == FAULT_NARROW_STATE)
            state[i][v] = model_bf16(state[i][v]);
        o->state[t][i][v] = state[i][v];
    }
    float scale = m->fused ? 1.0f / sqrtf((float)MODEL_K) : (float)(1.0 / sqrt((double)MODEL_K));
    o->output[t][v] = model_bf16(scale * model_dot(m, c->query[t], &state[0][v], MODEL_V));
}

static inline void model_run(const struct model *m, const struct model_case *c, struct model_out *o)
{
    float state[MODEL_K][MODEL_V];
    memcpy(state, c->state, sizeof(state));
    for (int t = 0; t < GDN_TOKENS; t++)
        for (int v = 0; v < MODEL_V; v++)
            model_token(m, c, o, state, t, v);
}

/* --- comparison
   ---------------------------------------------------------------------------------- */

struct model_ratio {
    double worst, likely;
};

static inline void model_compare(struct model_ratio *r, float got, struct bounded want,
                                 double lambda)
{
    double err = fabs((double)got - want.value);
    r->worst = fmax(r->worst, err > 0.0 ? err / want.worst : 0.0);
    r->likely = fmax(r->likely, err > 0.0 ? err / bounded_likely(want, lambda) : 0.0);
}

#endif
