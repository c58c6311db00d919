/* The launches of a KDA layer's parts, in the layer's order. */
#include "kernels/ops/kda_layer_common.h"

static const size_t bf16 = sizeof(uint16_t), f32 = sizeof(float);

struct layer_run layer_run_of(const struct operator_run *run, const struct layer_sizes *n,
                              enum layer_twin twin)
{
    struct layer_run l = {.run = run, .sizes = *n, .set = layer_set_of(run->problem, twin)};

    kda_kernels_bind(run->kernel, &l.kernels);
    return l;
}

static dev_ptr input(const struct layer_run *l, enum layer_input id)
{
    return l->run->ptr[id];
}

/* Row `row` of a stage's buffer, rows of `width` elements of `size` bytes. */
static dev_ptr at(const struct layer_run *l, enum layer_stage stage, size_t row, size_t width,
                  size_t size)
{
    return l->run->ptr[l->set.id[stage]] + row * width * size;
}

/* A projection of `rows` rows of `k` by a weight into rows of `n`. */
struct projection {
    dev_ptr from;
    enum layer_input weight;
    enum layer_stage to;
    uint32_t n, k;
};

static int project(const struct layer_run *l, const struct projection *x, uint32_t first,
                   uint32_t rows, struct err *err)
{
    const struct kda_dense_args args = {
        .a = x->from,
        .b = input(l, x->weight),
        .c = at(l, x->to, first, x->n, bf16),
        .m = rows,
        .n = x->n,
        .k = x->k,
    };

    if (kda_dense_mm(&l->kernels, &args, err) < 0)
        return err_context(err, "projection into %s",
                           l->run->problem->buffer[l->set.id[x->to]].name);
    return 0;
}

static int pack(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err)
{
    uint32_t qkv = l->sizes.qkv;
    const struct kda_pack_args args = {
        .q = at(l, L_Q, first, qkv, bf16),
        .k = at(l, L_K, first, qkv, bf16),
        .v = at(l, L_V, first, qkv, bf16),
        .dst = at(l, L_PACKED, first, (size_t)3 * qkv, bf16),
        .tokens = rows,
        .qkv = qkv,
    };

    return kda_launch_pack(l->kernels.pack, &args, err);
}

static int gate_and_beta(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err)
{
    uint32_t qkv = l->sizes.qkv, heads = l->sizes.heads;
    const struct kda_gate_args gate = {
        .g_raw = at(l, L_F_B, first, qkv, bf16),
        .dt_bias = input(l, IN_DT_BIAS),
        .a_log = input(l, IN_A_LOG),
        .out = at(l, L_GATE, first, qkv, f32),
        .tokens = rows,
        .heads = heads,
        .head_dim = LAYER_HEAD_DIM,
        .lower_bound = l->sizes.lower,
    };
    const struct kda_sigmoid_args beta = {
        .src = at(l, L_B, first, heads, bf16),
        .dst = at(l, L_BETA, first, heads, f32),
        .n = rows * heads,
    };

    if (kda_launch_gate(l->kernels.gate, &gate, err) < 0)
        return -1;
    return kda_launch_sigmoid(l->kernels.sigmoid, &beta, err);
}

int layer_project(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err)
{
    uint32_t hidden = l->sizes.hidden, qkv = l->sizes.qkv, low = LAYER_HEAD_DIM;
    dev_ptr from = input(l, IN_HIDDEN) + (size_t)first * hidden * bf16;
    const struct projection projections[] = {
        {from, IN_Q, L_Q, qkv, hidden},
        {from, IN_K, L_K, qkv, hidden},
        {from, IN_V, L_V, qkv, hidden},
        {from, IN_F_A, L_F_A, low, hidden},
        {at(l, L_F_A, first, low, bf16), IN_F_B, L_F_B, qkv, low},
        {from, IN_B, L_B, l->sizes.heads, hidden},
        {from, IN_G_A, L_G_A, low, hidden},
        {at(l, L_G_A, first, low, bf16), IN_G_B, L_G_B, qkv, low},
    };

    for (size_t i = 0; i < sizeof(projections) / sizeof(projections[0]); i++)
        if (project(l, &projections[i], first, rows, err) < 0)
            return -1;
    if (pack(l, first, rows, err) < 0)
        return -1;
    return gate_and_beta(l, first, rows, err);
}

static int decode_row(const struct layer_run *l, uint32_t row, struct err *err)
{
    uint32_t qkv = l->sizes.qkv, heads = l->sizes.heads;
    dev_ptr conv_row = at(l, L_CONV, row, (size_t)3 * qkv, bf16);
    const struct kda_conv_decode_args conv = {
        .conv_state = at(l, L_CONV_STATE, 0, 0, 0),
        .x = at(l, L_PACKED, row, (size_t)3 * qkv, bf16),
        .weight = input(l, IN_CONV),
        .bias = 0,
        .y = conv_row,
        .batch = 1,
        .dim = 3 * qkv,
        .d_conv = LAYER_WINDOW,
        .qk_channels = 2 * qkv,
        .head_dim = LAYER_HEAD_DIM,
        .l2_eps = LAYER_L2_EPS,
    };
    const struct kda_recurrent_args token = {
        .q = conv_row,
        .k = conv_row + qkv * bf16,
        .v = conv_row + 2 * qkv * bf16,
        .gate = at(l, L_GATE, row, qkv, f32),
        .beta = at(l, L_BETA, row, heads, f32),
        .state = at(l, L_STATE, 0, 0, 0),
        .out = at(l, L_CORE, row, qkv, f32),
        .heads = heads,
        .head_dim = LAYER_HEAD_DIM,
        .scale = kda_scale(LAYER_HEAD_DIM),
    };

    if (kda_launch_conv_decode(l->kernels.conv_decode, &conv, err) < 0)
        return -1;
    if (l->kernels.recurrent_smem != NULL)
        return kda_launch_recurrent_smem(l->kernels.recurrent_smem, &token, KDA_SMEM_COLUMNS, err);
    return kda_launch_recurrent(l->kernels.recurrent, &token, err);
}

int layer_decode_rows(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err)
{
    for (uint32_t row = first; row < first + rows; row++)
        if (decode_row(l, row, err) < 0)
            return err_context(err, "row %u", row);
    return 0;
}

static int prefill_conv(const struct layer_run *l, struct err *err)
{
    uint32_t qkv = l->sizes.qkv, rows = l->sizes.rows;
    const struct buffer *conv = &l->run->problem->buffer[l->set.id[L_CONV]];
    const struct kda_conv_prefill_args args = {
        .conv_state = at(l, L_CONV_STATE, 0, 0, 0),
        .x = at(l, L_PACKED, 0, 0, 0),
        .weight = input(l, IN_CONV),
        .bias = 0,
        .y = at(l, L_NORMED, 0, 0, 0),
        .dim = 3 * qkv,
        .d_conv = LAYER_WINDOW,
        .seq_len = rows,
        .in_stride = 3 * qkv,
        .out_stride = 3 * qkv,
    };
    const struct kda_l2_args l2 = {
        .data = at(l, L_NORMED, 0, 0, 0),
        .heads = 2 * l->sizes.heads,
        .tokens = rows,
        .head_dim = LAYER_HEAD_DIM,
        .eps = LAYER_L2_EPS,
        .stride = 3 * qkv,
    };

    if (kda_launch_conv_prefill(l->kernels.conv_prefill, &args, err) < 0)
        return -1;
    /* The norm works in place: its input is kept for the judge of either stage. */
    if (device_copy(l->run->device, at(l, L_CONV, 0, 0, 0), args.y, conv->bytes, err) < 0)
        return -1;
    return kda_launch_l2(l->kernels.l2, &l2, err);
}

static int prefill_chunks(const struct layer_run *l, struct err *err)
{
    const struct layer_sizes *n = &l->sizes;
    const struct kda_chunk_prepare_args prepare = {
        .k = at(l, L_K32, 0, 0, 0),
        .v = at(l, L_V32, 0, 0, 0),
        .gate = at(l, L_GATE, 0, 0, 0),
        .beta = at(l, L_BETA, 0, 0, 0),
        .gc = at(l, L_GC, 0, 0, 0),
        .u = at(l, L_U, 0, 0, 0),
        .w = at(l, L_W, 0, 0, 0),
        .heads = n->heads,
        .head_dim = LAYER_HEAD_DIM,
        .chunk = LAYER_CHUNK,
        .tokens = n->rows,
    };
    const struct kda_chunk_scan_args scan = {
        .q = at(l, L_Q32, 0, 0, 0),
        .k = prepare.k,
        .gc = prepare.gc,
        .u = prepare.u,
        .w = prepare.w,
        .state = at(l, L_STATE, 0, 0, 0),
        .out = at(l, L_CORE, 0, 0, 0),
        .heads = n->heads,
        .head_dim = LAYER_HEAD_DIM,
        .chunk = LAYER_CHUNK,
        .num_chunks = n->padded / LAYER_CHUNK,
        .tokens = n->rows,
        .scale = kda_scale(LAYER_HEAD_DIM),
    };

    if (kda_launch_chunk_prepare(l->kernels.chunk_prepare, &prepare, err) < 0)
        return -1;
    return kda_launch_chunk_scan(l->kernels.chunk_scan, &scan, err);
}

int layer_prefill_rows(const struct layer_run *l, struct err *err)
{
    const struct kda_split_widen_args split = {
        .src = at(l, L_NORMED, 0, 0, 0),
        .q = at(l, L_Q32, 0, 0, 0),
        .k = at(l, L_K32, 0, 0, 0),
        .v = at(l, L_V32, 0, 0, 0),
        .tokens = l->sizes.rows,
        .qkv = l->sizes.qkv,
    };

    if (prefill_conv(l, err) < 0 || kda_launch_split_widen(l->kernels.split_widen, &split, err) < 0)
        return -1;
    return prefill_chunks(l, err);
}

int layer_finish(const struct layer_run *l, uint32_t first, uint32_t rows, struct err *err)
{
    uint32_t qkv = l->sizes.qkv;
    const struct kda_o_norm_args norm = {
        .x = at(l, L_CORE, first, qkv, f32),
        .gate = at(l, L_G_B, first, qkv, bf16),
        .weight = input(l, IN_NORM),
        .out = at(l, L_NORM, first, qkv, bf16),
        .rows = rows * l->sizes.heads,
        .head_dim = LAYER_HEAD_DIM,
        .eps = LAYER_NORM_EPS,
    };
    const struct projection last = {norm.out, IN_O, L_Y, l->sizes.hidden, qkv};

    if (kda_launch_o_norm(l->kernels.o_norm, &norm, err) < 0)
        return -1;
    return project(l, &last, first, rows, err);
}
