/*
 * kda_o_norm_gated_bf16: x / sqrt(mean(x^2) + eps) * weight * sigmoid(gate) of each row. With
 * twin=1 the rows are also taken in two launches: a row does not depend on its neighbours.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "problem/fill.h"
#include "problem/operator.h"
#include "reference/kda_pointwise.h"

static const struct operator_entry entries[] = {
    {.module = "kda_layer_ops", .entry = "kda_o_norm_gated_bf16"},
    {.module = NULL},
};

static const char *const eps_choices[] = {"1e-5", "1e-6", NULL};
static const float eps_values[] = {1e-5f, 1e-6f};

static const struct param params[] = {
    {.key = "rows", .fallback = 21, .min = 1, .max = 1u << 24},
    {.key = "D", .fallback = 128, .min = 32, .max = 1024},
    {.key = "eps", .max = 1, .choices = eps_choices},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the kernel under test, for timing */
    {.key = NULL},
};

enum { X, GATE, WEIGHT, OUT, OUT_SPLIT };

/* Root mean squares of the rows in turn: mostly ordinary; zero; that of norm 1e-3 and that of
   the epsilon itself, where an epsilon outside the root shows; large. */
static double rms_of(size_t row, size_t d)
{
    const double rms[] = {1.0, 0.1, 5.0, 0.0, 1.0, 1e-3 / sqrt((double)d), 1e-3, 1e3};

    return rms[row % 8];
}

static void fill_gate(struct buffer *gate, uint64_t key)
{
    static const double extreme[] = {-30.0, 30.0, -88.0, 100.0, -0.0, 1e3};

    fill_normal(gate, key, 0, gate->count, 2.0, 0.0);
    for (size_t i = 0; i < gate->count; i += 29)
        dtype_store(gate->dtype, gate->init, i, extreme[rng_below(key, i, 6)]);
}

static int shape(struct problem *p, struct err *err)
{
    size_t rows = case_u32(&p->tc, "rows"), d = case_u32(&p->tc, "D");
    const struct dim row = {"row", rows}, channel = {"channel", d}, none = {NULL, 0};
    uint64_t seed = p->tc.seed;

    if (d % 32 != 0)
        return err_set(err, ERR_INPUT, "D=%zu must be a multiple of 32", d);
    if (add_rows(p, "x", DTYPE_F32, ROLE_IN, row, channel, err) < 0 ||
        add_rows(p, "gate", DTYPE_BF16, ROLE_IN, row, channel, err) < 0 ||
        add_rows(p, "weight", DTYPE_BF16, ROLE_IN, channel, none, err) < 0 ||
        add_rows(p, "out", DTYPE_BF16, ROLE_OUT, row, channel, err) < 0)
        return -1;
    if (case_u32(&p->tc, "twin") &&
        add_rows(p, "out_split", DTYPE_BF16, ROLE_OUT, row, channel, err) < 0)
        return -1;
    for (size_t r = 0; r < rows; r++)
        fill_normal(&p->buffer[X], rng_key(seed, "x"), r * d, d, rms_of(r, d), 0.2 * rms_of(r, d));
    fill_gate(&p->buffer[GATE], rng_key(seed, "gate"));
    fill_normal(&p->buffer[WEIGHT], rng_key(seed, "weight"), 0, d, 0.4, 0.6);
    return 0;
}

struct rows {
    const float *x, *gate, *weight;
    size_t d;
    float eps;
    struct expectation *out[2];
    unsigned outs;
    double lambda;
};

static void expect_row(size_t row, void *ctx)
{
    const struct rows *c = ctx;
    size_t first = row * c->d;
    struct bounded *y = xcalloc(2 * c->d, sizeof(*y));

    kda_o_norm_row(c->x + first, c->gate + first, c->weight, c->d, c->eps, y + c->d, y);
    for (size_t i = 0; i < c->d; i++)
        for (unsigned out = 0; out < c->outs; out++)
            expect_bounded(c->out[out], first + i, rounded(y[i], format_bf16), c->lambda);
    free(y);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    bool twin = case_u32(&p->tc, "twin") != 0;
    float *x = buffer_floats(&p->buffer[X]), *gate = buffer_floats(&p->buffer[GATE]);
    float *weight = buffer_floats(&p->buffer[WEIGHT]);
    struct rows c = {
        .x = x,
        .gate = gate,
        .weight = weight,
        .d = case_u32(&p->tc, "D"),
        .eps = eps_values[case_u32(&p->tc, "eps")],
        .out = {golden_open(g, p, OUT), twin ? golden_open(g, p, OUT_SPLIT) : NULL},
        .outs = twin ? 2 : 1,
        .lambda = verdict_lambda(p->buffer[OUT].count),
    };

    (void)err;
    parallel_for(case_u32(&p->tc, "rows"), env->workers, expect_row, &c);
    free(weight);
    free(gate);
    free(x);
    return 0;
}

/* Rows first..first+count into the twin. */
static int launch_part(const struct operator_run *run, struct kda_o_norm_args args, size_t first,
                       uint32_t count, struct err *err)
{
    size_t skipped = first * args.head_dim;

    if (count == 0)
        return 0;
    args.x += skipped * dtype_size(DTYPE_F32);
    args.gate += skipped * dtype_size(DTYPE_BF16);
    args.out = run->ptr[OUT_SPLIT] + skipped * dtype_size(DTYPE_BF16);
    args.rows = count;
    return kda_launch_o_norm(run->kernel[0], &args, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct test_case *tc = &run->problem->tc;
    uint32_t rows = case_u32(tc, "rows"), half = rows / 2;
    const struct kda_o_norm_args args = {
        .x = run->ptr[X],
        .gate = run->ptr[GATE],
        .weight = run->ptr[WEIGHT],
        .out = run->ptr[OUT],
        .rows = rows,
        .head_dim = case_u32(tc, "D"),
        .eps = eps_values[case_u32(tc, "eps")],
    };

    if (kda_launch_o_norm(run->kernel[0], &args, err) < 0)
        return -1;
    if (!case_u32(tc, "twin"))
        return 0;
    if (launch_part(run, args, 0, half, err) < 0)
        return -1;
    return launch_part(run, args, half, rows - half, err);
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    if (case_u32(&out->problem->tc, "twin"))
        identity_equal(
            rep, out, "all rows at once = in two launches", (struct identity_side){.buffer = OUT},
            (struct identity_side){.buffer = OUT_SPLIT}, out->problem->buffer[OUT].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double n = (double)p->buffer[OUT].count;

    cost->read_bytes = 6 * n + 2 * case_u32(&p->tc, "D");
    cost->write_bytes = 2 * n;
    cost->flops = 8 * n; /* square and sum, three products, sigmoid counted as 3 */
    cost->unit = COST_FP32;
}

const struct op operator_kda_o_norm = {
    .name = "kda_o_norm",
    .summary = "gated RMS norm of each row of the recurrence's output",
    .entries = entries,
    .params = params,
    .contract = "fp32 input, bf16 gate, weight and result; fp32 sum of squares in any order, "
                "multiply-adds fused or not; exp(x) within 2 + 1.173 |x| ulp, root, "
                "division and rsqrtf within 2; one "
                "rounding to bf16",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
