/*
 * kda_recurrent_decode_bf16_smem: T tokens with one read and one write of the state each, VPB
 * value columns a block. The plain kernel takes the same tokens beside it: the bits must be the
 * same.
 */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_steps_common.h"
#include "problem/operator.h"
#include "reference/kda_recurrence.h"

static const struct operator_entry entries[] = {
    {.module = "kda_recurrent", .entry = "kda_recurrent_decode_bf16_smem"},
    {.module = "kda_recurrent", .entry = "kda_recurrent_decode_bf16"},
    {.module = NULL},
};
enum { KERNEL_SMEM, KERNEL_PLAIN };

static const struct param params[] = {
    {.key = "H", .fallback = 2, .min = 1, .max = 65536},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 3, .min = 1, .max = 1u << 20},
    {.key = "VPB", .fallback = KDA_SMEM_COLUMNS, .min = 1, .max = 256},
    KDA_REGIME_PARAMS,
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: without the plain kernel, for timing */
    {.key = NULL},
};

/* The plain kernel takes the same inputs. */
enum { STATE_PLAIN = STEPS_SET, OUT_PLAIN };

static int shape(struct problem *p, struct err *err)
{
    static const char *const names[STEPS_SET] = {"query", "key",   "value", "gate",
                                                 "beta",  "state", "out"};
    struct kda_sizes n = kda_sizes_of(p, false);
    uint32_t vpb = case_u32(&p->tc, "VPB");

    if (n.head_dim % vpb != 0)
        return err_set(err, ERR_INPUT, "VPB=%u must divide D=%u", vpb, n.head_dim);
    if (kda_add_steps(p, names, &n, err) < 0 || kda_fill_steps(p, &n, err) < 0)
        return -1;
    if (!case_u32(&p->tc, "twin"))
        return 0;
    if (kda_add_state(p, "state_plain", ROLE_INOUT, &n, err) < 0 ||
        kda_add_vectors(p, "out_plain", DTYPE_F32, ROLE_OUT, &n, err) < 0)
        return -1;
    buffer_copy(&p->buffer[STATE_PLAIN], &p->buffer[STEPS_STATE]);
    return 0;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    (void)err;
    const struct kda_expected e = kda_expect_steps(p, env, g, 0);

    if (!case_u32(&p->tc, "twin"))
        return 0;
    kda_expect_same(golden_open(g, p, OUT_PLAIN), e.out, p->buffer[STEPS_OUT].count);
    kda_expect_same(golden_open(g, p, STATE_PLAIN), e.state, p->buffer[STEPS_STATE].count);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct test_case *tc = &run->problem->tc;

    for (size_t t = 0; t < case_u32(tc, "T"); t++) {
        const struct kda_recurrent_args smem = kda_step_args(run, 0, t);
        struct kda_recurrent_args plain = smem;
        if (kda_launch_recurrent_smem(run->kernel[KERNEL_SMEM], &smem, case_u32(tc, "VPB"), err) <
            0)
            return err_context(err, "token %zu", t);
        if (!case_u32(tc, "twin"))
            continue;
        plain.state = run->ptr[STATE_PLAIN];
        plain.out += run->ptr[OUT_PLAIN] - run->ptr[STEPS_OUT];
        if (kda_launch_recurrent(run->kernel[KERNEL_PLAIN], &plain, err) < 0)
            return err_context(err, "token %zu, plain", t);
    }
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct buffer *buffer = out->problem->buffer;

    if (!case_u32(&out->problem->tc, "twin"))
        return;
    identity_equal(rep, out, "smem output = plain output",
                   (struct identity_side){.buffer = STEPS_OUT},
                   (struct identity_side){.buffer = OUT_PLAIN}, buffer[STEPS_OUT].count);
    identity_equal(rep, out, "smem state = plain state",
                   (struct identity_side){.buffer = STEPS_STATE},
                   (struct identity_side){.buffer = STATE_PLAIN}, buffer[STEPS_STATE].count);
}

static void cost(const struct problem *p, struct cost *cost)
{
    kda_steps_cost(p, cost);
}

const struct op operator_kda_recurrent_smem = {
    .name = "kda_recurrent_smem",
    .summary = "KDA token recurrence with the state column in shared memory",
    .entries = entries,
    .params = params,
    .contract = KDA_RECURRENCE_CONTRACT,
    .reference_version = 2,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
