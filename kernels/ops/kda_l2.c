/*
 * l2_norm_bf16: x / sqrt(sum x^2 + eps) of each head of each token, in place, rows `stride` apart.
 * With twin=1 the same rows are also normalised packed: strided = packed.
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
    {.module = "norm", .entry = "l2_norm_bf16"},
    {.module = NULL},
};

static const char *const eps_choices[] = {"1e-6", "1e-5", NULL};
static const float eps_values[] = {1e-6f, 1e-5f};

static const struct param params[] = {
    {.key = "T", .fallback = 5, .min = 1, .max = 65535},
    {.key = "heads", .fallback = 3, .min = 1, .max = 65536},
    {.key = "D", .fallback = 128, .min = 32, .max = 4096},
    {.key = "gap", .fallback = 7, .max = 1u << 20}, /* stride = heads * D + gap */
    {.key = "eps", .max = 1, .choices = eps_choices},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the kernel under test, for timing */
    {.key = NULL},
};

enum { DATA, PACKED };

/* Norms of the heads in turn: mostly ordinary; zero; 1e-3, where an epsilon outside the root
   shows; large, beyond what fp16 holds. */
static double norm_of(size_t row)
{
    static const double norm[] = {1.0, 0.3, 7.0, 0.0, 1.0, 1e-3, 1e7, 1.0};

    return norm[row % 8];
}

static void fill(struct problem *p)
{
    size_t heads = case_u32(&p->tc, "heads"), d = case_u32(&p->tc, "D");
    struct buffer *data = &p->buffer[DATA];
    uint64_t key = rng_key(p->tc.seed, "data");

    for (size_t t = 0; t < data->dim[0]; t++) {
        for (size_t h = 0; h < heads; h++) {
            double scale = norm_of(t * heads + h) / sqrt((double)d);

            fill_normal(data, key, t * data->dim[1] + h * d, d, scale, 0.2 * scale);
        }
        buffer_poison(data, t * data->dim[1] + heads * d, data->dim[1] - heads * d);
    }
}

static void pack(struct problem *p)
{
    const struct buffer *data = &p->buffer[DATA];
    struct buffer *packed = &p->buffer[PACKED];

    for (size_t i = 0; i < packed->count && !packed->hollow; i++) {
        size_t t = i / packed->dim[1], c = i % packed->dim[1];

        dtype_store(DTYPE_BF16, packed->init, i,
                    dtype_load(DTYPE_BF16, data->init, t * data->dim[1] + c));
    }
}

static int shape(struct problem *p, struct err *err)
{
    size_t row = (size_t)case_u32(&p->tc, "heads") * case_u32(&p->tc, "D");
    const struct dim token = {"token", case_u32(&p->tc, "T")};
    bool twin = case_u32(&p->tc, "twin") != 0;

    if (case_u32(&p->tc, "D") % 32 != 0)
        return err_set(err, ERR_INPUT, "D=%u must be a multiple of 32", case_u32(&p->tc, "D"));
    if (add_rows(p, "data", DTYPE_BF16, ROLE_INOUT, token,
                 (struct dim){"channel", row + case_u32(&p->tc, "gap")}, err) < 0)
        return -1;
    if (twin &&
        add_rows(p, "packed", DTYPE_BF16, ROLE_INOUT, token, (struct dim){"channel", row}, err) < 0)
        return -1;
    fill(p);
    if (twin)
        pack(p);
    return 0;
}

struct heads {
    const float *data;
    size_t heads, d, stride;
    float eps;
    struct expectation *strided, *packed; /* packed NULL without the twin */
    double lambda;
};

static void expect_head(size_t row, void *ctx)
{
    const struct heads *c = ctx;
    size_t first = row / c->heads * c->stride + row % c->heads * c->d;
    struct bounded *x = xcalloc(c->d, sizeof(*x));

    for (size_t i = 0; i < c->d; i++)
        x[i] = exactly((double)c->data[first + i]);
    kda_l2_norm(x, c->d, c->eps);
    for (size_t i = 0; i < c->d; i++) {
        struct bounded y = rounded(x[i], format_bf16);

        expect_bounded(c->strided, first + i, y, c->lambda);
        if (c->packed != NULL)
            expect_bounded(c->packed, row * c->d + i, y, c->lambda);
    }
    free(x);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    size_t tokens = case_u32(&p->tc, "T"), heads = case_u32(&p->tc, "heads");
    float *data = buffer_floats(&p->buffer[DATA]);
    struct heads c = {
        .data = data,
        .heads = heads,
        .d = case_u32(&p->tc, "D"),
        .stride = p->buffer[DATA].dim[1],
        .eps = eps_values[case_u32(&p->tc, "eps")],
        .strided = golden_open(g, p, DATA),
        .packed = case_u32(&p->tc, "twin") ? golden_open(g, p, PACKED) : NULL,
    };

    (void)err;
    c.lambda = verdict_lambda(tokens * heads * c.d);
    parallel_for(tokens * heads, env->workers, expect_head, &c);
    free(data);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct kda_l2_args args = {
        .data = run->ptr[DATA],
        .heads = case_u32(&p->tc, "heads"),
        .tokens = case_u32(&p->tc, "T"),
        .head_dim = case_u32(&p->tc, "D"),
        .eps = eps_values[case_u32(&p->tc, "eps")],
        .stride = (uint32_t)p->buffer[DATA].dim[1],
    };

    if (kda_launch_l2(run->kernel[0], &args, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    args.data = run->ptr[PACKED];
    args.stride = (uint32_t)p->buffer[PACKED].dim[1];
    return kda_launch_l2(run->kernel[0], &args, err);
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct buffer *buffer = out->problem->buffer;

    if (!case_u32(&out->problem->tc, "twin"))
        return;
    for (size_t t = 0; t < buffer[DATA].dim[0]; t++)
        identity_equal(rep, out, "strided rows = packed rows",
                       (struct identity_side){.buffer = DATA, .first = t * buffer[DATA].dim[1]},
                       (struct identity_side){.buffer = PACKED, .first = t * buffer[PACKED].dim[1]},
                       buffer[PACKED].dim[1]);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double n = (double)case_u32(&p->tc, "T") * case_u32(&p->tc, "heads") * case_u32(&p->tc, "D");

    cost->read_bytes = 2 * n;
    cost->write_bytes = 2 * n;
    cost->flops = 3 * n;
    cost->unit = COST_FP32;
}

const struct op operator_kda_l2 = {
    .name = "kda_l2",
    .summary = "L2 norm of each head, in place",
    .entries = entries,
    .params = params,
    .contract =
        "bf16 in place; fp32 sum of squares in any order, multiply-adds fused or not; root, "
        "division or rsqrtf within 2 ulp; one rounding to bf16",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
