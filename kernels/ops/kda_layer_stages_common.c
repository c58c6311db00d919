/*
 * The judgement of a KDA layer, stage by stage: what each must make of the bits it was given. A
 * stage's expectation never depends on an earlier stage being right.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda_conv_common.h"
#include "kernels/ops/kda_layer_common.h"
#include "reference/causal_conv1d.h"
#include "reference/kda_dense.h"
#include "reference/kda_pointwise.h"

/* A layer's outcome under judgement. */
struct view {
    const struct outcome *out;
    const struct reference_env *env;
    struct golden *g;
    const struct layer_sizes *n;
    struct layer_set set;
};

static const struct buffer *buffer_of(const struct view *v, int id)
{
    return &v->out->problem->buffer[id];
}

/* What a buffer held after the run, widened; free() it. */
static float *after(const struct view *v, int id)
{
    const struct buffer *b = buffer_of(v, id);
    float *out = xcalloc(b->count > 0 ? b->count : 1, sizeof(*out));

    for (size_t i = 0; i < b->count; i++)
        out[i] = (float)dtype_load(b->dtype, v->out->data[id], i);
    return out;
}

static struct expectation *open_stage(const struct view *v, enum layer_stage stage)
{
    return golden_open(v->g, v->out->problem, v->set.id[stage]);
}

static double lambda_of(const struct view *v, enum layer_stage stage)
{
    return verdict_lambda(buffer_of(v, v->set.id[stage])->count);
}

/* ---- projections ---- */

struct columns {
    const float *a, *b;
    size_t rows, n, k;
    struct expectation *c;
    double lambda;
};

static void expect_column(size_t n, void *ctx)
{
    const struct columns *x = ctx;

    for (size_t m = 0; m < x->rows; m++)
        expect_bounded(x->c, m * x->n + n,
                       kda_dense_element(x->a + m * x->k, x->b + n * x->k, x->k), x->lambda);
}

/* Rows of buffer `from`, k wide, by a weight [n, k]. */
static void judge_projection(const struct view *v, int from, enum layer_input weight,
                             enum layer_stage to)
{
    float *a = after(v, from), *b = after(v, (int)weight);
    struct columns x = {
        .a = a,
        .b = b,
        .rows = v->n->rows,
        .n = buffer_of(v, (int)weight)->dim[0],
        .k = buffer_of(v, (int)weight)->dim[1],
        .c = open_stage(v, to),
        .lambda = lambda_of(v, to),
    };

    parallel_for(x.n, v->env->workers, expect_column, &x);
    free(b);
    free(a);
}

static void judge_projections(const struct view *v)
{
    judge_projection(v, IN_HIDDEN, IN_Q, L_Q);
    judge_projection(v, IN_HIDDEN, IN_K, L_K);
    judge_projection(v, IN_HIDDEN, IN_V, L_V);
    judge_projection(v, IN_HIDDEN, IN_F_A, L_F_A);
    judge_projection(v, v->set.id[L_F_A], IN_F_B, L_F_B);
    judge_projection(v, IN_HIDDEN, IN_B, L_B);
    judge_projection(v, IN_HIDDEN, IN_G_A, L_G_A);
    judge_projection(v, v->set.id[L_G_A], IN_G_B, L_G_B);
    judge_projection(v, v->set.id[L_NORM], IN_O, L_Y);
}

/* ---- data movement: exact ---- */

static void judge_pack(const struct view *v)
{
    static const enum layer_stage parts[] = {L_Q, L_K, L_V};
    struct expectation *e = open_stage(v, L_PACKED);
    size_t qkv = v->n->qkv;

    for (size_t part = 0; part < 3; part++) {
        float *x = after(v, v->set.id[parts[part]]);
        for (size_t i = 0; i < v->n->rows * qkv; i++)
            expect_exact(e, (i / qkv * 3 + part) * qkv + i % qkv, (double)x[i]);
        free(x);
    }
}

static void judge_split(const struct view *v)
{
    static const enum layer_stage parts[] = {L_Q32, L_K32, L_V32};
    float *x = after(v, v->set.id[L_NORMED]);
    size_t qkv = v->n->qkv;

    for (size_t part = 0; part < 3; part++) {
        struct expectation *e = open_stage(v, parts[part]);
        for (size_t i = 0; i < v->n->rows * qkv; i++)
            expect_exact(e, i, (double)x[(i / qkv * 3 + part) * qkv + i % qkv]);
    }
    free(x);
}

/* ---- convolution ---- */

struct conv {
    struct conv_operands in;
    size_t rows, dim, normed; /* channels below `normed` are L2-normalised by head */
    struct expectation *y, *state_out;
    double lambda;
};

/* One head's channels through all rows. */
static void expect_conv_head(size_t head, void *ctx)
{
    const struct conv *c = ctx;
    size_t first = head * LAYER_HEAD_DIM;
    struct bounded y[LAYER_HEAD_DIM];

    for (size_t row = 0; row < c->rows; row++) {
        for (size_t i = 0; i < LAYER_HEAD_DIM; i++)
            y[i] = conv_step(&c->in, first + i, first + i, c->in.x[row * c->dim + first + i]);
        if (first < c->normed)
            kda_l2_norm(y, LAYER_HEAD_DIM, LAYER_L2_EPS);
        for (size_t i = 0; i < LAYER_HEAD_DIM; i++)
            expect_bounded(c->y, row * c->dim + first + i, rounded(y[i], format_bf16), c->lambda);
    }
    for (size_t i = first * LAYER_WINDOW; i < (first + LAYER_HEAD_DIM) * LAYER_WINDOW; i++)
        expect_exact(c->state_out, i, (double)c->in.state[i]);
}

static void judge_conv(const struct view *v)
{
    size_t dim = (size_t)3 * v->n->qkv;
    struct conv c = {
        .in = {.state = buffer_floats(buffer_of(v, v->set.id[L_CONV_STATE])),
               .x = after(v, v->set.id[L_PACKED]),
               .weight = after(v, IN_CONV),
               .window = LAYER_WINDOW},
        .rows = v->n->rows,
        .dim = dim,
        .normed = v->n->prefill ? 0 : (size_t)2 * v->n->qkv,
        .y = open_stage(v, L_CONV),
        .state_out = open_stage(v, L_CONV_STATE),
        .lambda = lambda_of(v, L_CONV),
    };

    parallel_for(dim / LAYER_HEAD_DIM, v->env->workers, expect_conv_head, &c);
    conv_operands_release(&c.in);
}

/* Prefill: q and k heads normalised, v left as it was. */
static void judge_norm_of_qk(const struct view *v)
{
    float *x = after(v, v->set.id[L_CONV]);
    struct expectation *e = open_stage(v, L_NORMED);
    double lambda = lambda_of(v, L_NORMED);
    size_t dim = (size_t)3 * v->n->qkv, normed = (size_t)2 * v->n->qkv;
    struct bounded y[LAYER_HEAD_DIM];

    for (size_t first = 0; first < v->n->rows * dim; first += LAYER_HEAD_DIM) {
        for (size_t i = 0; i < LAYER_HEAD_DIM; i++)
            y[i] = exactly((double)x[first + i]);
        if (first % dim < normed)
            kda_l2_norm(y, LAYER_HEAD_DIM, LAYER_L2_EPS);
        for (size_t i = 0; i < LAYER_HEAD_DIM; i++)
            if (first % dim < normed)
                expect_bounded(e, first + i, rounded(y[i], format_bf16), lambda);
            else
                expect_exact(e, first + i, y[i].value);
    }
    free(x);
}

/* ---- gate and beta ---- */

static void judge_gate(const struct view *v)
{
    float *raw = after(v, v->set.id[L_F_B]), *dt_bias = after(v, IN_DT_BIAS);
    float *a_log = after(v, IN_A_LOG);
    struct expectation *e = open_stage(v, L_GATE);
    double lambda = lambda_of(v, L_GATE);
    size_t qkv = v->n->qkv;

    for (size_t i = 0; i < v->n->rows * qkv; i++)
        expect_bounded(
            e, i,
            kda_gate_value(raw[i], dt_bias[i % qkv], a_log[i % qkv / LAYER_HEAD_DIM], v->n->lower),
            lambda);
    free(a_log);
    free(dt_bias);
    free(raw);
}

static void judge_beta(const struct view *v)
{
    float *raw = after(v, v->set.id[L_B]);
    struct expectation *e = open_stage(v, L_BETA);
    double lambda = lambda_of(v, L_BETA);

    for (size_t i = 0; i < (size_t)v->n->rows * v->n->heads; i++)
        expect_bounded(e, i, kda_sigmoid(exactly((double)raw[i])), lambda);
    free(raw);
}

/* ---- recurrence and output norm ---- */

/* A stage's buffer after the run as an operand: from `column` of its rows on, `stride` apart (0:
   packed). */
static struct kda_operand operand(const struct outcome *out, int id, size_t column, size_t stride)
{
    enum dtype dtype = out->problem->buffer[id].dtype;
    const char *data = out->data[id];

    return (struct kda_operand){data + column * dtype_size(dtype), dtype, stride};
}

struct kda_sequence layer_core_sequence(const struct outcome *out, const struct layer_sizes *n,
                                        enum layer_twin twin)
{
    struct layer_set set = layer_set_of(out->problem, twin);
    size_t qkv = n->qkv, row = 3 * qkv;
    int conv = set.id[L_CONV];
    bool wide = n->prefill;

    return (struct kda_sequence){
        .heads = n->heads,
        .head_dim = LAYER_HEAD_DIM,
        .tokens = n->rows,
        .query = wide ? operand(out, set.id[L_Q32], 0, 0) : operand(out, conv, 0, row),
        .key = wide ? operand(out, set.id[L_K32], 0, 0) : operand(out, conv, qkv, row),
        .value = wide ? operand(out, set.id[L_V32], 0, 0) : operand(out, conv, 2 * qkv, row),
        .gate = operand(out, set.id[L_GATE], 0, 0),
        .beta = operand(out, set.id[L_BETA], 0, 0),
        .scale = (double)kda_scale(LAYER_HEAD_DIM),
    };
}

static void judge_core(const struct view *v, enum layer_twin twin)
{
    const struct kda_sequence s = layer_core_sequence(v->out, v->n, twin);
    size_t values =
        buffer_of(v, v->set.id[L_CORE])->count + buffer_of(v, v->set.id[L_STATE])->count;
    const struct kda_expected e = {
        .out = open_stage(v, L_CORE),
        .state = open_stage(v, L_STATE),
        .lambda = verdict_lambda(values),
    };

    kda_expect(&s, v->env, buffer_of(v, v->set.id[L_STATE])->init, v->n->prefill ? LAYER_CHUNK : 0,
               0, &e);
}

static void judge_output_norm(const struct view *v)
{
    float *x = after(v, v->set.id[L_CORE]), *gate = after(v, v->set.id[L_G_B]);
    float *weight = after(v, IN_NORM);
    struct expectation *e = open_stage(v, L_NORM);
    double lambda = lambda_of(v, L_NORM);
    struct bounded scratch[LAYER_HEAD_DIM], y[LAYER_HEAD_DIM];

    for (size_t first = 0; first < v->n->rows * v->n->qkv; first += LAYER_HEAD_DIM) {
        kda_o_norm_row(x + first, gate + first, weight, LAYER_HEAD_DIM, LAYER_NORM_EPS, scratch, y);
        for (size_t i = 0; i < LAYER_HEAD_DIM; i++)
            expect_bounded(e, first + i, rounded(y[i], format_bf16), lambda);
    }
    free(weight);
    free(gate);
    free(x);
}

int layer_reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                    struct err *err)
{
    (void)p;
    (void)env;
    (void)g;
    (void)err;
    return 0;
}

void layer_expect(const struct outcome *out, const struct reference_env *env, struct golden *g,
                  const struct layer_sizes *n, enum layer_twin twin)
{
    const struct view v = {out, env, g, n, layer_set_of(out->problem, twin)};

    judge_projections(&v);
    judge_pack(&v);
    judge_conv(&v);
    judge_gate(&v);
    judge_beta(&v);
    if (n->prefill) {
        judge_norm_of_qk(&v);
        judge_split(&v);
    }
    judge_core(&v, twin);
    judge_output_norm(&v);
}
