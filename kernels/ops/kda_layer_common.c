/* Weights and buffers of a KDA layer. */
#include "kernels/ops/kda_layer_common.h"

#include <math.h>

#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda_conv_common.h"
#include "problem/fill.h"
#include "reference/detmath.h"

const char *const layer_gates[] = {"model", "strong", NULL};

static const float lower_values[] = {-5.0f, -2.5f, -1.0f}; /* the choices kda_lowers */

static const char *const stage_names[LAYER_TWINS][LAYER_STAGES] = {
    {"q",   "k",   "v",   "packed", "conv_state", "conv", "normed", "q32",
     "k32", "v32", "f_a", "f_b",    "gate",       "b",    "beta",   "g_a",
     "g_b", "gc",  "u",   "w",      "state",      "core", "norm",   "y"},
    {"q_single",     "k_single",      "v_single",    "packed_single", "conv_state_single",
     "conv_single",  "normed_single", "q32_single",  "k32_single",    "v32_single",
     "f_a_single",   "f_b_single",    "gate_single", "b_single",      "beta_single",
     "g_a_single",   "g_b_single",    "gc_single",   "u_single",      "w_single",
     "state_single", "core_single",   "norm_single", "y_single"},
    {"q_prefill",     "k_prefill",      "v_prefill",    "packed_prefill", "conv_state_prefill",
     "conv_prefill",  "normed_prefill", "q32_prefill",  "k32_prefill",    "v32_prefill",
     "f_a_prefill",   "f_b_prefill",    "gate_prefill", "b_prefill",      "beta_prefill",
     "g_a_prefill",   "g_b_prefill",    "gc_prefill",   "u_prefill",      "w_prefill",
     "state_prefill", "core_prefill",   "norm_prefill", "y_prefill"},
};

struct layer_sizes layer_sizes_of(const struct problem *p, const char *rows_key, bool prefill)
{
    struct layer_sizes n = {
        .hidden = case_u32(&p->tc, "hidden"),
        .heads = case_u32(&p->tc, "H"),
        .rows = rows_key != NULL ? case_u32(&p->tc, rows_key) : 1,
        .prefill = prefill,
        .lower = lower_values[case_u32(&p->tc, "lower")],
    };

    n.qkv = n.heads * LAYER_HEAD_DIM;
    n.padded = prefill ? (uint32_t)kda_padded_tokens(n.rows, LAYER_CHUNK) : n.rows;
    return n;
}

struct layer_set layer_set_of(const struct problem *p, enum layer_twin twin)
{
    struct layer_set set;

    for (int s = 0; s < LAYER_STAGES; s++)
        set.id[s] = problem_find(p, stage_names[twin][s]);
    return set;
}

/* Rows of K weights whose products with rows of unit variance have unit variance: uniform in
   +-sqrt(3 / K). */
static void fill_weight(struct problem *p, int id)
{
    struct buffer *b = &p->buffer[id];
    double reach = sqrt(3.0 / (double)b->dim[b->ndim - 1]);

    fill_uniform(b, rng_key(p->tc.seed, b->name), 0, b->count, -reach, reach);
}

/* As an initialised model: exp(A_log) up to 16 (strong: 16..201), dt log-uniform in 1e-3..0.1 and
   dt_bias its inverse softplus. */
static void fill_gate_parameters(struct problem *p)
{
    struct buffer *a_log = &p->buffer[IN_A_LOG], *dt_bias = &p->buffer[IN_DT_BIAS];
    uint64_t a_key = rng_key(p->tc.seed, a_log->name), dt_key = rng_key(p->tc.seed, dt_bias->name);
    bool strong = case_u32(&p->tc, "gate") != 0;

    for (size_t h = 0; h < a_log->count; h++) {
        double u = rng_uniform(a_key, h);
        double rate = strong ? 16.0 + 185.0 * u : 0.01 + 16.0 * u;
        dtype_store(a_log->dtype, a_log->init, h, det_log(rate));
    }
    for (size_t i = 0; i < dt_bias->count; i++) {
        double dt = det_exp(det_log(1e-3) + det_log(100.0) * rng_uniform(dt_key, i));
        dtype_store(dt_bias->dtype, dt_bias->init, i, dt + det_log(-det_expm1(-dt)));
    }
}

static void fill_inputs(struct problem *p)
{
    for (int id = IN_Q; id < LAYER_INPUTS; id++)
        if (id != IN_CONV && id != IN_DT_BIAS && id != IN_A_LOG && id != IN_NORM)
            fill_weight(p, id);
    struct buffer *hidden = &p->buffer[IN_HIDDEN], *conv = &p->buffer[IN_CONV];
    struct buffer *norm = &p->buffer[IN_NORM];
    fill_normal(hidden, rng_key(p->tc.seed, "hidden"), 0, hidden->count, 1.0, 0.3);
    fill_normal(conv, rng_key(p->tc.seed, "conv"), 0, conv->count, 0.5, 0.1);
    fill_normal(norm, rng_key(p->tc.seed, "norm"), 0, norm->count, 0.2, 1.0);
    fill_gate_parameters(p);
}

struct spec {
    const char *name;
    enum dtype dtype;
    enum role role;
    struct dim outer, inner; /* inner may be { NULL, 0 } */
};

int layer_add_inputs(struct problem *p, const struct layer_sizes *n, struct err *err)
{
    const struct dim hidden = {"hidden", n->hidden}, qkv = {"channel", n->qkv}, none = {NULL, 0};
    const struct dim low = {"low", LAYER_HEAD_DIM}, head = {"head", n->heads};
    const struct spec specs[LAYER_INPUTS] = {
        [IN_HIDDEN] = {"hidden", DTYPE_BF16, ROLE_IN, {"row", n->rows}, hidden},
        [IN_Q] = {"w_q", DTYPE_BF16, ROLE_IN, qkv, hidden},
        [IN_K] = {"w_k", DTYPE_BF16, ROLE_IN, qkv, hidden},
        [IN_V] = {"w_v", DTYPE_BF16, ROLE_IN, qkv, hidden},
        [IN_CONV] =
            {"w_conv", DTYPE_BF16, ROLE_IN, {"channel", (size_t)3 * n->qkv}, {"tap", LAYER_WINDOW}},
        [IN_F_A] = {"w_f_a", DTYPE_BF16, ROLE_IN, low, hidden},
        [IN_F_B] = {"w_f_b", DTYPE_BF16, ROLE_IN, qkv, low},
        [IN_DT_BIAS] = {"dt_bias", DTYPE_F32, ROLE_IN, head, low},
        [IN_A_LOG] = {"a_log", DTYPE_F32, ROLE_IN, head, none},
        [IN_B] = {"w_b", DTYPE_BF16, ROLE_IN, head, hidden},
        [IN_G_A] = {"w_g_a", DTYPE_BF16, ROLE_IN, low, hidden},
        [IN_G_B] = {"w_g_b", DTYPE_BF16, ROLE_IN, qkv, low},
        [IN_NORM] = {"w_norm", DTYPE_BF16, ROLE_IN, low, none},
        [IN_O] = {"w_o", DTYPE_BF16, ROLE_IN, hidden, qkv},
    };

    if (n->hidden % 8 != 0)
        return err_set(err, ERR_INPUT, "hidden=%u must be a multiple of 8", n->hidden);
    for (int id = 0; id < LAYER_INPUTS; id++)
        if (add_rows(p, specs[id].name, specs[id].dtype, specs[id].role, specs[id].outer,
                     specs[id].inner, err) < 0)
            return -1;
    fill_inputs(p);
    return 0;
}

static void fill_states(struct problem *p, enum layer_twin twin)
{
    struct layer_set set = layer_set_of(p, twin);
    struct buffer *conv = &p->buffer[set.id[L_CONV_STATE]], *state = &p->buffer[set.id[L_STATE]];

    if (case_u32(&p->tc, "state") != 0)
        return;
    /* The convolution's inputs are bf16, so are the ones it carried in. */
    for (size_t i = 0; i < conv->count && !conv->hollow; i++)
        dtype_store(DTYPE_F32, conv->init, i,
                    (double)bf16_to_float(
                        bf16_from_double(rng_normal(rng_key(p->tc.seed, "conv_state"), i))));
    fill_normal(state, rng_key(p->tc.seed, "state"), 0, state->count, 0.3, 0.0);
}

int layer_add_stages(struct problem *p, const struct layer_sizes *n, enum layer_twin twin,
                     struct err *err)
{
    const struct dim row = {"row", n->rows}, padded = {"row", n->padded};
    const struct dim qkv = {"channel", n->qkv}, packed = {"channel", (size_t)3 * n->qkv};
    const struct dim head = {"head", n->heads}, low = {"low", LAYER_HEAD_DIM};
    const struct dim rows_heads = {"row*head", (size_t)n->rows * n->heads};
    const struct spec specs[LAYER_STAGES] = {
        [L_Q] = {NULL, DTYPE_BF16, ROLE_OUT, row, qkv},
        [L_K] = {NULL, DTYPE_BF16, ROLE_OUT, row, qkv},
        [L_V] = {NULL, DTYPE_BF16, ROLE_OUT, row, qkv},
        [L_PACKED] = {NULL, DTYPE_BF16, ROLE_OUT, row, packed},
        [L_CONV_STATE] = {NULL, DTYPE_F32, ROLE_INOUT, packed, {"tap", LAYER_WINDOW}},
        [L_CONV] = {NULL, DTYPE_BF16, ROLE_OUT, row, packed},
        [L_NORMED] = {NULL, DTYPE_BF16, ROLE_OUT, row, packed},
        [L_Q32] = {NULL, DTYPE_F32, ROLE_OUT, padded, qkv},
        [L_K32] = {NULL, DTYPE_F32, ROLE_OUT, padded, qkv},
        [L_V32] = {NULL, DTYPE_F32, ROLE_OUT, padded, qkv},
        [L_F_A] = {NULL, DTYPE_BF16, ROLE_OUT, row, low},
        [L_F_B] = {NULL, DTYPE_BF16, ROLE_OUT, row, qkv},
        [L_GATE] = {NULL, DTYPE_F32, ROLE_OUT, padded, qkv},
        [L_B] = {NULL, DTYPE_BF16, ROLE_OUT, row, head},
        [L_BETA] = {NULL, DTYPE_F32, ROLE_OUT, padded, head},
        [L_G_A] = {NULL, DTYPE_BF16, ROLE_OUT, row, low},
        [L_G_B] = {NULL, DTYPE_BF16, ROLE_OUT, row, qkv},
        [L_GC] = {NULL, DTYPE_F32, ROLE_SCRATCH, padded, qkv},
        [L_U] = {NULL, DTYPE_F32, ROLE_SCRATCH, padded, qkv},
        [L_W] = {NULL, DTYPE_F32, ROLE_SCRATCH, padded, qkv},
        [L_STATE] = {NULL, DTYPE_F32, ROLE_INOUT, {"key", n->qkv}, {"value", LAYER_HEAD_DIM}},
        [L_CORE] = {NULL, DTYPE_F32, ROLE_OUT, padded, qkv},
        [L_NORM] = {NULL, DTYPE_BF16, ROLE_OUT, rows_heads, low},
        [L_Y] = {NULL, DTYPE_BF16, ROLE_OUT, row, {"hidden", n->hidden}},
    };

    for (int s = 0; s < LAYER_STAGES; s++) {
        bool of_prefill = (s >= L_NORMED && s <= L_V32) || (s >= L_GC && s <= L_W);
        if (of_prefill && !n->prefill)
            continue;
        if (add_rows(p, stage_names[twin][s], specs[s].dtype, specs[s].role, specs[s].outer,
                     specs[s].inner, err) < 0)
            return -1;
    }
    fill_states(p, twin);
    return 0;
}

double layer_states_bytes(const struct problem *p)
{
    const struct layer_set set = layer_set_of(p, TWIN_NONE);

    return (double)(p->buffer[set.id[L_CONV_STATE]].bytes + p->buffer[set.id[L_STATE]].bytes);
}

void layer_cost(const struct problem *p, const struct layer_sizes *n, struct cost *cost)
{
    const struct layer_set set = layer_set_of(p, TWIN_NONE);
    double weights = 0.0, rows = n->rows;
    double states = layer_states_bytes(p);

    for (int id = IN_Q; id < LAYER_INPUTS; id++)
        weights += (double)p->buffer[id].bytes;
    cost->read_bytes = weights + (double)p->buffer[IN_HIDDEN].bytes + states;
    cost->write_bytes = states + (double)p->buffer[set.id[L_Y]].bytes;
    /* Two per weight and row, and the recurrence's seven per cell of the state. */
    cost->flops = rows * weights + 7.0 * rows * (double)n->qkv * LAYER_HEAD_DIM;
    cost->unit = COST_BF16_MMA;
}
