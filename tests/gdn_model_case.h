/*
 * Random operands of one gated-delta-rule head, in floats as a kernel reads them and in doubles
 * as the reference does. Static functions: each test program has its own copy.
 */
#ifndef TESTS_GDN_MODEL_CASE_H
#define TESTS_GDN_MODEL_CASE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "reference/detmath.h"
#include "reference/gated_delta_verify.h"

#define MODEL_K 128
#define MODEL_V 8

/* One head's operands as stored (bf16 values in floats where the kernel reads bf16), and as
   doubles. */
struct model_case {
    float query[GDN_TOKENS][MODEL_K], key[GDN_TOKENS][MODEL_K], value[GDN_TOKENS][MODEL_V];
    float gate[GDN_TOKENS], beta[GDN_TOKENS];
    float state[MODEL_K][MODEL_V];
    double query64[GDN_TOKENS][MODEL_K], key64[GDN_TOKENS][MODEL_K], value64[GDN_TOKENS][MODEL_V];
    double state64[MODEL_K][MODEL_V];
};

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

#endif
