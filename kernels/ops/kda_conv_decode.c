/*
 * causal_conv1d_update_l2norm: one token of a batch of sequences. The window moves by one, silu of
 * the convolution, and for the first qk channels the L2 norm of each head of 128. With twin=1 the
 * sequences are also launched one by one on copies: batch of n = n batches of 1.
 */
#include "base/parallel.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_conv_common.h"
#include "problem/operator.h"
#include "reference/causal_conv1d.h"
#include "reference/kda_pointwise.h"

#define HEAD_DIM 128

static const char *const eps_choices[] = {"1e-6", "1e-5", NULL};
static const float eps_values[] = {1e-6f, 1e-5f};

static const struct operator_entry entries[] = {
    {.module = "causal_conv1d", .entry = "causal_conv1d_update_l2norm"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "batch", .fallback = 3, .min = 1, .max = 65535},
    {.key = "dim", .fallback = 808, .min = 1, .max = 1u << 20},
    {.key = "qk", .fallback = 512, .max = 1u << 20}, /* channels that are normalised */
    {.key = "d_conv", .fallback = 4, .min = 1, .max = CAUSAL_CONV1D_MAX_WINDOW},
    {.key = "eps", .max = 1, .choices = eps_choices},
    {.key = "bias", .max = 1, .choices = conv_biases},
    {.key = "state", .max = 1, .choices = conv_states},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the kernel under test, for timing */
    {.key = NULL},
};

/* The twins, with twin=1. */
enum { STATE_SINGLE = CONV_BUFFERS, Y_SINGLE };

static int add_state(struct problem *p, const char *name, struct err *err)
{
    const struct dim dims[] = {{"seq", case_u32(&p->tc, "batch")},
                               {"channel", case_u32(&p->tc, "dim")},
                               {"tap", case_u32(&p->tc, "d_conv")},
                               {NULL, 0}};
    int id;

    return problem_add(p, name, DTYPE_F32, ROLE_INOUT, dims, &id, err);
}

static int add_buffers(struct problem *p, struct err *err)
{
    const struct dim seq = {"seq", case_u32(&p->tc, "batch")};
    const struct dim channel = {"channel", case_u32(&p->tc, "dim")};

    if (add_state(p, "conv_state", err) < 0 ||
        add_rows(p, "x", DTYPE_BF16, ROLE_IN, seq, channel, err) < 0 ||
        conv_add_weights(p, err) < 0 ||
        add_rows(p, "y", DTYPE_BF16, ROLE_OUT, seq, channel, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    if (add_state(p, "conv_state_single", err) < 0)
        return -1;
    return add_rows(p, "y_single", DTYPE_BF16, ROLE_OUT, seq, channel, err);
}

static int shape(struct problem *p, struct err *err)
{
    uint32_t dim = case_u32(&p->tc, "dim"), qk = case_u32(&p->tc, "qk");

    if (qk > dim || qk % (2 * HEAD_DIM) != 0)
        return err_set(err, ERR_INPUT, "qk=%u must be a multiple of %d, at most dim=%u", qk,
                       2 * HEAD_DIM, dim);
    if (add_buffers(p, err) < 0)
        return -1;
    conv_fill_inputs(p);
    if (case_u32(&p->tc, "twin"))
        buffer_copy(&p->buffer[STATE_SINGLE], &p->buffer[CONV_STATE]);
    return 0;
}

struct update {
    struct conv_operands in;
    size_t batch, dim, qk;
    float eps;
    struct expectation *state_out[2], *y_out[2];
    unsigned outs;
    double lambda;
};

/* One group of HEAD_DIM channels of one sequence. */
static void update_group(size_t index, void *ctx)
{
    const struct update *u = ctx;
    size_t groups = (u->dim + HEAD_DIM - 1) / HEAD_DIM, first = index % groups * HEAD_DIM;
    size_t row = index / groups * u->dim;
    size_t count = u->dim - first < HEAD_DIM ? u->dim - first : HEAD_DIM;
    struct bounded y[HEAD_DIM];

    for (size_t i = 0; i < count; i++)
        y[i] = conv_step(&u->in, first + i, row + first + i, u->in.x[row + first + i]);
    if (first < u->qk)
        kda_l2_norm(y, count, u->eps);
    for (unsigned out = 0; out < u->outs; out++)
        for (size_t i = 0; i < count; i++) {
            size_t at = row + first + i;

            expect_bounded(u->y_out[out], at, rounded(y[i], format_bf16), u->lambda);
            for (size_t tap = at * u->in.window; tap < (at + 1) * u->in.window; tap++)
                expect_exact(u->state_out[out], tap, (double)u->in.state[tap]);
        }
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    bool twin = case_u32(&p->tc, "twin") != 0;
    struct update u = {
        .in = conv_operands_of(p),
        .batch = case_u32(&p->tc, "batch"),
        .dim = case_u32(&p->tc, "dim"),
        .qk = case_u32(&p->tc, "qk"),
        .eps = eps_values[case_u32(&p->tc, "eps")],
        .state_out = {golden_open(g, p, CONV_STATE), twin ? golden_open(g, p, STATE_SINGLE) : NULL},
        .y_out = {golden_open(g, p, CONV_Y), twin ? golden_open(g, p, Y_SINGLE) : NULL},
        .outs = twin ? 2 : 1,
        .lambda = verdict_lambda(p->buffer[CONV_Y].count),
    };

    (void)err;
    parallel_for(u.batch * ((u.dim + HEAD_DIM - 1) / HEAD_DIM), env->workers, update_group, &u);
    conv_operands_release(&u.in);
    return 0;
}

static int launch_single(const struct operator_run *run, struct kda_conv_decode_args args,
                         struct err *err)
{
    uint32_t batch = args.batch;
    dev_ptr x = args.x;

    args.batch = 1;
    for (size_t seq = 0; seq < batch; seq++) {
        size_t row = seq * args.dim;

        args.conv_state = run->ptr[STATE_SINGLE] + row * args.d_conv * dtype_size(DTYPE_F32);
        args.x = x + row * dtype_size(DTYPE_BF16);
        args.y = run->ptr[Y_SINGLE] + row * dtype_size(DTYPE_BF16);
        if (kda_launch_conv_decode(run->kernel[0], &args, err) < 0)
            return err_context(err, "sequence %zu alone", seq);
    }
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct test_case *tc = &run->problem->tc;
    const struct kda_conv_decode_args args = {
        .conv_state = run->ptr[CONV_STATE],
        .x = run->ptr[CONV_X],
        .weight = run->ptr[CONV_WEIGHT],
        .bias = case_u32(tc, "bias") ? run->ptr[CONV_BIAS] : 0,
        .y = run->ptr[CONV_Y],
        .batch = case_u32(tc, "batch"),
        .dim = case_u32(tc, "dim"),
        .d_conv = case_u32(tc, "d_conv"),
        .qk_channels = case_u32(tc, "qk"),
        .head_dim = HEAD_DIM,
        .l2_eps = eps_values[case_u32(tc, "eps")],
    };

    if (kda_launch_conv_decode(run->kernel[0], &args, err) < 0)
        return -1;
    return case_u32(tc, "twin") ? launch_single(run, args, err) : 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct buffer *buffer = out->problem->buffer;

    if (!case_u32(&out->problem->tc, "twin"))
        return;
    identity_equal(rep, out, "batch of n = n batches of 1",
                   (struct identity_side){.buffer = CONV_Y},
                   (struct identity_side){.buffer = Y_SINGLE}, buffer[CONV_Y].count);
    identity_equal(rep, out, "state of a batch of n = states of n batches of 1",
                   (struct identity_side){.buffer = CONV_STATE},
                   (struct identity_side){.buffer = STATE_SINGLE}, buffer[CONV_STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double batch = case_u32(&p->tc, "batch"), dim = case_u32(&p->tc, "dim");
    double qk = case_u32(&p->tc, "qk"), d_conv = case_u32(&p->tc, "d_conv");
    double bias = case_u32(&p->tc, "bias");

    /* The oldest tap is dropped unread. */
    cost->read_bytes = batch * dim * (4 * (d_conv - 1) + 2) + dim * (2 * d_conv + 2 * bias);
    cost->write_bytes = batch * dim * (4 * d_conv + 2);
    cost->flops = batch * (dim * (2 * d_conv + 4) + 3 * qk); /* silu counted as 4 */
    cost->unit = COST_FP32;
}

const struct op operator_kda_conv_decode = {
    .name = "kda_conv_decode",
    .summary = "causal convolution of one token, silu, L2 norm of q and k heads",
    .entries = entries,
    .params = params,
    .contract = CONV_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
