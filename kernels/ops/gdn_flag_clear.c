/* gated_delta_rule_wy4_flag_clear: one word to zero, its neighbours untouched. */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "reference/gated_delta_verify.h"

static const struct operator_entry entries[] = {
    {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_flag_clear"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "words", .fallback = 3, .min = 1, .max = 4096},
    {.key = "at", .fallback = 1, .max = 4095},
    {.key = "before", .fallback = 1, .max = UINT32_MAX}, /* the words' contents */
    {.key = NULL},
};

static int shape(struct problem *p, struct err *err)
{
    uint32_t words = case_u32(&p->tc, "words");

    if (case_u32(&p->tc, "at") >= words)
        return err_set(err, ERR_INPUT, "at=%u is past the %u words", case_u32(&p->tc, "at"), words);
    return gdn_add_words(p, "flags", ROLE_INOUT, words, case_u32(&p->tc, "before"), err);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    (void)env;
    (void)err;
    expect_exact(golden_open(g, p, 0), case_u32(&p->tc, "at"), GDN_DISENGAGED);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    return gdn_flag_clear_launch(run->kernel[0],
                                 run->ptr[0] + 4ull * case_u32(&run->problem->tc, "at"), err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    (void)p;
    *cost = (struct cost){.write_bytes = 4.0, .unit = COST_FP32};
}

const struct op operator_gdn_flag_clear = {
    .name = "gdn_flag_clear",
    .summary = "gated delta rule, the engaged word cleared",
    .entries = entries,
    .params = params,
    .contract = "exact",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
