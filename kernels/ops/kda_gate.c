/*
 * kda_gate_bf16: the log decay lower_bound * sigmoid(exp(A_log[h]) * (g_raw + dt_bias[h,d])). With
 * twin=1 the tokens are also taken in two launches: a token's gate does not depend on its
 * neighbours.
 */
#include <stdlib.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "problem/operator.h"
#include "reference/detmath.h"
#include "reference/kda_pointwise.h"

static const struct operator_entry entries[] = {
    {.module = "kda_gate", .entry = "kda_gate_bf16"},
    {.module = NULL},
};

static const char *const lower_choices[] = {"-5", "-2.5", "-1", NULL};
static const float lower_values[] = {-5.0f, -2.5f, -1.0f};

/*
 * model    exp(A_log) uniform in 0..16, dt log-uniform in 1e-3..0.1, raw gate of unit variance
 * strong   exp(A_log) up to 201, as trained models reach, and raw gates that reach the sigmoid's
 * whole range lazy     log decays near 0 zero     raw gates so low that the log decay underflows
 * to 0: a decay of exactly 1 lower    raw gates so high that the log decay is the lower bound
 * extreme  zeros of both signs, values where exp() over- and underflows, and far beyond mixed
 * element by element one of the above, with strong heads
 */
static const char *const regimes[] = {"model", "strong",  "lazy",  "zero",
                                      "lower", "extreme", "mixed", NULL};
enum regime { MODEL, STRONG, LAZY, ZERO, LOWER, EXTREME, MIXED };

static const struct param params[] = {
    {.key = "T", .fallback = 3, .min = 1, .max = 1u << 20},
    {.key = "H", .fallback = 2, .min = 1, .max = 65536},
    {.key = "D", .fallback = 128, .min = 1, .max = 128},
    {.key = "lower", .max = 2, .choices = lower_choices},
    {.key = "gate", .max = 6, .choices = regimes},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the kernel under test, for timing */
    {.key = NULL},
};

enum { G_RAW, DT_BIAS, A_LOG, OUT, OUT_SPLIT };

static int add_gates(struct problem *p, const char *name, enum dtype dtype, enum role role,
                     struct err *err)
{
    const struct dim dims[] = {{"token", case_u32(&p->tc, "T")},
                               {"head", case_u32(&p->tc, "H")},
                               {"channel", case_u32(&p->tc, "D")},
                               {NULL, 0}};
    int id;

    return problem_add(p, name, dtype, role, dims, &id, err);
}

/* `rate` is the head's exp(A_log), `bias` the channel's dt_bias. */
static double raw_gate(enum regime regime, uint64_t key, uint64_t i, double rate, double bias)
{
    static const double extreme[] = {0.0,  -0.0,  1e-3, -1.0, 17.0, -30.0,
                                     88.0, -88.0, 1e3,  -1e3, 1e6,  -1e6};

    switch (regime) {
    case MODEL:
        return rng_normal(key, i);
    case STRONG:
        return 6.0 * rng_normal(key, i) / rate - bias;
    case LAZY:
        return (rng_normal(key, i) - 6.0) / rate - bias;
    case ZERO:
        return -1e4;
    case LOWER:
        return 1e4;
    case EXTREME:
        return extreme[rng_below(key, i, sizeof(extreme) / sizeof(extreme[0]))];
    case MIXED:
        break;
    }
    regime = (enum regime)rng_below(rng_bits(key, UINT64_MAX), i, MIXED);
    return raw_gate(regime, key, i, rate, bias);
}

/* exp(A_log) of a head. Never 0, so that its logarithm is finite. */
static double rate_of(enum regime regime, uint64_t key, uint64_t head)
{
    if (regime == STRONG || regime == MIXED)
        return 16.0 + (201.0 - 16.0) * rng_uniform(key, head);
    return 0.01 + 16.0 * rng_uniform(key, head);
}

/* The inverse softplus of dt, which an initialised model stores. */
static double dt_bias_of(uint64_t key, uint64_t i)
{
    double dt = det_exp(det_log(1e-3) + det_log(100.0) * rng_uniform(key, i));

    return dt + det_log(-det_expm1(-dt));
}

static void fill(struct problem *p)
{
    enum regime regime = (enum regime)case_u32(&p->tc, "gate");
    struct buffer *g_raw = &p->buffer[G_RAW], *dt_bias = &p->buffer[DT_BIAS];
    struct buffer *a_log = &p->buffer[A_LOG];
    uint64_t seed = p->tc.seed, rates = rng_key(seed, "A_log");
    uint64_t biases = rng_key(seed, "dt_bias"), gates = rng_key(seed, "g_raw");

    for (size_t h = 0; h < a_log->count; h++)
        dtype_store(DTYPE_F32, a_log->init, h, det_log(rate_of(regime, rates, h)));
    for (size_t i = 0; i < dt_bias->count; i++)
        dtype_store(DTYPE_F32, dt_bias->init, i, dt_bias_of(biases, i));
    for (size_t i = 0; i < g_raw->count && !p->hollow; i++) {
        size_t at = i % dt_bias->count, head = at / dt_bias->dim[1];

        dtype_store(DTYPE_BF16, g_raw->init, i,
                    raw_gate(regime, gates, i, rate_of(regime, rates, head),
                             dtype_load(DTYPE_F32, dt_bias->init, at)));
    }
}

static int shape(struct problem *p, struct err *err)
{
    const struct dim head = {"head", case_u32(&p->tc, "H")}, none = {NULL, 0};
    const struct dim channel = {"channel", case_u32(&p->tc, "D")};

    if (add_gates(p, "g_raw", DTYPE_BF16, ROLE_IN, err) < 0 ||
        add_rows(p, "dt_bias", DTYPE_F32, ROLE_IN, head, channel, err) < 0 ||
        add_rows(p, "A_log", DTYPE_F32, ROLE_IN, head, none, err) < 0 ||
        add_gates(p, "out", DTYPE_F32, ROLE_OUT, err) < 0)
        return -1;
    if (case_u32(&p->tc, "twin") && add_gates(p, "out_split", DTYPE_F32, ROLE_OUT, err) < 0)
        return -1;
    fill(p);
    return 0;
}

struct gates {
    const float *g_raw, *dt_bias, *a_log;
    size_t heads, d;
    float lower;
    struct expectation *out[2];
    unsigned outs;
    double lambda;
};

/* One head of one token. */
static void expect_gates(size_t row, void *ctx)
{
    const struct gates *c = ctx;
    size_t head = row % c->heads;

    for (size_t d = 0; d < c->d; d++) {
        size_t i = row * c->d + d;
        struct bounded y =
            kda_gate_value(c->g_raw[i], c->dt_bias[head * c->d + d], c->a_log[head], c->lower);

        for (unsigned out = 0; out < c->outs; out++)
            expect_bounded(c->out[out], i, y, c->lambda);
    }
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    bool twin = case_u32(&p->tc, "twin") != 0;
    float *g_raw = buffer_floats(&p->buffer[G_RAW]), *a_log = buffer_floats(&p->buffer[A_LOG]);
    float *dt_bias = buffer_floats(&p->buffer[DT_BIAS]);
    struct gates c = {
        .g_raw = g_raw,
        .dt_bias = dt_bias,
        .a_log = a_log,
        .heads = case_u32(&p->tc, "H"),
        .d = case_u32(&p->tc, "D"),
        .lower = lower_values[case_u32(&p->tc, "lower")],
        .out = {golden_open(g, p, OUT), twin ? golden_open(g, p, OUT_SPLIT) : NULL},
        .outs = twin ? 2 : 1,
        .lambda = verdict_lambda(p->buffer[OUT].count),
    };

    (void)err;
    parallel_for(case_u32(&p->tc, "T") * c.heads, env->workers, expect_gates, &c);
    free(a_log);
    free(dt_bias);
    free(g_raw);
    return 0;
}

/* Tokens first..first+count into the twin. */
static int launch_part(const struct operator_run *run, struct kda_gate_args args, size_t first,
                       uint32_t count, struct err *err)
{
    size_t skipped = first * args.heads * args.head_dim;

    if (count == 0)
        return 0;
    args.g_raw += skipped * dtype_size(DTYPE_BF16);
    args.out = run->ptr[OUT_SPLIT] + skipped * dtype_size(DTYPE_F32);
    args.tokens = count;
    return kda_launch_gate(run->kernel[0], &args, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct test_case *tc = &run->problem->tc;
    uint32_t tokens = case_u32(tc, "T"), half = tokens / 2;
    const struct kda_gate_args args = {
        .g_raw = run->ptr[G_RAW],
        .dt_bias = run->ptr[DT_BIAS],
        .a_log = run->ptr[A_LOG],
        .out = run->ptr[OUT],
        .tokens = tokens,
        .heads = case_u32(tc, "H"),
        .head_dim = case_u32(tc, "D"),
        .lower_bound = lower_values[case_u32(tc, "lower")],
    };

    if (kda_launch_gate(run->kernel[0], &args, err) < 0)
        return -1;
    if (!case_u32(tc, "twin"))
        return 0;
    if (launch_part(run, args, 0, half, err) < 0)
        return -1;
    return launch_part(run, args, half, tokens - half, err);
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    if (case_u32(&out->problem->tc, "twin"))
        identity_equal(
            rep, out, "all tokens at once = in two launches", (struct identity_side){.buffer = OUT},
            (struct identity_side){.buffer = OUT_SPLIT}, out->problem->buffer[OUT].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double n = (double)p->buffer[OUT].count, heads = case_u32(&p->tc, "H");

    cost->read_bytes = 2 * n + 4 * heads * (case_u32(&p->tc, "D") + 1.0);
    cost->write_bytes = 4 * n;
    cost->flops = 6 * n; /* sum, product, sigmoid counted as 3, product */
    cost->unit = COST_FP32;
}

const struct op operator_kda_gate = {
    .name = "kda_gate",
    .summary = "log decay per key channel from the raw gate",
    .entries = entries,
    .params = params,
    .contract =
        "bf16 raw gate, fp32 parameters and result; fp32, multiply-adds fused or not; exp(x) "
        "within 2 + 1.173 |x| ulp, division within 2",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
