/* Operands as slices of wide rows give the same bits as packed ones: woa on both. */
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "problem/fill.h"
#include "reference/gated_delta_verify.h"

static const struct operator_entry entries[] = {
    {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_woa"},
    {.module = NULL},
};

static const struct param params[] = {
    GDN_PARAM_HEADS, GDN_PARAM_GATE, GDN_PARAM_SPECIAL, GDN_PARAM_STASH, {.key = NULL},
};

/* Operands, output, stash and flag of the two launches. */
static const enum gdn_layout layouts[2] = {GDN_SLICED, GDN_PACKED};
static const char *const outputs[2] = {"output", "output_packed"};
static const char *const stashes[2] = {"stash", "stash_packed"};
static const char *const flags[2] = {"engaged_flag", "engaged_flag_packed"};
static const char *const pool[] = {"h_state"};

static void copy_view(struct problem *p, struct gdn_view to, struct gdn_view from, size_t rows,
                      size_t n)
{
    struct buffer *t = &p->buffer[to.buffer];
    const struct buffer *f = &p->buffer[from.buffer];

    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            dtype_store(t->dtype, t->init, to.first + r * to.stride + i,
                        dtype_load(f->dtype, f->init, from.first + r * from.stride + i));
}

static void copy_operands(struct problem *p)
{
    struct gdn_shape s = gdn_shape_of(p);
    struct gdn_views to = gdn_views_of(p, GDN_PACKED);
    struct gdn_views from = gdn_views_of(p, GDN_SLICED);

    copy_view(p, to.query, from.query, s.rows, (size_t)s.nk * GDN_DIM);
    copy_view(p, to.key, from.key, s.rows, (size_t)s.nk * GDN_DIM);
    copy_view(p, to.value, from.value, s.rows, (size_t)s.nv * GDN_DIM);
    copy_view(p, to.gate, from.gate, s.rows, s.nv);
    copy_view(p, to.beta, from.beta, s.rows, s.nv);
}

static int shape(struct problem *p, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);

    if (gdn_shape_check(p, err) < 0 || gdn_add_operands(p, GDN_SLICED, s.rows, err) < 0 ||
        gdn_add_operands(p, GDN_PACKED, s.rows, err) < 0 ||
        gdn_add_states(p, pool[0], ROLE_IN, true, err) < 0 ||
        gdn_add_table(p, "h_table", pool, 1, err) < 0)
        return -1;
    copy_operands(p);
    for (int i = 0; i < 2; i++)
        if (gdn_add_output(p, outputs[i], 1, err) < 0 ||
            gdn_add_stash(p, stashes[i], ROLE_OUT, err) < 0 ||
            gdn_add_words(p, flags[i], ROLE_OUT, 1, 0, err) < 0)
            return -1;
    return 0;
}

struct targets {
    struct expectation *output[2], *stash[2];
    double lambda;
};

static void emit(const struct gdn_run *run, size_t seq, uint32_t vh, const struct gdn_results *r)
{
    const struct targets *to = run->ctx;
    struct gdn_shape s = gdn_shape_of(run->problem);

    for (int i = 0; i < 2; i++) {
        gdn_expect_output(to->output[i], &s, seq * GDN_VERIFY_ROWS, vh, r->output, to->lambda);
        gdn_expect_stash(to->stash[i], run, seq, vh, r, to->lambda);
    }
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    struct targets to = {.lambda = verdict_lambda(4 * s.rows * s.nv * GDN_DIM)};
    struct gdn_run run = {.problem = p,
                          .env = env,
                          .layout = GDN_SLICED,
                          .pool = pool[0],
                          .table = true,
                          .emit = emit,
                          .ctx = &to};

    (void)err;
    for (int i = 0; i < 2; i++) {
        to.output[i] = golden_open(g, p, problem_find(p, outputs[i]));
        to.stash[i] = golden_open(g, p, problem_find(p, stashes[i]));
        expect_exact(golden_open(g, p, problem_find(p, flags[i])), 0, GDN_ENGAGED);
    }
    gdn_run_heads(&run);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_shape s = gdn_shape_of(p);

    for (int i = 0; i < 2; i++) {
        struct gdn_views v = gdn_views_of(p, layouts[i]);
        struct gdn_woa_args args;
        gdn_woa_operands(run, &v, 0, s.batch, &args);
        args.h_table = run->ptr[problem_find(p, "h_table")];
        args.output = run->ptr[problem_find(p, outputs[i])];
        args.stash = run->ptr[problem_find(p, stashes[i])];
        args.engaged_flag = run->ptr[problem_find(p, flags[i])];
        if (gdn_woa_launch(run->kernel[0], &args, err) < 0)
            return -1;
    }
    return 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    const struct problem *p = out->problem;
    const char *const *const pairs[2] = {outputs, stashes};

    for (int i = 0; i < 2; i++) {
        struct identity_side sliced = {.buffer = problem_find(p, pairs[i][0])};
        struct identity_side packed = {.buffer = problem_find(p, pairs[i][1])};
        identity_equal(rep, out, "slices of wide rows = packed tensors", sliced, packed,
                       p->buffer[sliced.buffer].count);
    }
}

/* Of both launches; the state is read by each. */
static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);
    double stash = 4.0 * s.batch * (double)gdn_stash_floats(s.nk, s.nv, GDN_DIM, GDN_DIM);

    gdn_verify_cost(&s, cost);
    cost->read_bytes = 2.0 * cost->read_bytes + gdn_states_bytes(&s); /* both read the same H */
    cost->write_bytes = 2.0 * (cost->write_bytes + stash);
    cost->flops *= 2.0;
}

const struct op operator_gdn_strided = {
    .name = "gdn_strided",
    .summary = "gated delta rule: strided operands against packed ones, bit for bit",
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
