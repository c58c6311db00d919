/*
 * gated_delta_rule_wy4_fold: replays the accepted rows of a stash onto the state (engaged word
 * set), or restores the state after the last accepted token from the parent's slabs (engaged word
 * clear).
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"
#include "problem/fill.h"
#include "reference/detmath.h"
#include "reference/gated_delta_verify.h"

static const struct operator_entry entries[] = {
    {.module = "gated_delta_rule_wy4_woa", .entry = "gated_delta_rule_wy4_fold"},
    {.module = NULL},
};

static const char *const flags[] = {"clear", "set", NULL};

static const struct param params[] = {
    GDN_PARAM_HEADS,
    {.key = "flag", .fallback = 1, .max = 1, .choices = flags},
    GDN_PARAM_NA,
    {.key = "k_rows", .fallback = GDN_VERIFY_ROWS, .min = 1, .max = GDN_VERIFY_ROWS},
    GDN_PARAM_GATE,
    GDN_PARAM_SLAB,
    GDN_PARAM_STASH,
    {.key = NULL},
};

static const char *const state_pool[] = {"h_state"};
static const char *const pools[] = {"h_inter0", "h_inter1", "h_inter2"};

/* Where the parts of a sequence's stash begin. */
struct parts {
    size_t u, g, k;
};

static struct parts stash_parts(const struct gdn_shape *s, size_t seq)
{
    struct parts at = {.u = seq * s->stash};

    at.g = at.u + (size_t)GDN_VERIFY_ROWS * s->nv * GDN_DIM;
    at.k = at.g + (size_t)GDN_VERIFY_ROWS * s->nv;
    return at;
}

/* A stash as woa would leave it: u of the size of v, clamped gates, k unit rows of bf16 values in
   fp32. */
static void fill_stash(struct problem *p)
{
    struct gdn_shape s = gdn_shape_of(p);
    struct buffer *b = &p->buffer[problem_find(p, "stash")];
    enum gate_regime regime = (enum gate_regime)case_u32(&p->tc, "gate");
    uint64_t gate_key = rng_key(p->tc.seed, "gate");

    for (size_t seq = 0; seq < s.batch && !b->hollow; seq++) {
        struct parts at = stash_parts(&s, seq);
        size_t keys = (size_t)GDN_VERIFY_ROWS * s.nk;
        fill_normal(b, rng_key(p->tc.seed, "u"), at.u, at.g - at.u, 0.5, 0.0);
        scale_value_channels(b, GDN_DIM, at.u, at.g - at.u);
        for (size_t i = 0; i < at.k - at.g; i++)
            dtype_store(b->dtype, b->init, at.g + i,
                        gdn_clamp_gate(
                            det_exp(fill_log_decay(regime, gate_key, at.g + i, i % s.nv, -1e30))));
        fill_unit_rows(b, rng_key(p->tc.seed, "key"), at.k, keys, GDN_DIM, GDN_DIM, false);
        for (size_t i = at.k; i < at.k + keys * GDN_DIM; i++)
            dtype_store(b->dtype, b->init, i,
                        (double)bf16_to_float(bf16_from_double(dtype_load(b->dtype, b->init, i))));
    }
}

static int shape(struct problem *p, struct err *err)
{
    const char *slab[3] = {NULL};

    if (gdn_shape_check(p, err) < 0 ||
        gdn_add_states(p, state_pool[0], ROLE_INOUT, true, err) < 0 ||
        gdn_add_table(p, "h_table", state_pool, 1, err) < 0)
        return -1;
    /* Slabs that k_rows rules out exist but lead nowhere; so do all of them when the word is set.
       */
    for (uint32_t t = 0; t < 3; t++) {
        if (gdn_add_states(p, pools[t], ROLE_IN, true, err) < 0)
            return -1;
        if (case_u32(&p->tc, "flag") == 0 && t + 1 < case_u32(&p->tc, "k_rows"))
            slab[t] = pools[t];
    }
    if (gdn_add_table(p, "hi_tables", slab, 3, err) < 0 ||
        gdn_add_stash(p, "stash", ROLE_IN, err) < 0 || gdn_add_accepts(p, "na_tab", 1, err) < 0 ||
        gdn_add_words(p, "engaged_flag", ROLE_IN, 1, case_u32(&p->tc, "flag"), err) < 0)
        return -1;
    if (case_u32(&p->tc, "flag") != 0)
        fill_stash(p); /* else poison: the restoring path has no business there */
    return 0;
}

struct job {
    const struct problem *problem;
    struct expectation *state;
    double lambda;
};

static void load(const struct buffer *b, size_t first, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dtype_load(b->dtype, b->init, first + i);
}

/* Head vh of sequence seq with `tokens` of its stashed rows applied. */
static void fold_head(const struct job *job, size_t seq, uint32_t vh, uint32_t tokens)
{
    const struct problem *p = job->problem;
    struct gdn_shape s = gdn_shape_of(p);
    struct parts at = stash_parts(&s, seq);
    const struct buffer *stash = &p->buffer[problem_find(p, "stash")];
    size_t first = gdn_state_at(&s, true, seq, vh);
    size_t kh = vh / (s.nv / s.nk);
    double *state = xcalloc(GDN_HEAD_STATE, sizeof(*state));
    double *rows = xcalloc((size_t)2 * GDN_VERIFY_ROWS * GDN_DIM, sizeof(*rows));
    struct bounded *result = xcalloc(GDN_HEAD_STATE, sizeof(*result));
    struct gdn_fold in = {.k_dim = GDN_DIM, .v_dim = GDN_DIM, .tokens = tokens, .state = state};

    load(&p->buffer[problem_find(p, state_pool[0])], first, GDN_HEAD_STATE, state);
    for (size_t t = 0; t < tokens; t++) {
        double *key = rows + t * GDN_DIM;
        double *u = rows + (GDN_VERIFY_ROWS + t) * GDN_DIM;
        load(stash, at.k + (t * s.nk + kh) * GDN_DIM, GDN_DIM, key);
        load(stash, at.u + (t * s.nv + vh) * GDN_DIM, GDN_DIM, u);
        load(stash, at.g + t * s.nv + vh, 1, &in.gate[t]);
        in.key[t] = key;
        in.u[t] = u;
    }
    gdn_fold_head(&in, result);
    gdn_expect(job->state, first, GDN_HEAD_STATE, result, job->lambda);
    free(state);
    free(rows);
    free(result);
}

static void restore_head(const struct job *job, size_t seq, uint32_t vh, uint32_t accepted)
{
    const struct problem *p = job->problem;
    struct gdn_shape s = gdn_shape_of(p);
    const struct buffer *slab = &p->buffer[problem_find(p, pools[accepted - 1])];
    size_t first = gdn_state_at(&s, true, seq, vh);

    for (size_t i = first; i < first + GDN_HEAD_STATE; i++)
        expect_exact(job->state, i, dtype_load(slab->dtype, slab->init, i));
}

/* What happens to sequence seq: rows to fold, or the slab to restore (accepted), else nothing. */
static void head(size_t index, void *ctx)
{
    const struct job *job = ctx;
    const struct test_case *tc = &job->problem->tc;
    uint32_t nv = case_u32(tc, "nv");
    size_t seq = index / nv;
    uint32_t vh = (uint32_t)(index % nv);
    uint32_t na = gdn_word(job->problem, "na_tab", seq);

    if (na == 0)
        return;
    if (case_u32(tc, "flag") != 0)
        fold_head(job, seq, vh, na);
    else if (na < case_u32(tc, "k_rows"))
        restore_head(job, seq, vh, na);
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    struct job job = {.problem = p,
                      .state = golden_open(g, p, problem_find(p, state_pool[0])),
                      .lambda = verdict_lambda(s.batch * s.nv * GDN_HEAD_STATE)};

    (void)err;
    parallel_for((size_t)s.batch * s.nv, env->workers, head, &job);
    return 0;
}

static int launch(const struct operator_run *run, struct err *err)
{
    const struct problem *p = run->problem;
    struct gdn_fold_args args;

    gdn_fold_operands(run, &args);
    args.h_table = run->ptr[problem_find(p, "h_table")];
    args.stash = run->ptr[problem_find(p, "stash")];
    args.na_tab = run->ptr[problem_find(p, "na_tab")];
    args.hi_tables = run->ptr[problem_find(p, "hi_tables")];
    args.engaged_flag = run->ptr[problem_find(p, "engaged_flag")];
    args.k_rows = case_u32(&p->tc, "k_rows");
    return gdn_fold_launch(run->kernel[0], &args, err);
}

/* A folded or restored sequence is read and written once; a folded one also reads its rows. */
static void cost(const struct problem *p, struct cost *cost)
{
    struct gdn_shape s = gdn_shape_of(p);
    double state = gdn_states_bytes(&s) / s.batch;
    double row = 4.0 * ((double)s.nv * GDN_DIM + s.nv + (double)s.nk * GDN_DIM);

    *cost = (struct cost){.unit = COST_FP32};
    for (size_t seq = 0; seq < s.batch; seq++) {
        uint32_t na = gdn_word(p, "na_tab", seq);
        bool set = case_u32(&p->tc, "flag") != 0;
        if (na == 0 || (!set && na >= case_u32(&p->tc, "k_rows")))
            continue;
        cost->read_bytes += state + (set ? na * row : 0.0);
        cost->write_bytes += state;
        cost->flops += set ? 3.0 * na * (double)GDN_HEAD_STATE * s.nv : 0.0;
    }
}

const struct op operator_gdn_fold = {
    .name = "gdn_fold",
    .summary = "gated delta rule, accepted rows folded into the state, or a slab restored",
    .entries = entries,
    .params = params,
    .contract =
        "fp32: H = g H + k u^T row by row in token order, fused or not; restored bits are exact",
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .cost = cost,
};
