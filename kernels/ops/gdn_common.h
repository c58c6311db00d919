/*
 * What the operators of the gated delta rule share: parameters, operands in three layouts, states
 * in pools behind pointer tables, and the reference run head by head.
 *
 * A pool of states has one slot more than there are sequences when it is reached through a table:
 * sequence b lives in slot batch - b, slot 0 is nobody's, and the table's entries past the batch
 * are poison.
 */
#ifndef OPS_GDN_COMMON_H
#define OPS_GDN_COMMON_H

#include "kernels/ops/gdn.h"
#include "problem/operator.h"
#include "reference/gated_delta_verify.h"

#define GDN_HEAD_STATE ((size_t)GDN_DIM * GDN_DIM) /* floats of one head's state */

/* Where q|k|v and gate|beta lie. */
enum gdn_layout {
    GDN_PACKED, /* five tight tensors */
    GDN_SLICED, /* q|k|v slices of one row with a gap behind them, gate|beta of another */
    GDN_LOOSE,  /* five tensors; three different strides, each wider than its row */
};
extern const char *const gdn_layouts[];

extern const char *const gdn_states[]; /* "random", "zero": the initial state */

/* Parameters that the verifying operators take, to be named in their tables. */
#define GDN_PARAM_HEADS                                                                            \
    {.key = "nk", .fallback = 1, .min = 1, .max = 64},                                             \
        {.key = "nv", .fallback = 2, .min = 1, .max = 256},                                        \
    {                                                                                              \
        .key = "batch", .fallback = 2, .min = 1, .max = 256                                        \
    }
#define GDN_PARAM_GATE                                                                             \
    {                                                                                              \
        .key = "gate", .max = 6, .choices = gate_regimes                                           \
    }
#define GDN_PARAM_LAYOUT                                                                           \
    {                                                                                              \
        .key = "layout", .fallback = GDN_SLICED, .max = 2, .choices = gdn_layouts                  \
    }
#define GDN_PARAM_SPECIAL                                                                          \
    {                                                                                              \
        .key = "special", .max = 1                                                                 \
    } /* some zero and tiny k rows, beta 0 and 1 */
#define GDN_PARAM_SLAB                                                                             \
    {                                                                                              \
        .key = "slab", .fallback = 3, .max = 64                                                    \
    } /* table entries past the batch */
#define GDN_PARAM_STASH                                                                            \
    {                                                                                              \
        .key = "stash_pad", .fallback = 5, .max = 4096                                             \
    } /* floats past the minimum */
#define GDN_PARAM_NA                                                                               \
    {                                                                                              \
        .key = "na", .fallback = 5, .max = 5, .choices = gdn_accepts                               \
    }
extern const char *const gdn_accepts[]; /* "0".."4", "mixed" */

#define GDN_CONTRACT                                                                               \
    "bf16 q, k, v and output; fp32 state, products and sums; dots of 128 terms in any order, "     \
    "multiply-adds fused or not; gates clamped to [1e-6f, 1-1e-6f]; 1/sqrt(k_dim) within 2 ulp"

struct gdn_shape {
    uint32_t nk, nv, batch, slab; /* slab: entries of a table, at least `batch` */
    uint32_t stash;               /* floats a sequence; 0 when the operator declares no stash */
    size_t rows;                  /* batch * 4 */
};

/* From the case's parameters; ERR_INPUT when nv is not a multiple of nk. */
int gdn_shape_check(const struct problem *p, struct err *err);
struct gdn_shape gdn_shape_of(const struct problem *p);

/* Element (row, column) of an operand is at first + row * stride + column of a buffer. */
struct gdn_view {
    int buffer;
    size_t first, stride;
};
struct gdn_views {
    struct gdn_view query, key, value, gate, beta;
};

/* Declares the operands of `rows` rows and fills them by the case's regime and seed. */
int gdn_add_operands(struct problem *p, enum gdn_layout layout, size_t rows, struct err *err);
struct gdn_views gdn_views_of(const struct problem *p, enum gdn_layout layout);
dev_ptr gdn_view_ptr(const struct operator_run *run, struct gdn_view v, size_t row);

/* The arguments that verify kernels share, from row `row` on and for `batch` sequences. */
void gdn_wy4_operands(const struct operator_run *run, const struct gdn_views *v, size_t row,
                      uint32_t batch, struct gdn_wy4_args *args);
void gdn_woa_operands(const struct operator_run *run, const struct gdn_views *v, size_t row,
                      uint32_t batch, struct gdn_woa_args *args);
/* The fold's dims and strides; pointers and k_rows = 4 are the caller's to set or change. */
void gdn_fold_operands(const struct operator_run *run, struct gdn_fold_args *args);

/* --- buffers ----------------------------------------------------------------------------- */

/* A pool of states; random or zero contents by the parameter "state", if declared, when it has
   contents. */
int gdn_add_states(struct problem *p, const char *name, enum role role, bool table,
                   struct err *err);
size_t gdn_slot(const struct gdn_shape *s, bool table, size_t seq);
size_t gdn_state_at(const struct gdn_shape *s, bool table, size_t seq, size_t head); /* element */

/* A table of `slabs` slabs of s.slab pointers; slab t points into pools[t], or nowhere when it is
   NULL. */
int gdn_add_table(struct problem *p, const char *name, const char *const *pools, unsigned slabs,
                  struct err *err);
int gdn_add_output(struct problem *p, const char *name, size_t steps, struct err *err);
int gdn_add_stash(struct problem *p, const char *name, enum role role, struct err *err);
int gdn_add_words(struct problem *p, const char *name, enum role role, size_t count, uint32_t value,
                  struct err *err);
/* na_tab of `steps` x batch words; random per sequence when the parameter "na" is mixed or not
   declared. */
int gdn_add_accepts(struct problem *p, const char *name, size_t steps, struct err *err);
uint32_t gdn_word(const struct problem *p, const char *name, size_t i);

/* --- the reference ----------------------------------------------------------------------- */

/* One head of one sequence, ready to run. */
struct gdn_head {
    struct gdn_operands operands;
    struct gdn_results results; /* arrays for u and output always, for the states when wanted */
    double *scratch;
    double *memory; /* what the operands point to */
};

/* Reads row `row` on (4 rows) of value head vh into the head's operands; the state is not
   touched. */
void gdn_head_load(const struct problem *p, const struct gdn_views *v, size_t row, uint32_t vh,
                   struct gdn_head *h);
void gdn_head_init(struct gdn_head *h, bool states);
void gdn_head_release(struct gdn_head *h);
/* Reads the initial state of head vh of sequence seq from a pool's contents. */
void gdn_head_state(const struct problem *p, int pool, bool table, size_t seq, uint32_t vh,
                    struct gdn_head *h);

/* Runs every head of every sequence in parallel and hands each to `emit`, which writes the
   expectations of that head only. */
struct gdn_run {
    const struct problem *problem;
    const struct reference_env *env;
    enum gdn_layout layout;
    const char *pool; /* holds the initial states */
    bool table;       /* the pool is reached through one */
    bool states;      /* the states after each token are wanted */
    void (*emit)(const struct gdn_run *run, size_t seq, uint32_t vh, const struct gdn_results *r);
    void *ctx; /* emit's */
};
void gdn_run_heads(const struct gdn_run *run);

/* Elements first .. first+n of e are those of b. */
void gdn_expect(struct expectation *e, size_t first, size_t n, const struct bounded *b,
                double lambda);
/* The head's four output rows; `first_row` is the output's row of token 0. */
void gdn_expect_output(struct expectation *e, const struct gdn_shape *s, size_t first_row,
                       uint32_t vh, const struct bounded *output, double lambda);
/* The head's part of a stash: u within its bounds, g and k exactly. */
void gdn_expect_stash(struct expectation *e, const struct gdn_run *run, size_t seq, uint32_t vh,
                      const struct gdn_results *r, double lambda);

/* --- cost -------------------------------------------------------------------------------- */

/* Operands and output of a verify step, and its arithmetic; the states' traffic comes on top. */
void gdn_verify_cost(const struct gdn_shape *s, struct cost *cost);
double gdn_states_bytes(const struct gdn_shape *s); /* of all sequences */

#endif
