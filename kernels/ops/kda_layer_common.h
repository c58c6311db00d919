/*
 * A whole KDA layer: its weights, its intermediate buffers, the launches of its parts, and the
 * judgement of each stage on the bits that the stage before it left. D is 128, the convolution's
 * window 4.
 *
 *     hidden -> q|k|v -> pack -> conv -> recurrence -> o_norm -> o_proj
 *     hidden -> f_a -> f_b -> gate;   hidden -> b_proj -> sigmoid;   hidden -> g_a -> g_b
 *
 * Decode: the convolution normalises q and k itself, then one token of the recurrence per row.
 * Prefill: the convolution, L2 norm of q and k in place, widening, chunks.
 */
#ifndef OPS_KDA_LAYER_COMMON_H
#define OPS_KDA_LAYER_COMMON_H

#include "kernels/ops/kda.h"
#include "kernels/ops/kda_recurrence_common.h"
#include "problem/operator.h"

#define LAYER_HEAD_DIM 128
#define LAYER_WINDOW   4
#define LAYER_CHUNK    32
#define LAYER_L2_EPS   1e-6f /* flash-linear-attention's l2norm */
#define LAYER_NORM_EPS 1e-5f /* Kimi-Linear's rms_norm_eps */

extern const char *const layer_gates[]; /* model, strong: how large exp(A_log) is */

#define LAYER_CONTRACT                                                                             \
    "each kernel its own contract: bf16 projections with fp32 accumulation, fp32 convolution, "    \
    "gates, recurrence and norms; every stage is judged on its predecessor's bits"

struct layer_sizes {
    uint32_t hidden, heads, rows; /* rows: decoded rows or prefilled tokens */
    uint32_t qkv;                 /* heads * 128 */
    uint32_t padded;              /* rows, or for a prefill rounded up to whole chunks */
    bool prefill;
    float lower; /* of the gate */
};
/* Parameters hidden, H, lower and `rows_key`; NULL: one row. */
struct layer_sizes layer_sizes_of(const struct problem *p, const char *rows_key, bool prefill);

/* The inputs are the first buffers, in this order. */
enum layer_input {
    IN_HIDDEN, /* bf16 [rows, hidden] */
    IN_Q,      /* bf16 [qkv, hidden]; so are k and v */
    IN_K,
    IN_V,
    IN_CONV,    /* bf16 [3 qkv, 4] */
    IN_F_A,     /* bf16 [128, hidden] */
    IN_F_B,     /* bf16 [qkv, 128] */
    IN_DT_BIAS, /* f32 [H, 128] */
    IN_A_LOG,   /* f32 [H] */
    IN_B,       /* bf16 [H, hidden] */
    IN_G_A,     /* bf16 [128, hidden] */
    IN_G_B,     /* bf16 [qkv, 128] */
    IN_NORM,    /* bf16 [128] */
    IN_O,       /* bf16 [hidden, qkv] */
    LAYER_INPUTS
};

/* The stages in the order of the data, which is the order of their buffers. */
enum layer_stage {
    L_Q,
    L_K,
    L_V,
    L_PACKED,
    L_CONV_STATE,
    L_CONV,
    L_NORMED, /* prefill: conv after the L2 norm; L_CONV is a copy from before */
    L_Q32,    /* prefill, as are the next five */
    L_K32,
    L_V32,
    L_F_A,
    L_F_B,
    L_GATE,
    L_B,
    L_BETA,
    L_G_A,
    L_G_B,
    L_GC, /* prefill: scratch, as are u and w */
    L_U,
    L_W,
    L_STATE,
    L_CORE,
    L_NORM,
    L_Y,
    LAYER_STAGES
};

/* A set of stage buffers; -1 where the layer has no such stage. */
struct layer_set {
    int id[LAYER_STAGES];
};
/* Sets of one problem, told apart by what follows their names. */
enum layer_twin { TWIN_NONE, TWIN_SINGLE, TWIN_PREFILL, LAYER_TWINS };
/* The buffers that layer_add_stages() added for that twin. */
struct layer_set layer_set_of(const struct problem *p, enum layer_twin twin);

int layer_add_inputs(struct problem *p, const struct layer_sizes *n, struct err *err);
int layer_add_stages(struct problem *p, const struct layer_sizes *n, enum layer_twin twin,
                     struct err *err);

/* ---- launches ---- */

struct layer_run {
    const struct operator_run *run;
    struct kda_kernels kernels;
    struct layer_sizes sizes;
    struct layer_set set;
};
struct layer_run layer_run_of(const struct operator_run *run, const struct layer_sizes *n,
                              enum layer_twin twin);
/* Rows [first, first + rows): all projections but the last, pack, gate and beta, each one launch.
   */
int layer_project(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err);
/* Row by row: convolution and one token of the recurrence. */
int layer_decode_rows(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err);
/* All rows as one sequence: convolution, L2 norm, widening, chunks. */
int layer_prefill_rows(const struct layer_run *l, struct err *err);
/* Gated norm and output projection. */
int layer_finish(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err);

/* ---- judgement ---- */

/* The `reference` of an operator that leaves all to its stages: nothing. */
int layer_reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                    struct err *err);

/* Expects every stage of a set from what its predecessors left; see `stages` of struct op. */
void layer_expect(const struct outcome *out, const struct reference_env *env, struct golden *g,
                  const struct layer_sizes *n, enum layer_twin twin);

/* What the recurrence was given, by the outcome. */
struct kda_sequence layer_core_sequence(const struct outcome *out, const struct layer_sizes *n,
                                        enum layer_twin twin);

/* Weights once, the rows' inputs and outputs, both states. */
double layer_states_bytes(const struct problem *p); /* of the convolutions and the recurrence */
void layer_cost(const struct problem *p, const struct layer_sizes *n, struct cost *cost);

#endif
