/*
 * The other way to accept some tokens: flag_clear, the parent, then fold with the word still
 * clear. na < k_rows accepted tokens bring back the parent's state after them; otherwise, and for
 * na = 0, the state after token 3 stays.
 */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "problem/fill.h"
#include "reference/gated_delta_verify.h"

enum { CLEAR, PARENT, FOLD };

static const struct operator_entry entries[] = {
    [CLEAR] = {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_flag_clear"},
    [PARENT] = {.module = "gated_delta_rule_wy4", .entry = "gated_delta_rule_wy4"},
    [FOLD] = {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_fold"},
    {.module = NULL},
};

static const struct param params[] = {
    GDN_PARAM_HEADS,
    GDN_PARAM_GATE,
    GDN_PARAM_NA,
    {.key = "k_rows", .fallback = GDN_VERIFY_ROWS, .min = 1, .max = GDN_VERIFY_ROWS},
    GDN_PARAM_SLAB,
    GDN_PARAM_STASH,
    {.key = NULL},
};

static const char *const pools[] = {"h_inter0", "h_inter1", "h_inter2", "h_state"};

static int shape(struct problem *p, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);

    if (gdn_shape_check(p, err) < 0 || gdn_add_operands(p, GDN_SLICED, s.rows, err) < 0)
        return -1;
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        if (gdn_add_states(p, pools[t], t < 3 ? ROLE_OUT : ROLE_INOUT, true, err) < 0)
            return -1;
    if (gdn_add_table(p, "h_table", pools + 3, 1, err) < 0 ||
        gdn_add_table(p, "hi_tables", pools, 3, err) < 0 ||
        gdn_add_stash(p, "stash", ROLE_IN, err) < 0 || /* poison: nobody stashed */
        gdn_add_accepts(p, "na_tab", 1, err) < 0 ||
        gdn_add_words(p, "engaged_flag", ROLE_INOUT, 1, 1, err) < 0)
        return -1;
    return gdn_add_output(p, "output", 1, err);
}

/* Index of the pool whose contents sequence seq ends up with. */
static int final_pool(const struct problem *p, size_t seq)
{
    uint32_t na = gdn_word(p, "na_tab", seq);

    return na > 0 && na < case_u32(&p->tc, "k_rows") ? (int)na - 1 : 3;
}

struct targets {
    struct expectation *output, *state[GDN_VERIFY_ROWS];
    double lambda;
};

static void emit(const struct gdn_run *run, size_t seq, uint32_t vh, const struct gdn_results *r)
{
    const struct targets *to = run->ctx;
    struct gdn_shape s = gdn_shape_of(run->problem);
    size_t at = gdn_state_at(&s, true, seq, vh);

    gdn_expect_output(to->output, &s, seq * GDN_VERIFY_ROWS, vh, r->output, to->lambda);
    for (int t = 0; t < 3; t++)
        gdn_expect(to->state[t], at, GDN_HEAD_STATE, r->state[t], to->lambda);
    gdn_expect(to->state[3], at, GDN_HEAD_STATE, r->state[final_pool(run->problem, seq)],
               to->lambda);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t values = GDN_VERIFY_ROWS * s.batch * s.nv * (GDN_HEAD_STATE + GDN_DIM);
    struct targets to = {.output = golden_open(g, p, problem_find(p, "output")),
                         .lambda = verdict_lambda(values)};
    struct gdn_run run = {.problem = p,
                          .env = env,
                          .layout = GDN_SLICED,
                          .pool = "h_state",
                          .table = true,
                          .states = true,
                          .emit = emit,
                          .ctx = &to};

    (void)err;
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        to.state[t] = golden_open(g, p, problem_find(p, pools[t]));
    expect_exact(golden_open(g, p, problem_find(p, "engaged_flag")), 0, GDN_DISENGAGED);
    gdn_run_heads(&run);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_views v = gdn_views_of(p, GDN_SLICED);
    struct gdn_wy4_args parent;
    struct gdn_fold_args fold;

    gdn_wy4_operands(run, &v, 0, s.batch, &parent);
    parent.state_is_table = 1;
    parent.h_state = run->ptr[problem_find(p, "h_table")];
    parent.output = run->ptr[problem_find(p, "output")];
    gdn_fold_operands(run, &fold);
    fold.h_table = parent.h_state;
    fold.stash = run->ptr[problem_find(p, "stash")];
    fold.na_tab = run->ptr[problem_find(p, "na_tab")];
    fold.hi_tables = run->ptr[problem_find(p, "hi_tables")];
    fold.engaged_flag = run->ptr[problem_find(p, "engaged_flag")];
    fold.k_rows = case_u32(&p->tc, "k_rows");
    for (uint32_t t = 0; t < 3; t++)
        parent.h_inter[t] = fold.hi_tables + 8ull * t * s.slab;
    if (gdn_flag_clear_launch(run->kernel[CLEAR], fold.engaged_flag, err) < 0 ||
        gdn_wy4_launch(run->kernel[PARENT], &parent, err) < 0)
        return -1;
    return gdn_fold_launch(run->kernel[FOLD], &fold, err);
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct problem *p = out->problem;
    struct gdn_shape s = gdn_shape_of(p);

    for (size_t seq = 0; seq < s.batch; seq++) {
        size_t at = gdn_state_at(&s, true, seq, 0);
        struct identity_side state = {.buffer = problem_find(p, "h_state"), .first = at};
        struct identity_side slab = {.buffer = problem_find(p, pools[final_pool(p, seq)]),
                                     .first = at};
        identity_equal(rep, out, "the restored state = the parent's slab", state, slab,
                       s.nv * GDN_HEAD_STATE);
    }
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);
    double states = gdn_states_bytes(&s);

    gdn_verify_cost(&s, cost);
    /* What the fold copies back was written just before, to where it was written before. */
    cost->read_bytes += states;
    cost->write_bytes += GDN_VERIFY_ROWS * states;
}

const struct op operator_gdn_restore = {
    .name = "gdn_restore",
    .summary = "gated delta rule: the parent, then a partial accept restored from its slabs",
    .entries = entries,
    .params = params,
    .contract = GDN_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
