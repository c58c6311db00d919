/* Parameters, buffers and arguments of the gated delta rule's operators. */
#include "kernels/ops/gdn_common.h"

#include <string.h>

#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "problem/fill.h"
#include "reference/detmath.h"

const char *const gdn_layouts[] = {"packed", "sliced", "loose", NULL};
const char *const gdn_states[] = {"random", "zero", NULL};
const char *const gdn_accepts[] = {"0", "1", "2", "3", "4", "mixed", NULL};

#define NA_MIXED 5

/* Gaps, in elements, all different so that one stride cannot stand in for another. Rows of bf16
   stay 16-byte aligned, as in the engines that slice them from one projection. */
#define GAP_ROW   64
#define GAP_QK    32
#define GAP_VALUE 192
#define GAP_GATE  3

/* Of the initial state's elements; what a state of unit keys settles to is of this size. */
#define STATE_SCALE 0.25

/* No log decay is below it: exp() of it is exactly 0. */
#define NO_LOWER_BOUND (-1e30)

static bool declared(const struct problem *p, const char *key)
{
    for (const struct param *q = p->tc.op->params; q->key != NULL; q++)
        if (strcmp(q->key, key) == 0)
            return true;
    return false;
}

/* The parameter's value, or `otherwise` when the operator has no such parameter. */
static uint32_t optional(const struct problem *p, const char *key, uint32_t otherwise)
{
    return declared(p, key) ? case_u32(&p->tc, key) : otherwise;
}

int gdn_shape_check(const struct problem *p, struct err *err)
{
    uint32_t nk = case_u32(&p->tc, "nk");
    uint32_t nv = case_u32(&p->tc, "nv");

    if (nv % nk != 0)
        return err_set(err, ERR_INPUT,
                       "nv=%u is not a multiple of nk=%u: %u value heads cannot be "
                       "shared out evenly",
                       nv, nk, nv);
    return 0;
}

struct gdn_shape gdn_shape_of(const struct problem *p)
{
    struct gdn_shape s = {
        .nk = case_u32(&p->tc, "nk"),
        .nv = case_u32(&p->tc, "nv"),
        .batch = case_u32(&p->tc, "batch"),
    };

    s.slab = s.batch + optional(p, "slab", 3);
    s.stash =
        (uint32_t)gdn_stash_floats(s.nk, s.nv, GDN_DIM, GDN_DIM) + optional(p, "stash_pad", 5);
    s.rows = (size_t)s.batch * GDN_VERIFY_ROWS;
    return s;
}

/* --- operands ---------------------------------------------------------------------------- */

static size_t qk_width(const struct gdn_shape *s)
{
    return (size_t)s->nk * GDN_DIM;
}

static size_t v_width(const struct gdn_shape *s)
{
    return (size_t)s->nv * GDN_DIM;
}

struct gdn_views gdn_views_of(const struct problem *p, enum gdn_layout layout)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t qk = qk_width(&s);
    size_t v = v_width(&s);
    size_t gap = layout == GDN_LOOSE ? 1 : 0;

    if (layout == GDN_SLICED) {
        int row = problem_find(p, "qkv");
        int pair = problem_find(p, "gate_beta");
        size_t wide = 2 * qk + v + GAP_ROW;
        size_t narrow = 2 * (size_t)s.nv + GAP_GATE;
        return (struct gdn_views){{row, 0, wide},
                                  {row, qk, wide},
                                  {row, 2 * qk, wide},
                                  {pair, 0, narrow},
                                  {pair, s.nv + 1, narrow}};
    }
    return (struct gdn_views){
        {problem_find(p, "query"), 0, qk + gap * GAP_QK},
        {problem_find(p, "key"), 0, qk + gap * GAP_QK},
        {problem_find(p, "value"), 0, v + gap * GAP_VALUE},
        {problem_find(p, "gate"), 0, s.nv + gap * GAP_GATE},
        {problem_find(p, "beta"), 0, s.nv + gap * GAP_GATE},
    };
}

static int add_rows_of(struct problem *p, const char *name, enum dtype dtype, size_t rows,
                       size_t stride, struct err *err)
{
    const struct dim dims[] = {{"row", rows}, {"column", stride}, {NULL, 0}};
    int id;

    if (problem_add(p, name, dtype, ROLE_IN, dims, &id, err) < 0)
        return -1;
    buffer_poison(&p->buffer[id], 0, p->buffer[id].count); /* what is not filled must not be read */
    return 0;
}

static int declare_operands(struct problem *p, enum gdn_layout layout, size_t rows, struct err *err)
{
    struct gdn_views v = gdn_views_of(p, layout);

    if (layout == GDN_SLICED)
        return add_rows_of(p, "qkv", DTYPE_BF16, rows, v.query.stride, err) < 0 ||
                       add_rows_of(p, "gate_beta", DTYPE_F32, rows, v.gate.stride, err) < 0
                   ? -1
                   : 0;
    return add_rows_of(p, "query", DTYPE_BF16, rows, v.query.stride, err) < 0 ||
                   add_rows_of(p, "key", DTYPE_BF16, rows, v.key.stride, err) < 0 ||
                   add_rows_of(p, "value", DTYPE_BF16, rows, v.value.stride, err) < 0 ||
                   add_rows_of(p, "gate", DTYPE_F32, rows, v.gate.stride, err) < 0 ||
                   add_rows_of(p, "beta", DTYPE_F32, rows, v.beta.stride, err) < 0
               ? -1
               : 0;
}

static void scale_row(struct buffer *b, size_t first, double factor)
{
    for (size_t i = first; i < first + GDN_DIM; i++)
        dtype_store(b->dtype, b->init, i, factor * dtype_load(b->dtype, b->init, i));
}

/* Two in five rows of k are no unit vectors: one is zero, one of norm 1e-3. */
static void spoil_keys(struct problem *p, struct gdn_view v, size_t rows, uint32_t heads)
{
    for (size_t r = 0; r < rows && !p->hollow; r++)
        for (uint32_t h = 0; h < heads; h++) {
            size_t pick = (r + h) % 5;
            if (pick == 2 || pick == 3)
                scale_row(&p->buffer[v.buffer], v.first + r * v.stride + (size_t)h * GDN_DIM,
                          pick == 2 ? 0.0 : 1e-3);
        }
}

static void fill_unit_heads(struct problem *p, struct gdn_view v, const char *name, size_t rows,
                            uint32_t heads)
{
    uint64_t key = rng_key(p->tc.seed, name);

    for (uint32_t h = 0; h < heads; h++)
        fill_unit_rows(&p->buffer[v.buffer], key, v.first + (size_t)h * GDN_DIM, rows, v.stride,
                       GDN_DIM, false);
}

static void fill_gates(struct problem *p, const struct gdn_views *v, size_t rows, uint32_t heads,
                       bool special)
{
    enum gate_regime regime = (enum gate_regime)case_u32(&p->tc, "gate");
    uint64_t gate_key = rng_key(p->tc.seed, "gate");
    uint64_t beta_key = rng_key(p->tc.seed, "beta");
    struct buffer *gate = &p->buffer[v->gate.buffer];
    struct buffer *beta = &p->buffer[v->beta.buffer];

    for (size_t r = 0; r < rows; r++)
        for (uint32_t h = 0; h < heads; h++) {
            uint64_t i = (uint64_t)r * heads + h;
            double b = det_sigmoid(2.0 * rng_normal(beta_key, i));
            if (special && (i % 13 == 4 || i % 13 == 9))
                b = i % 13 == 4 ? 0.0 : 1.0;
            dtype_store(gate->dtype, gate->init, v->gate.first + r * v->gate.stride + h,
                        det_exp(fill_log_decay(regime, gate_key, i, h, NO_LOWER_BOUND)));
            dtype_store(beta->dtype, beta->init, v->beta.first + r * v->beta.stride + h, b);
        }
}

int gdn_add_operands(struct problem *p, enum gdn_layout layout, size_t rows, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    bool special = optional(p, "special", 0) != 0;
    struct gdn_views v;

    if (declare_operands(p, layout, rows, err) < 0)
        return -1;
    v = gdn_views_of(p, layout);
    fill_unit_heads(p, v.query, "query", rows, s.nk);
    fill_unit_heads(p, v.key, "key", rows, s.nk);
    if (special)
        spoil_keys(p, v.key, rows, s.nk);
    for (size_t r = 0; r < rows; r++) {
        struct buffer *b = &p->buffer[v.value.buffer];
        size_t first = v.value.first + r * v.value.stride;
        fill_normal(b, rng_key(p->tc.seed, "value"), first, v_width(&s), 1.0, 0.0);
        scale_value_channels(b, GDN_DIM, first, v_width(&s));
    }
    fill_gates(p, &v, rows, s.nv, special);
    return 0;
}

dev_ptr gdn_view_ptr(const struct operator_run *run, struct gdn_view v, size_t row)
{
    size_t at = v.first + row * v.stride;

    return run->ptr[v.buffer] + at * dtype_size(run->problem->buffer[v.buffer].dtype);
}

void gdn_wy4_operands(const struct operator_run *run, const struct gdn_views *v, size_t row,
                      uint32_t batch, struct gdn_wy4_args *args)
{
    struct gdn_shape s = gdn_shape_of(run->problem);

    *args = (struct gdn_wy4_args){
        .query = gdn_view_ptr(run, v->query, row),
        .key = gdn_view_ptr(run, v->key, row),
        .value = gdn_view_ptr(run, v->value, row),
        .gate = gdn_view_ptr(run, v->gate, row),
        .beta = gdn_view_ptr(run, v->beta, row),
        .batch_size = batch,
        .num_k_heads = s.nk,
        .num_v_heads = s.nv,
        .k_dim = GDN_DIM,
        .v_dim = GDN_DIM,
        .qk_stride = (uint32_t)v->query.stride,
        .v_stride = (uint32_t)v->value.stride,
        .gb_stride = (uint32_t)v->gate.stride,
    };
}

void gdn_woa_operands(const struct operator_run *run, const struct gdn_views *v, size_t row,
                      uint32_t batch, struct gdn_woa_args *args)
{
    struct gdn_shape s = gdn_shape_of(run->problem);
    struct gdn_wy4_args a;

    gdn_wy4_operands(run, v, row, batch, &a);
    *args = (struct gdn_woa_args){
        .query = a.query,
        .key = a.key,
        .value = a.value,
        .gate = a.gate,
        .beta = a.beta,
        .batch_size = batch,
        .num_k_heads = s.nk,
        .num_v_heads = s.nv,
        .k_dim = GDN_DIM,
        .v_dim = GDN_DIM,
        .qk_stride = a.qk_stride,
        .v_stride = a.v_stride,
        .gb_stride = a.gb_stride,
        .stash_seq_floats = s.stash,
    };
}

void gdn_fold_operands(const struct operator_run *run, struct gdn_fold_args *args)
{
    struct gdn_shape s = gdn_shape_of(run->problem);

    *args = (struct gdn_fold_args){
        .slab_entries = s.slab,
        .k_rows = GDN_VERIFY_ROWS,
        .batch_size = s.batch,
        .num_k_heads = s.nk,
        .num_v_heads = s.nv,
        .k_dim = GDN_DIM,
        .v_dim = GDN_DIM,
        .stash_seq_floats = s.stash,
    };
}

/* --- buffers ----------------------------------------------------------------------------- */

size_t gdn_slot(const struct gdn_shape *s, bool table, size_t seq)
{
    return table ? s->batch - seq : seq;
}

size_t gdn_state_at(const struct gdn_shape *s, bool table, size_t seq, size_t head)
{
    return (gdn_slot(s, table, seq) * s->nv + head) * GDN_HEAD_STATE;
}

int gdn_add_states(struct problem *p, const char *name, enum role role, bool table, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    const struct dim dims[] = {{table ? "slot" : "seq", s.batch + (table ? 1u : 0u)},
                               {"head", s.nv},
                               {"row", GDN_DIM},
                               {"column", GDN_DIM},
                               {NULL, 0}};
    int id;

    if (problem_add(p, name, DTYPE_F32, role, dims, &id, err) < 0)
        return -1;
    if ((role == ROLE_IN || role == ROLE_INOUT) && optional(p, "state", 0) == 0) {
        struct buffer *b = &p->buffer[id];
        fill_normal(b, rng_key(p->tc.seed, name), 0, b->count, STATE_SCALE, 0.0);
        scale_value_channels(b, GDN_DIM, 0, b->count);
    }
    return 0;
}

int gdn_add_table(struct problem *p, const char *name, const char *const *pools, unsigned slabs,
                  struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    const struct dim dims[] = {{"slab", slabs}, {"seq", s.slab}, {NULL, 0}};
    int id;

    if (problem_add(p, name, DTYPE_PTR, ROLE_IN, dims, &id, err) < 0)
        return -1;
    for (unsigned t = 0; t < slabs; t++)
        for (size_t b = 0; b < s.batch && pools[t] != NULL; b++)
            p->buffer[id].refs[t * s.slab + b] = (struct pointer_ref){
                problem_find(p, pools[t]), gdn_state_at(&s, true, b, 0) * sizeof(float)};
    return 0;
}

int gdn_add_output(struct problem *p, const char *name, size_t steps, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    const struct dim dims[] = {{"step", steps}, {"seq", s.batch},    {"token", GDN_VERIFY_ROWS},
                               {"head", s.nv},  {"column", GDN_DIM}, {NULL, 0}};
    int id;

    return problem_add(p, name, DTYPE_BF16, ROLE_OUT, steps > 1 ? dims : dims + 1, &id, err);
}

int gdn_add_stash(struct problem *p, const char *name, enum role role, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    const struct dim dims[] = {{"seq", s.batch}, {"float", s.stash}, {NULL, 0}};
    int id;

    if (problem_add(p, name, DTYPE_F32, role, dims, &id, err) < 0)
        return -1;
    buffer_poison(&p->buffer[id], 0, p->buffer[id].count);
    return 0;
}

int gdn_add_words(struct problem *p, const char *name, enum role role, size_t count, uint32_t value,
                  struct err *err)
{
    const struct dim dims[] = {{"word", count}, {NULL, 0}};
    int id;

    if (problem_add(p, name, DTYPE_U32, role, dims, &id, err) < 0)
        return -1;
    for (size_t i = 0; i < count && (role == ROLE_IN || role == ROLE_INOUT); i++)
        ((uint32_t *)p->buffer[id].init)[i] = value;
    return 0;
}

int gdn_add_accepts(struct problem *p, const char *name, size_t steps, struct err *err)
{
    struct gdn_shape s = gdn_shape_of(p);
    uint32_t na = optional(p, "na", NA_MIXED);
    uint64_t key = rng_key(p->tc.seed, name);
    uint32_t *word;

    if (gdn_add_words(p, name, ROLE_IN, steps * s.batch, na, err) < 0)
        return -1;
    word = p->buffer[problem_find(p, name)].init;
    /* 2b walks through all residues: neighbours accept different numbers of tokens. */
    for (size_t i = 0; i < steps * s.batch && na == NA_MIXED; i++)
        word[i] = (uint32_t)((rng_below(key, i / s.batch, 5) + 2 * (i % s.batch)) % 5);
    return 0;
}

uint32_t gdn_word(const struct problem *p, const char *name, size_t i)
{
    return ((const uint32_t *)p->buffer[problem_find(p, name)].init)[i];
}

/* --- cost -------------------------------------------------------------------------------- */

double gdn_states_bytes(const struct gdn_shape *s)
{
    return (double)s->batch * s->nv * (double)GDN_HEAD_STATE * sizeof(float);
}

void gdn_verify_cost(const struct gdn_shape *s, struct cost *cost)
{
    double rows = (double)s->rows;
    double heads = (double)s->batch * s->nv;
    double state = (double)GDN_HEAD_STATE;

    cost->read_bytes =
        rows * (2.0 * 2.0 * (double)qk_width(s) + 2.0 * (double)v_width(s) + 8.0 * s->nv);
    cost->write_bytes = rows * 2.0 * (double)v_width(s);
    /* A token: S^T k and S^T q (2 each an element of S), g S + k u^T (3). A head: six k_i . k_j. */
    cost->flops = heads * (GDN_VERIFY_ROWS * 7.0 * state + 6.0 * 2.0 * GDN_DIM);
    cost->unit = COST_FP32;
}
