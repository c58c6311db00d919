/*
 * Speculative decoding over many steps: verify four tokens, accept na of them, go on from there.
 * Twice on the same inputs, through woa and fold, and through the parent and a restored slab: the
 * same bits at every step. The golden is the token recurrence in fp64 over the accepted tokens,
 * with the error of the state carried from step to step.
 *
 * With na = 0 the engine of the second way restores its own copy of the state, which a device
 * copy stands for: the fold kernel leaves H alone then.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
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
    GDN_PARAM_HEADS,   {.key = "steps", .fallback = 20, .min = 1, .max = 2000},
    GDN_PARAM_GATE,    GDN_PARAM_NA,
    GDN_PARAM_SPECIAL, {.key = NULL},
};

static const char *const pools[] = {"h_inter0", "h_inter1", "h_inter2", "h_parent"};
static const char *const woa_pool[] = {"h_woa"};

static int shape(struct problem *p, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t steps = case_u32(&p->tc, "steps");

    if (gdn_shape_check(p, err) < 0 || gdn_add_operands(p, GDN_SLICED, steps * s.rows, err) < 0)
        return -1;
    for (int t = 0; t < GDN_VERIFY_ROWS; t++)
        if (gdn_add_states(p, pools[t], t < 3 ? ROLE_SCRATCH : ROLE_INOUT, true, err) < 0)
            return -1;
    if (gdn_add_states(p, woa_pool[0], ROLE_INOUT, true, err) < 0 ||
        gdn_add_states(p, "h_saved", ROLE_SCRATCH, true, err) < 0)
        return -1;
    buffer_copy(&p->buffer[problem_find(p, "h_woa")], &p->buffer[problem_find(p, "h_parent")]);
    if (gdn_add_table(p, "parent_table", pools + 3, 1, err) < 0 ||
        gdn_add_table(p, "hi_tables", pools, 3, err) < 0 ||
        gdn_add_table(p, "h_table", woa_pool, 1, err) < 0 ||
        gdn_add_stash(p, "stash", ROLE_SCRATCH, err) < 0 ||
        gdn_add_accepts(p, "na_tab", steps, err) < 0 ||
        gdn_add_words(p, "engaged_flag", ROLE_OUT, 1, 0, err) < 0 ||
        gdn_add_words(p, "parent_flag", ROLE_OUT, 1, 0, err) < 0)
        return -1;
    return gdn_add_output(p, "output", steps, err) < 0
               ? -1
               : gdn_add_output(p, "output_parent", steps, err);
}

/* --- reference --------------------------------------------------------------------------- */

struct job {
    const struct problem *problem;
    struct expectation *output[2], *state[2];
    double lambda;
};

/* One head on its way along the accepted tokens. */
struct walk {
    struct gdn_head head;
    double *state, *next; /* of the recurrence, before and after this step */
    struct gdr_error *carry, *after;
};

static void walk_init(struct walk *w)
{
    gdn_head_init(&w->head, false);
    w->state = xcalloc(GDN_HEAD_STATE, sizeof(double));
    w->next = xcalloc(GDN_HEAD_STATE, sizeof(double));
    w->carry = xcalloc(GDN_DIM, sizeof(struct gdr_error));
    w->after = xcalloc(GDN_DIM, sizeof(struct gdr_error));
}

static void walk_release(struct walk *w)
{
    gdn_head_release(&w->head);
    free(w->state);
    free(w->next);
    free(w->carry);
    free(w->after);
}

/* The token recurrence over the four tokens of the step: replaces the outputs' values by its own,
   and leaves the state after `accepted` tokens in w->state. */
static void recur(struct walk *w, uint32_t accepted)
{
    const struct gdn_operands *in = &w->head.operands;
    struct bounded output[GDN_DIM];
    struct gdr_state s = {.k_dim = GDN_DIM,
                          .v_dim = GDN_DIM,
                          .scale = 1.0 / sqrt((double)GDN_DIM),
                          .out = format_bf16,
                          .value = w->next};

    memcpy(w->next, w->state, GDN_HEAD_STATE * sizeof(double));
    for (uint32_t t = 0; t < GDN_VERIFY_ROWS; t++) {
        struct gdr_token token = {in->query[t], in->key[t], in->value[t],
                                  gdn_clamp_gate(in->gate[t]), in->beta[t]};
        gdr_step(&s, &token, NULL, output);
        for (size_t v = 0; v < GDN_DIM; v++)
            w->head.results.output[t * GDN_DIM + v].value = output[v].value;
        if (t + 1 == accepted)
            memcpy(w->state, w->next, GDN_HEAD_STATE * sizeof(double));
    }
}

static void step(struct walk *w, uint32_t accepted)
{
    struct gdn_results *r = &w->head.results;

    w->head.operands.state = w->state;
    w->head.operands.before = w->carry;
    for (uint32_t t = 0; t < GDN_VERIFY_ROWS; t++)
        r->after[t] = t + 1 == accepted ? w->after : NULL;
    gdn_verify_head(&w->head.operands, w->head.scratch, r);
    if (accepted > 0)
        memcpy(w->carry, w->after, GDN_DIM * sizeof(struct gdr_error));
    recur(w, accepted);
}

static void chain_head(size_t index, void *ctx)
{
    const struct job *job = ctx;
    const struct problem *p = job->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_views views = gdn_views_of(p, GDN_SLICED);
    const struct buffer *initial = &p->buffer[problem_find(p, "h_woa")];
    size_t seq = index / s.nv;
    uint32_t vh = (uint32_t)(index % s.nv);
    size_t at = gdn_state_at(&s, true, seq, vh);
    struct walk w;

    walk_init(&w);
    for (size_t i = 0; i < GDN_HEAD_STATE; i++)
        w.state[i] = dtype_load(initial->dtype, initial->init, at + i);
    for (size_t n = 0; n < case_u32(&p->tc, "steps"); n++) {
        size_t row = n * s.rows + seq * GDN_VERIFY_ROWS;
        gdn_head_load(p, &views, row, vh, &w.head);
        step(&w, gdn_word(p, "na_tab", n * s.batch + seq));
        for (int i = 0; i < 2; i++)
            gdn_expect_output(job->output[i], &s, row, vh, w.head.results.output, job->lambda);
    }
    for (size_t i = 0; i < GDN_HEAD_STATE; i++) {
        struct gdr_error e = w.carry[i % GDN_DIM];
        struct bounded b = {w.state[i], e.worst, e.spread, 0.0};
        for (int way = 0; way < 2; way++)
            expect_bounded(job->state[way], at + i, b, job->lambda);
    }
    walk_release(&w);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t heads = (size_t)s.batch * s.nv;
    size_t outputs = case_u32(&p->tc, "steps") * heads * GDN_VERIFY_ROWS * GDN_DIM;
    struct job job = {.problem = p,
                      .output = {golden_open(g, p, problem_find(p, "output")),
                                 golden_open(g, p, problem_find(p, "output_parent"))},
                      .state = {golden_open(g, p, problem_find(p, "h_woa")),
                                golden_open(g, p, problem_find(p, "h_parent"))},
                      .lambda = verdict_lambda(2 * (outputs + heads * GDN_HEAD_STATE))};

    (void)err;
    expect_exact(golden_open(g, p, problem_find(p, "engaged_flag")), 0, GDN_ENGAGED);
    expect_exact(golden_open(g, p, problem_find(p, "parent_flag")), 0, GDN_DISENGAGED);
    parallel_for(heads, env->workers, chain_head, &job);
    return 0;
}

/* --- launch ------------------------------------------------------------------------------ */

struct chain {
    const struct operator_run *run;
    struct gdn_shape shape;
    struct gdn_views views;
    dev_ptr stash, na_tab, output, output_parent;
    size_t step;
};

static dev_ptr pointer(const struct operator_run *run, const char *name)
{
    return run->ptr[problem_find(run->problem, name)];
}

static int fold(const struct chain *c, const char *table, dev_ptr flag, struct err *err)
{
    struct gdn_fold_args args;

    gdn_fold_operands(c->run, &args);
    args.h_table = pointer(c->run, table);
    args.stash = c->stash;
    args.na_tab = c->na_tab;
    args.hi_tables = pointer(c->run, "hi_tables");
    args.engaged_flag = flag;
    return gdn_fold_launch(c->run->kernel[FOLD], &args, err);
}

static int step_by_woa(const struct chain *c, struct err *err)
{
    struct gdn_woa_args args;

    gdn_woa_operands(c->run, &c->views, c->step * c->shape.rows, c->shape.batch, &args);
    args.h_table = pointer(c->run, "h_table");
    args.output = c->output;
    args.stash = c->stash;
    args.engaged_flag = pointer(c->run, "engaged_flag");
    if (gdn_flag_clear_launch(c->run->kernel[CLEAR], args.engaged_flag, err) < 0 ||
        gdn_woa_launch(c->run->kernel[WOA], &args, err) < 0)
        return -1;
    return fold(c, "h_table", args.engaged_flag, err);
}

/* Copies the states of the sequences that accept nothing in this step. */
static int copy_idle(const struct chain *c, const char *to, const char *from, struct err *err)
{
    size_t bytes = c->shape.nv * GDN_HEAD_STATE * sizeof(float);

    for (size_t seq = 0; seq < c->shape.batch; seq++) {
        size_t at = gdn_state_at(&c->shape, true, seq, 0) * sizeof(float);
        if (gdn_word(c->run->problem, "na_tab", c->step * c->shape.batch + seq) == 0 &&
            device_copy(c->run->device, pointer(c->run, to) + at, pointer(c->run, from) + at, bytes,
                        err) < 0)
            return -1;
    }
    return 0;
}

static int step_by_parent(const struct chain *c, struct err *err)
{
    struct gdn_wy4_args args;
    dev_ptr flag = pointer(c->run, "parent_flag");

    gdn_wy4_operands(c->run, &c->views, c->step * c->shape.rows, c->shape.batch, &args);
    args.state_is_table = 1;
    args.h_state = pointer(c->run, "parent_table");
    args.output = c->output_parent;
    for (uint32_t t = 0; t < 3; t++)
        args.h_inter[t] = pointer(c->run, "hi_tables") + 8ull * t * c->shape.slab;
    if (copy_idle(c, "h_saved", "h_parent", err) < 0 ||
        gdn_flag_clear_launch(c->run->kernel[CLEAR], flag, err) < 0 ||
        gdn_wy4_launch(c->run->kernel[PARENT], &args, err) < 0 ||
        fold(c, "parent_table", flag, err) < 0)
        return -1;
    return copy_idle(c, "h_parent", "h_saved", err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct chain c = {.run = run,
                      .shape = gdn_shape_of(p),
                      .views = gdn_views_of(p, GDN_SLICED),
                      .stash = pointer(run, "stash"),
                      .na_tab = pointer(run, "na_tab"),
                      .output = pointer(run, "output"),
                      .output_parent = pointer(run, "output_parent")};
    size_t output_bytes = 2 * c.shape.rows * c.shape.nv * GDN_DIM;

    for (; c.step < case_u32(&p->tc, "steps"); c.step++) {
        if (step_by_woa(&c, err) < 0 || step_by_parent(&c, err) < 0)
            return err_context(err, "step %zu", c.step);
        c.na_tab += 4ull * c.shape.batch;
        c.output += output_bytes;
        c.output_parent += output_bytes;
    }
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    static const char *const pairs[2][2] = {{"output", "output_parent"}, {"h_woa", "h_parent"}};
    const struct problem *p = out->problem;

    for (int i = 0; i < 2; i++) {
        struct identity_side woa = {.buffer = problem_find(p, pairs[i][0])};
        struct identity_side parent = {.buffer = problem_find(p, pairs[i][1])};
        identity_equal(rep, out, "the chain through woa and fold = through the parent", woa, parent,
                       p->buffer[woa.buffer].count);
    }
}

/* Of the woa way and the parent's: each step's operands, H read by both, folded, written four
   times. */
static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);
    double steps = case_u32(&p->tc, "steps");
    double states = gdn_states_bytes(&s);

    gdn_verify_cost(&s, cost);
    /* The states of both ways are carried from step to step: they may stay in the L2. Of the four
       the parent writes, one is its H; the other way writes H where a step accepts. */
    cost->read_bytes = steps * cost->read_bytes + 2.0 * states;
    cost->write_bytes = 2.0 * steps * cost->write_bytes + GDN_VERIFY_ROWS * states;
    cost->flops *= 2.0 * steps;
}

const struct op operator_gdn_chain = {
    .name = "gdn_chain",
    .summary = "gated delta rule: many verify-accept-fold steps against the token recurrence",
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
