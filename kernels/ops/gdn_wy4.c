/* gated_delta_rule_wy4, the parent: four tokens, the output, and the state after each token. */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "problem/fill.h"
#include "reference/gated_delta_verify.h"

static const struct operator_entry entries[] = {
    {.module = "gated_delta_rule_wy4", .entry = "gated_delta_rule_wy4"},
    {.module = NULL},
};

static const struct param params[] = {
    GDN_PARAM_HEADS,   GDN_PARAM_GATE,
    GDN_PARAM_LAYOUT,  {.key = "table", .max = 1}, /* state_is_table */
    GDN_PARAM_SPECIAL, {.key = "state", .max = 1, .choices = gdn_states},
    GDN_PARAM_SLAB,    {.key = NULL},
};

/* The pools in the order of the tokens after which they are written. */
static const char *const pools[] = {"h_inter0", "h_inter1", "h_inter2", "h_state"};

static int shape(struct problem *p, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    bool table = case_u32(&p->tc, "table") != 0;

    if (gdn_shape_check(p, err) < 0 ||
        gdn_add_operands(p, (enum gdn_layout)case_u32(&p->tc, "layout"), s.rows, err) < 0)
        return -1;
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        if (gdn_add_states(p, pools[t], t < 3 ? ROLE_OUT : ROLE_INOUT, table, err) < 0)
            return -1;
    if (table && (gdn_add_table(p, "h_table", pools + 3, 1, err) < 0 ||
                  gdn_add_table(p, "hi_tables", pools, 3, err) < 0))
        return -1;
    return gdn_add_output(p, "output", 1, err);
}

struct targets {
    struct expectation *output, *state[GDN_VERIFY_ROWS];
    double lambda;
};

static void emit(const struct gdn_run *run, size_t seq, uint32_t vh, const struct gdn_results *r)
{
    const struct targets *to = run->ctx;
    struct gdn_shape s = gdn_shape_of(run->problem);

    gdn_expect_output(to->output, &s, seq * GDN_VERIFY_ROWS, vh, r->output, to->lambda);
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        gdn_expect(to->state[t], gdn_state_at(&s, run->table, seq, vh), GDN_HEAD_STATE, r->state[t],
                   to->lambda);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t outputs = s.rows * s.nv * GDN_DIM;
    size_t states = GDN_VERIFY_ROWS * s.batch * s.nv * GDN_HEAD_STATE;
    struct targets to = {.output = golden_open(g, p, problem_find(p, "output")),
                         .lambda = verdict_lambda(outputs + states)};
    struct gdn_run run = {.problem = p,
                          .env = env,
                          .layout = (enum gdn_layout)case_u32(&p->tc, "layout"),
                          .pool = "h_state",
                          .table = case_u32(&p->tc, "table") != 0,
                          .states = true,
                          .emit = emit,
                          .ctx = &to};

    (void)err;
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        to.state[t] = golden_open(g, p, problem_find(p, pools[t]));
    gdn_run_heads(&run);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_views v = gdn_views_of(p, (enum gdn_layout)case_u32(&p->tc, "layout"));
    uint32_t table = case_u32(&p->tc, "table");
    struct gdn_wy4_args args;

    gdn_wy4_operands(run, &v, 0, s.batch, &args);
    args.output = run->ptr[problem_find(p, "output")];
    args.state_is_table = table;
    args.h_state = run->ptr[problem_find(p, table ? "h_table" : "h_state")];
    for (uint32_t t = 0; t < 3; t++)
        args.h_inter[t] = table ? run->ptr[problem_find(p, "hi_tables")] + 8ull * t * s.slab
                                : run->ptr[problem_find(p, pools[t])];
    return gdn_wy4_launch(run->kernel[0], &args, err);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);

    gdn_verify_cost(&s, cost);
    cost->read_bytes += gdn_states_bytes(&s);
    cost->write_bytes += GDN_VERIFY_ROWS * gdn_states_bytes(&s);
}

const struct op operator_gdn_wy4 = {
    .name = "gdn_wy4",
    .summary = "gated delta rule, verify of 4 tokens, states written after each",
    .entries = entries,
    .params = params,
    .contract = GDN_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
