/*
 * One speculative step as an engine takes it, both ways on the same inputs: flag_clear, woa and
 * fold on one copy of the states, the parent on another. Bit for bit: woa's output is the
 * parent's, and the state that fold leaves is the parent's after the accepted tokens.
 */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "problem/fill.h"
#include "reference/gated_delta_verify.h"

enum { CLEAR, WOA, PARENT, FOLD };

static const struct operator_entry entries[] = {
    [CLEAR] = {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_flag_clear"},
    [WOA] = {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_woa"},
    [PARENT] = {.module = "gated_delta_rule_wy4", .entry = "gated_delta_rule_wy4"},
    [FOLD] = {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_fold"},
    {.module = NULL},
};

static const struct param params[] = {
    GDN_PARAM_HEADS,   GDN_PARAM_GATE, GDN_PARAM_NA,    GDN_PARAM_LAYOUT,
    GDN_PARAM_SPECIAL, GDN_PARAM_SLAB, GDN_PARAM_STASH, {.key = NULL},
};

/* The parent's states after tokens 0..3, and the state that woa and fold work on. */
static const char *const pools[] = {"h_inter0", "h_inter1", "h_inter2", "h_parent"};
static const char *const woa_pool[] = {"h_woa"};

static int shape(struct problem *p, struct err *err)
{
    static const char *const nowhere[3] = {NULL}; /* an engaged fold must not look at the slabs */
    struct gdn_shape s = gdn_shape_of(p);

    if (gdn_shape_check(p, err) < 0 ||
        gdn_add_operands(p, (enum gdn_layout)case_u32(&p->tc, "layout"), s.rows, err) < 0)
        return -1;
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        if (gdn_add_states(p, pools[t], t < 3 ? ROLE_OUT : ROLE_INOUT, true, err) < 0)
            return -1;
    if (gdn_add_states(p, woa_pool[0], ROLE_INOUT, true, err) < 0)
        return -1;
    buffer_copy(&p->buffer[problem_find(p, "h_woa")], &p->buffer[problem_find(p, "h_parent")]);
    if (gdn_add_table(p, "parent_table", pools + 3, 1, err) < 0 ||
        gdn_add_table(p, "hi_tables", pools, 3, err) < 0 ||
        gdn_add_table(p, "hi_unread", nowhere, 3, err) < 0 ||
        gdn_add_table(p, "h_table", woa_pool, 1, err) < 0 ||
        gdn_add_stash(p, "stash", ROLE_OUT, err) < 0 || gdn_add_accepts(p, "na_tab", 1, err) < 0 ||
        gdn_add_words(p, "engaged_flag", ROLE_OUT, 1, 0, err) < 0)
        return -1;
    return gdn_add_output(p, "output", 1, err) < 0 ? -1
                                                   : gdn_add_output(p, "output_parent", 1, err);
}

struct targets {
    struct expectation *output, *output_parent, *stash, *state[GDN_VERIFY_ROWS], *woa;
    double lambda;
};

static void emit(const struct gdn_run *run, size_t seq, uint32_t vh, const struct gdn_results *r)
{
    const struct targets *to = run->ctx;
    struct gdn_shape s = gdn_shape_of(run->problem);
    size_t at = gdn_state_at(&s, true, seq, vh);
    uint32_t na = gdn_word(run->problem, "na_tab", seq);

    gdn_expect_output(to->output, &s, seq * GDN_VERIFY_ROWS, vh, r->output, to->lambda);
    gdn_expect_output(to->output_parent, &s, seq * GDN_VERIFY_ROWS, vh, r->output, to->lambda);
    gdn_expect_stash(to->stash, run, seq, vh, r, to->lambda);
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        gdn_expect(to->state[t], at, GDN_HEAD_STATE, r->state[t], to->lambda);
    if (na > 0)
        gdn_expect(to->woa, at, GDN_HEAD_STATE, r->state[na - 1], to->lambda);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t states = (GDN_VERIFY_ROWS + 1) * s.batch * s.nv * GDN_HEAD_STATE;
    struct targets to = {.output = golden_open(g, p, problem_find(p, "output")),
                         .output_parent = golden_open(g, p, problem_find(p, "output_parent")),
                         .stash = golden_open(g, p, problem_find(p, "stash")),
                         .woa = golden_open(g, p, problem_find(p, "h_woa")),
                         .lambda = verdict_lambda(states + 3 * s.rows * s.nv * GDN_DIM)};
    struct gdn_run run = {.problem = p,
                          .env = env,
                          .layout = (enum gdn_layout)case_u32(&p->tc, "layout"),
                          .pool = "h_parent",
                          .table = true,
                          .states = true,
                          .emit = emit,
                          .ctx = &to};

    (void)err;
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        to.state[t] = golden_open(g, p, problem_find(p, pools[t]));
    expect_exact(golden_open(g, p, problem_find(p, "engaged_flag")), 0, GDN_ENGAGED);
    gdn_run_heads(&run);
    return 0;
}

static int launch_parent(const struct operator_run *run, const struct gdn_views *v, struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_wy4_args args;

    gdn_wy4_operands(run, v, 0, s.batch, &args);
    args.state_is_table = 1;
    args.h_state = run->ptr[problem_find(p, "parent_table")];
    args.output = run->ptr[problem_find(p, "output_parent")];
    for (uint32_t t = 0; t < 3; t++)
        args.h_inter[t] = run->ptr[problem_find(p, "hi_tables")] + 8ull * t * s.slab;
    return gdn_wy4_launch(run->kernel[PARENT], &args, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_views v = gdn_views_of(p, (enum gdn_layout)case_u32(&p->tc, "layout"));
    struct gdn_woa_args woa;
    struct gdn_fold_args fold;

    gdn_woa_operands(run, &v, 0, s.batch, &woa);
    woa.h_table = run->ptr[problem_find(p, "h_table")];
    woa.output = run->ptr[problem_find(p, "output")];
    woa.stash = run->ptr[problem_find(p, "stash")];
    woa.engaged_flag = run->ptr[problem_find(p, "engaged_flag")];
    gdn_fold_operands(run, &fold);
    fold.h_table = woa.h_table;
    fold.stash = woa.stash;
    fold.engaged_flag = woa.engaged_flag;
    fold.na_tab = run->ptr[problem_find(p, "na_tab")];
    fold.hi_tables = run->ptr[problem_find(p, "hi_unread")];
    if (gdn_flag_clear_launch(run->kernel[CLEAR], woa.engaged_flag, err) < 0 ||
        gdn_woa_launch(run->kernel[WOA], &woa, err) < 0 || launch_parent(run, &v, err) < 0)
        return -1;
    return gdn_fold_launch(run->kernel[FOLD], &fold, err);
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct problem *p = out->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct identity_side woa = {.buffer = problem_find(p, "output")};
    struct identity_side parent = {.buffer = problem_find(p, "output_parent")};

    identity_equal(rep, out, "woa's output = the parent's", woa, parent,
                   p->buffer[woa.buffer].count);
    woa.buffer = problem_find(p, "h_woa");
    for (size_t seq = 0; seq < s.batch; seq++) {
        uint32_t na = gdn_word(p, "na_tab", seq);
        woa.first = parent.first = gdn_state_at(&s, true, seq, 0);
        parent.buffer = na > 0 ? problem_find(p, pools[na - 1]) : woa.buffer;
        parent.initial = na == 0;
        identity_equal(rep, out, "the folded state = the parent's after the accepted tokens", woa,
                       parent, s.nv * GDN_HEAD_STATE);
    }
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);
    double states = gdn_states_bytes(&s);
    double stash = 4.0 * s.batch * (double)gdn_stash_floats(s.nk, s.nv, GDN_DIM, GDN_DIM);

    /* The verify step twice on the same inputs. Both ways read an H of their own; the parent writes
       four, woa a stash, and fold an H where a row was accepted. */
    gdn_verify_cost(&s, cost);
    cost->read_bytes += 2.0 * states;
    cost->write_bytes = 2.0 * cost->write_bytes + GDN_VERIFY_ROWS * states + stash;
    cost->flops *= 2.0;
    for (size_t seq = 0; seq < s.batch; seq++) {
        uint32_t na = gdn_word(p, "na_tab", seq);

        cost->write_bytes += na ? states / s.batch : 0.0;
        cost->flops += 3.0 * na * s.nv * (double)GDN_HEAD_STATE;
    }
}

const struct op operator_gdn_verify = {
    .name = "gdn_verify",
    .summary = "gated delta rule: woa and fold against the parent, bit for bit",
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
