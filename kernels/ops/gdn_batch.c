/* A batch of n sequences gives the bits of n batches of one: woa and fold, both ways. */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "problem/fill.h"
#include "reference/gated_delta_verify.h"

enum { WOA, FOLD };

static const struct operator_entry entries[] = {
    [WOA] = {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_woa"},
    [FOLD] = {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_fold"},
    {.module = NULL},
};

static const struct param params[] = {
    GDN_PARAM_HEADS, GDN_PARAM_GATE, GDN_PARAM_NA, GDN_PARAM_LAYOUT, GDN_PARAM_STASH, {.key = NULL},
};

/* Index 0: the whole batch at once; 1: one sequence at a time. */
static const char *const pools[2] = {"h_state", "h_single"};
static const char *const tables[2] = {"h_table", "h_table_single"};
static const char *const outputs[2] = {"output", "output_single"};
static const char *const stashes[2] = {"stash", "stash_single"};
static const char *const flags[2] = {"engaged_flag", "engaged_flag_single"};

static int shape(struct problem *p, struct err *err)
{
    static const char *const nowhere[3] = {NULL};
    struct gdn_shape s = gdn_shape_of(p);

    if (gdn_shape_check(p, err) < 0 ||
        gdn_add_operands(p, (enum gdn_layout)case_u32(&p->tc, "layout"), s.rows, err) < 0 ||
        gdn_add_accepts(p, "na_tab", 1, err) < 0 ||
        gdn_add_table(p, "hi_unread", nowhere, 3, err) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (gdn_add_states(p, pools[i], ROLE_INOUT, true, err) < 0 ||
            gdn_add_table(p, tables[i], pools + i, 1, err) < 0 ||
            gdn_add_output(p, outputs[i], 1, err) < 0 ||
            gdn_add_stash(p, stashes[i], ROLE_OUT, err) < 0 ||
            gdn_add_words(p, flags[i], ROLE_OUT, 1, 0, err) < 0)
            return -1;
    buffer_copy(&p->buffer[problem_find(p, pools[1])], &p->buffer[problem_find(p, pools[0])]);
    return 0;
}

struct targets {
    struct expectation *output[2], *stash[2], *state[2];
    double lambda;
};

static void emit(const struct gdn_run *run, size_t seq, uint32_t vh, const struct gdn_results *r)
{
    const struct targets *to = run->ctx;
    struct gdn_shape s = gdn_shape_of(run->problem);
    uint32_t na = gdn_word(run->problem, "na_tab", seq);

    for (int i = 0; i < 2; i++) {
        gdn_expect_output(to->output[i], &s, seq * GDN_VERIFY_ROWS, vh, r->output, to->lambda);
        gdn_expect_stash(to->stash[i], run, seq, vh, r, to->lambda);
        if (na > 0)
            gdn_expect(to->state[i], gdn_state_at(&s, true, seq, vh), GDN_HEAD_STATE,
                       r->state[na - 1], to->lambda);
    }
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t values = 2 * s.batch * s.nv * (GDN_HEAD_STATE + 2 * GDN_VERIFY_ROWS * GDN_DIM);
    struct targets to = {.lambda = verdict_lambda(values)};
    struct gdn_run run = {.problem = p,
                          .env = env,
                          .layout = (enum gdn_layout)case_u32(&p->tc, "layout"),
                          .pool = pools[0],
                          .table = true,
                          .states = true,
                          .emit = emit,
                          .ctx = &to};

    (void)err;
    for (int i = 0; i < 2; i++) {
        to.output[i] = golden_open(g, p, problem_find(p, outputs[i]));
        to.stash[i] = golden_open(g, p, problem_find(p, stashes[i]));
        to.state[i] = golden_open(g, p, problem_find(p, pools[i]));
        expect_exact(golden_open(g, p, problem_find(p, flags[i])), 0, GDN_ENGAGED);
    }
    gdn_run_heads(&run);
    return 0;
}

/* Verifies and folds `batch` sequences from `seq` on with the buffers of way `i`. */
static int launch_from(const struct operator_run *run, int i, size_t seq, uint32_t batch,
                       struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_views v = gdn_views_of(p, (enum gdn_layout)case_u32(&p->tc, "layout"));
    size_t row = seq * GDN_VERIFY_ROWS;
    struct gdn_woa_args woa;
    struct gdn_fold_args fold;

    gdn_woa_operands(run, &v, row, batch, &woa);
    woa.h_table = run->ptr[problem_find(p, tables[i])] + 8 * seq;
    woa.output = run->ptr[problem_find(p, outputs[i])] + 2 * row * s.nv * GDN_DIM;
    woa.stash = run->ptr[problem_find(p, stashes[i])] + 4 * seq * s.stash;
    woa.engaged_flag = run->ptr[problem_find(p, flags[i])];
    gdn_fold_operands(run, &fold);
    fold.batch_size = batch;
    fold.h_table = woa.h_table;
    fold.stash = woa.stash;
    fold.na_tab = run->ptr[problem_find(p, "na_tab")] + 4 * seq;
    fold.hi_tables = run->ptr[problem_find(p, "hi_unread")];
    fold.engaged_flag = woa.engaged_flag;
    if (gdn_woa_launch(run->kernel[WOA], &woa, err) < 0)
        return -1;
    return gdn_fold_launch(run->kernel[FOLD], &fold, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(run->problem);

    if (launch_from(run, 0, 0, s.batch, err) < 0)
        return -1;
    for (size_t seq = 0; seq < s.batch; seq++)
        if (launch_from(run, 1, seq, 1, err) < 0)
            return err_context(err, "sequence %zu alone", seq);
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct problem *p = out->problem;
    const char *const *const pairs[] = {outputs, stashes, pools};

    for (int i = 0; i < 3; i++) {
        struct identity_side whole = {.buffer = problem_find(p, pairs[i][0])};
        struct identity_side single = {.buffer = problem_find(p, pairs[i][1])};
        identity_equal(rep, out, "a batch of n = n batches of one", whole, single,
                       p->buffer[whole.buffer].count);
    }
}

/* Both ways read the same inputs, and each its own H; the fold writes those that accept. */
static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);
    double states = gdn_states_bytes(&s), folded = 0.0;
    double stash = 4.0 * s.batch * (double)gdn_stash_floats(s.nk, s.nv, GDN_DIM, GDN_DIM);

    gdn_verify_cost(&s, cost);
    for (size_t seq = 0; seq < s.batch; seq++) {
        uint32_t na = gdn_word(p, "na_tab", seq);

        folded += na ? states / s.batch : 0.0;
        cost->flops += 3.0 * na * s.nv * (double)GDN_HEAD_STATE;
    }
    cost->read_bytes += 2.0 * states;
    cost->write_bytes = 2.0 * (cost->write_bytes + stash + folded);
    cost->flops *= 2.0;
}

const struct op operator_gdn_batch = {
    .name = "gdn_batch",
    .summary = "gated delta rule: a batch against its sequences alone, bit for bit",
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
