/* gated_delta_rule_wy4_woa: four tokens, the output and a stash; no state is written. */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "problem/fill.h"
#include "reference/gated_delta_verify.h"

static const struct operator_entry entries[] = {
    {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_woa"},
    {.module = NULL},
};

static const struct param params[] = {
    GDN_PARAM_HEADS,
    GDN_PARAM_GATE,
    GDN_PARAM_LAYOUT,
    GDN_PARAM_SPECIAL,
    {.key = "state", .max = 1, .choices = gdn_states},
    GDN_PARAM_SLAB,
    GDN_PARAM_STASH,
    {.key = NULL},
};

static const char *const pool[] = {"h_state"};

static int shape(struct problem *p, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);

    if (gdn_shape_check(p, err) < 0 ||
        gdn_add_operands(p, (enum gdn_layout)case_u32(&p->tc, "layout"), s.rows, err) < 0 ||
        gdn_add_states(p, pool[0], ROLE_IN, true, err) < 0 ||
        gdn_add_table(p, "h_table", pool, 1, err) < 0 || gdn_add_output(p, "output", 1, err) < 0 ||
        gdn_add_stash(p, "stash", ROLE_OUT, err) < 0)
        return -1;
    return gdn_add_words(p, "engaged_flag", ROLE_OUT, 1, 0, err);
}

struct targets {
    struct expectation *output, *stash;
    double lambda;
};

static void emit(const struct gdn_run *run, size_t seq, uint32_t vh, const struct gdn_results *r)
{
    const struct targets *to = run->ctx;
    struct gdn_shape s = gdn_shape_of(run->problem);

    gdn_expect_output(to->output, &s, seq * GDN_VERIFY_ROWS, vh, r->output, to->lambda);
    gdn_expect_stash(to->stash, run, seq, vh, r, to->lambda);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    struct targets to = {.output = golden_open(g, p, problem_find(p, "output")),
                         .stash = golden_open(g, p, problem_find(p, "stash")),
                         .lambda = verdict_lambda(2 * s.rows * s.nv * GDN_DIM)};
    struct gdn_run run = {.problem = p,
                          .env = env,
                          .layout = (enum gdn_layout)case_u32(&p->tc, "layout"),
                          .pool = pool[0],
                          .table = true,
                          .emit = emit,
                          .ctx = &to};

    (void)err;
    expect_exact(golden_open(g, p, problem_find(p, "engaged_flag")), 0, GDN_ENGAGED);
    gdn_run_heads(&run);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_views v = gdn_views_of(p, (enum gdn_layout)case_u32(&p->tc, "layout"));
    struct gdn_woa_args args;

    gdn_woa_operands(run, &v, 0, s.batch, &args);
    args.h_table = run->ptr[problem_find(p, "h_table")];
    args.output = run->ptr[problem_find(p, "output")];
    args.stash = run->ptr[problem_find(p, "stash")];
    args.engaged_flag = run->ptr[problem_find(p, "engaged_flag")];
    return gdn_woa_launch(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);

    gdn_verify_cost(&s, cost);
    cost->read_bytes += gdn_states_bytes(&s);
    cost->write_bytes += 4.0 * s.batch * (double)gdn_stash_floats(s.nk, s.nv, GDN_DIM, GDN_DIM);
}

const struct op operator_gdn_woa = {
    .name = "gdn_woa",
    .summary = "gated delta rule, write-on-accept verify of 4 tokens: output and stash",
    .entries = entries,
    .params = params,
    .contract = GDN_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
