/*
 * causal_conv1d_update_prefill: many tokens of one sequence, rows in_stride and out_stride apart,
 * the window carried in and out. With twin=1 a copy of the window takes the same tokens in two
 * calls, split after `split` of them, into packed rows: one call = two calls, and strided =
 * packed.
 */
#include "base/parallel.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_conv_common.h"
#include "problem/operator.h"
#include "reference/causal_conv1d.h"

static const struct operator_entry entries[] = {
    {.module = "causal_conv1d", .entry = "causal_conv1d_update_prefill"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "dim", .fallback = 296, .min = 1, .max = 1u << 20},
    {.key = "T", .fallback = 9, .min = 1, .max = 1u << 20},
    {.key = "d_conv", .fallback = 4, .min = 1, .max = CAUSAL_CONV1D_MAX_WINDOW},
    {.key = "in_gap", .fallback = 5, .max = 1u << 20},  /* in_stride = dim + in_gap */
    {.key = "out_gap", .fallback = 3, .max = 1u << 20}, /* out_stride = dim + out_gap */
    {.key = "split", .fallback = 2, .max = 1u << 20},   /* tokens of the twin's first call */
    {.key = "bias", .max = 1, .choices = conv_biases},
    {.key = "state", .max = 1, .choices = conv_states},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: only the kernel under test, for timing */
    {.key = NULL},
};

/* The twins, with twin=1. */
enum { STATE_SPLIT = CONV_BUFFERS, Y_SPLIT };

static int add_buffers(struct problem *p, struct err *err)
{
    size_t dim = case_u32(&p->tc, "dim");
    const struct dim channel = {"channel", dim}, token = {"token", case_u32(&p->tc, "T")};
    const struct dim tap = {"tap", case_u32(&p->tc, "d_conv")};
    const struct dim in = {"channel", dim + case_u32(&p->tc, "in_gap")};
    const struct dim out = {"channel", dim + case_u32(&p->tc, "out_gap")};

    if (add_rows(p, "conv_state", DTYPE_F32, ROLE_INOUT, channel, tap, err) < 0 ||
        add_rows(p, "x", DTYPE_BF16, ROLE_IN, token, in, err) < 0 || conv_add_weights(p, err) < 0 ||
        add_rows(p, "y", DTYPE_BF16, ROLE_OUT, token, out, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    if (add_rows(p, "conv_state_split", DTYPE_F32, ROLE_INOUT, channel, tap, err) < 0)
        return -1;
    return add_rows(p, "y_split", DTYPE_BF16, ROLE_OUT, token, channel, err);
}

static int shape(struct problem *p, struct err *err)
{
    if (add_buffers(p, err) < 0)
        return -1;
    conv_fill_inputs(p);
    if (case_u32(&p->tc, "twin"))
        buffer_copy(&p->buffer[STATE_SPLIT], &p->buffer[CONV_STATE]);
    return 0;
}

struct prefill {
    struct conv_operands in;
    size_t dim, tokens, in_stride;
    struct expectation *state_out[2], *y_out[2];
    size_t out_stride[2];
    unsigned outs;
    double lambda;
};

/* Channels that a worker takes through all tokens side by side: the rows are read in order. */
#define GROUP 64

static void prefill_group(size_t group, void *ctx)
{
    const struct prefill *f = ctx;
    size_t first = group * GROUP, last = first + GROUP < f->dim ? first + GROUP : f->dim;

    for (size_t t = 0; t < f->tokens; t++)
        for (size_t c = first; c < last; c++) {
            struct bounded y = conv_step(&f->in, c, c, f->in.x[t * f->in_stride + c]);

            y = rounded(y, format_bf16);
            for (unsigned out = 0; out < f->outs; out++)
                expect_bounded(f->y_out[out], t * f->out_stride[out] + c, y, f->lambda);
        }
    for (unsigned out = 0; out < f->outs; out++)
        for (size_t tap = first * f->in.window; tap < last * f->in.window; tap++)
            expect_exact(f->state_out[out], tap, (double)f->in.state[tap]);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    bool twin = case_u32(&p->tc, "twin") != 0;
    size_t dim = case_u32(&p->tc, "dim");
    struct prefill f = {
        .in = conv_operands_of(p),
        .dim = dim,
        .tokens = case_u32(&p->tc, "T"),
        .in_stride = p->buffer[CONV_X].dim[1],
        .state_out = {golden_open(g, p, CONV_STATE), twin ? golden_open(g, p, STATE_SPLIT) : NULL},
        .y_out = {golden_open(g, p, CONV_Y), twin ? golden_open(g, p, Y_SPLIT) : NULL},
        .out_stride = {p->buffer[CONV_Y].dim[1], dim},
        .outs = twin ? 2 : 1,
    };

    (void)err;
    f.lambda = verdict_lambda(f.tokens * dim);
    parallel_for((dim + GROUP - 1) / GROUP, env->workers, prefill_group, &f);
    conv_operands_release(&f.in);
    return 0;
}

/* Tokens first..first+count of the case into the packed twin. */
static int launch_part(const struct operator_run *run, struct kda_conv_prefill_args args,
                       size_t first, uint32_t count, struct err *err)
{
    if (count == 0)
        return 0;
    args.conv_state = run->ptr[STATE_SPLIT];
    args.x += first * args.in_stride * dtype_size(DTYPE_BF16);
    args.y = run->ptr[Y_SPLIT] + first * args.dim * dtype_size(DTYPE_BF16);
    args.out_stride = args.dim;
    args.seq_len = count;
    if (kda_launch_conv_prefill(run->kernel[0], &args, err) < 0)
        return err_context(err, "%u tokens from %zu on", count, first);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    const struct test_case *tc = &p->tc;
    uint32_t tokens = case_u32(tc, "T"), split = case_u32(tc, "split");
    const struct kda_conv_prefill_args args = {
        .conv_state = run->ptr[CONV_STATE],
        .x = run->ptr[CONV_X],
        .weight = run->ptr[CONV_WEIGHT],
        .bias = case_u32(tc, "bias") ? run->ptr[CONV_BIAS] : 0,
        .y = run->ptr[CONV_Y],
        .dim = case_u32(tc, "dim"),
        .d_conv = case_u32(tc, "d_conv"),
        .seq_len = tokens,
        .in_stride = (uint32_t)p->buffer[CONV_X].dim[1],
        .out_stride = (uint32_t)p->buffer[CONV_Y].dim[1],
    };

    split = split < tokens ? split : tokens;
    if (kda_launch_conv_prefill(run->kernel[0], &args, err) < 0)
        return -1;
    if (!case_u32(tc, "twin"))
        return 0;
    if (launch_part(run, args, 0, split, err) < 0)
        return -1;
    return launch_part(run, args, split, tokens - split, err);
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct buffer *buffer = out->problem->buffer;

    if (!case_u32(&out->problem->tc, "twin"))
        return;
    for (size_t t = 0; t < buffer[CONV_Y].dim[0]; t++)
        identity_equal(
            rep, out, "one call, strided rows = two calls, packed rows",
            (struct identity_side){.buffer = CONV_Y, .first = t * buffer[CONV_Y].dim[1]},
            (struct identity_side){.buffer = Y_SPLIT, .first = t * buffer[Y_SPLIT].dim[1]},
            buffer[Y_SPLIT].dim[1]);
    identity_equal(rep, out, "state after one call = after two",
                   (struct identity_side){.buffer = CONV_STATE},
                   (struct identity_side){.buffer = STATE_SPLIT}, buffer[CONV_STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    double dim = case_u32(&p->tc, "dim"), tokens = case_u32(&p->tc, "T");
    double d_conv = case_u32(&p->tc, "d_conv"), bias = case_u32(&p->tc, "bias");

    /* The oldest tap is dropped unread. */
    cost->read_bytes = dim * (2 * tokens + 4 * (d_conv - 1) + 2 * d_conv + 2 * bias);
    cost->write_bytes = dim * (2 * tokens + 4 * d_conv);
    cost->flops = dim * tokens * (2 * d_conv + 4); /* silu counted as 4 */
    cost->unit = COST_FP32;
}

const struct op operator_kda_conv_prefill = {
    .name = "kda_conv_prefill",
    .summary = "causal convolution of many tokens of one sequence, silu",
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
