/*
 * A gated-delta-rule kernel in plain C floats, in the forms and orders that real ones use, for
 * tests of the reference's bounds. Static functions: each test program has its own copy.
 */
#ifndef TESTS_GDN_MODEL_H
#define TESTS_GDN_MODEL_H

#include <stdlib.h>

#include "tests/gdn_model_case.h"

enum model_form { FORM_WY, FORM_TOKENS, FORM_TOKENS_DECAY_FIRST, FORMS };
enum model_order { ORDER_CHAIN, ORDER_BACKWARD, ORDER_PAIRWISE, ORDER_WARPS, ORDERS };
enum model_fault { FAULT_NONE, FAULT_NARROW_SUMS, FAULT_NARROW_STATE, FAULT_NARROW_BETA };

struct model {
    enum model_form form;
    enum model_order order;
    int fused;
    enum model_fault fault;
};

struct model_out {
    float u[GDN_TOKENS][MODEL_V], output[GDN_TOKENS][MODEL_V];
    float state[GDN_TOKENS][MODEL_K][MODEL_V];
};

/* --- fp32 arithmetic --------------------------------------------------------------------- */

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

/* --- the kernel -------------------------------------------------------------------------- */

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

/* --- comparison -------------------------------------------------------------------------- */

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
