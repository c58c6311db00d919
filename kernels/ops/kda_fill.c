/* kda_fill_f32: n elements of one value, and none behind them. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_move_common.h"
#include "problem/operator.h"
#include "reference/kda_move.h"

static const struct operator_entry entries[] = {
    {.module = "kda_layer_ops", .entry = "kda_fill_f32"},
    {.module = NULL},
};

static const char *const value_choices[] = {"zero",     "half",       "negative", "subnormal",
                                            "infinite", "minus_zero", NULL};
static const float fill_values[] = {0.0f, 0.5f, -3.0f, 0x1p-149f, HUGE_VALF, -0.0f};

static const struct param params[] = {
    {.key = "n", .fallback = 300, .min = 1, .max = 1u << 28},
    {.key = "gap", .fallback = 5, .max = 1u << 20}, /* elements behind n, to be left alone */
    {.key = "value", .max = 5, .choices = value_choices},
    {.key = NULL},
};

enum { DST };

static int shape(struct problem *p, struct err *err)
{
    size_t n = case_u32(&p->tc, "n");

    return add_rows(p, "dst", DTYPE_F32, ROLE_OUT,
                    (struct dim){"element", n + case_u32(&p->tc, "gap")}, (struct dim){NULL, 0},
                    err);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    size_t n = case_u32(&p->tc, "n");
    float *values = xcalloc(n, sizeof(*values));

    (void)env;
    (void)err;
    kda_fill_values(values, n, fill_values[case_u32(&p->tc, "value")]);
    expect_values(golden_open(g, p, DST), values, n);
    free(values);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct kda_fill_args args = {
        .dst = run->ptr[DST],
        .n = case_u32(&run->problem->tc, "n"),
        .value = fill_values[case_u32(&run->problem->tc, "value")],
    };

    return kda_launch_fill(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    cost->read_bytes = 0;
    cost->write_bytes = 4.0 * case_u32(&p->tc, "n");
    cost->flops = 0;
    cost->unit = COST_FP32;
}

const struct op operator_kda_fill = {
    .name = "kda_fill",
    .summary = "one fp32 value into n elements",
    .entries = entries,
    .params = params,
    .contract = "exact",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
