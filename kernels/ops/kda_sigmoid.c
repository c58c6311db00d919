/* kda_sigmoid_bf16_f32: 1 / (1 + exp(-x)) of n values; the beta of the recurrence. */
#include <stdlib.h>

#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "problem/fill.h"
#include "problem/operator.h"
#include "reference/kda_pointwise.h"

static const struct operator_entry entries[] = {
    {.module = "kda_layer_ops", .entry = "kda_sigmoid_bf16_f32"},
    {.module = NULL},
};

/* model: what a projection gives; all: every bf16 value but NaN in turn, infinities and
   subnormals included. */
static const char *const fills[] = {"model", "all", NULL};

static const struct param params[] = {
    {.key = "n", .fallback = 300, .min = 1, .max = 1u << 28},
    {.key = "gap", .fallback = 5, .max = 1u << 20}, /* elements of dst behind n, to be left alone */
    {.key = "fill", .max = 1, .choices = fills},
    {.key = NULL},
};

enum { SRC, DST };

static void fill_all(struct buffer *src)
{
    uint16_t *bits = src->init;

    for (size_t i = 0; i < src->count; i++) {
        float value = bf16_to_float((uint16_t)i);

        bits[i] = value == value ? (uint16_t)i : 0;
    }
}

static int shape(struct problem *p, struct err *err)
{
    size_t n = case_u32(&p->tc, "n");
    const struct dim none = {NULL, 0};

    if (add_rows(p, "src", DTYPE_BF16, ROLE_IN, (struct dim){"element", n}, none, err) < 0 ||
        add_rows(p, "dst", DTYPE_F32, ROLE_OUT,
                 (struct dim){"element", n + case_u32(&p->tc, "gap")}, none, err) < 0)
        return -1;
    if (case_u32(&p->tc, "fill") == 0)
        fill_normal(&p->buffer[SRC], rng_key(p->tc.seed, "src"), 0, n, 3.0, 0.0);
    else
        fill_all(&p->buffer[SRC]);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    const struct buffer *src = &p->buffer[SRC];
    struct expectation *dst = golden_open(g, p, DST);
    double lambda = verdict_lambda(src->count);

    (void)env;
    (void)err;
    for (size_t i = 0; i < src->count; i++)
        expect_bounded(dst, i, kda_sigmoid(exactly(dtype_load(DTYPE_BF16, src->init, i))), lambda);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct kda_sigmoid_args args = {
        .src = run->ptr[SRC],
        .dst = run->ptr[DST],
        .n = case_u32(&run->problem->tc, "n"),
    };

    return kda_launch_sigmoid(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double n = case_u32(&p->tc, "n");

    cost->read_bytes = 2 * n;
    cost->write_bytes = 4 * n;
    cost->flops = 3 * n;
    cost->unit = COST_FP32;
}

const struct op operator_kda_sigmoid = {
    .name = "kda_sigmoid",
    .summary = "sigmoid of bf16 values into fp32",
    .entries = entries,
    .params = params,
    .contract = "bf16 input, fp32 result; exp(x) within 2 + 1.173 |x| ulp, division within 2",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
