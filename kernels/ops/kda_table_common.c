/* The table of the block's kernels. */
#include "kernels/ops/kda.h"

const struct operator_entry kda_entries[KDA_HANDLES + 1] = {
    {.module = "gemm", .entry = "dense_gemm_bf16"},
    {.module = "gemv", .entry = "dense_gemv_bf16"},
    {.module = "dense_gemv_bf16_batchm", .entry = "dense_gemv_bf16_batchm", .optional = true},
    {.module = "causal_conv1d", .entry = "causal_conv1d_update_l2norm"},
    {.module = "causal_conv1d", .entry = "causal_conv1d_update_prefill"},
    {.module = "norm", .entry = "l2_norm_bf16"},
    {.module = "kda_gate", .entry = "kda_gate_bf16"},
    {.module = "kda_chunk", .entry = "kda_chunk_prepare"},
    {.module = "kda_chunk", .entry = "kda_chunk_scan"},
    {.module = "kda_recurrent", .entry = "kda_recurrent_decode_bf16"},
    {.module = "kda_recurrent", .entry = "kda_recurrent_decode_bf16_smem", .optional = true},
    {.module = "kda_layer_ops", .entry = "kda_o_norm_gated_bf16"},
    {.module = "kda_layer_ops", .entry = "kda_split_widen"},
    {.module = "kda_layer_ops", .entry = "kda_sigmoid_bf16_f32"},
    {.module = "kda_layer_ops", .entry = "kda_fill_f32"},
    {.module = "kda_layer_ops", .entry = "kda_pack_qkv_bf16"},
    {.module = NULL},
};

void kda_kernels_bind(const struct kernel *const kernel[KDA_HANDLES], struct kda_kernels *out)
{
    *out = (struct kda_kernels){
        .gemm = kernel[0],
        .gemv = kernel[1],
        .gemv_batchm = kernel[2],
        .conv_decode = kernel[3],
        .conv_prefill = kernel[4],
        .l2 = kernel[5],
        .gate = kernel[6],
        .chunk_prepare = kernel[7],
        .chunk_scan = kernel[8],
        .recurrent = kernel[9],
        .recurrent_smem = kernel[10],
        .o_norm = kernel[11],
        .split_widen = kernel[12],
        .sigmoid = kernel[13],
        .fill = kernel[14],
        .pack = kernel[15],
    };
}

static int find(const struct kernel_finder *finder, const struct operator_entry *e,
                struct kernel **out, struct err *err)
{
    if (finder->find(finder->ctx, e->module, e->entry, out, err) == 0)
        return 0;
    /* Absent is what optional allows; an entry that two modules export is still an error. */
    if (!e->optional || err->kind != ERR_MISSING)
        return err_context(err, "kda kernels: module %s, entry %s", e->module, e->entry);
    *err = (struct err)ERR_INIT;
    *out = NULL;
    return 0;
}

int kda_kernels_resolve_with(const struct kernel_finder *finder, struct kda_kernels *out,
                             struct err *err)
{
    const struct kernel *found[KDA_HANDLES];

    for (unsigned i = 0; i < KDA_HANDLES; i++) {
        struct kernel *kernel = NULL;

        if (find(finder, &kda_entries[i], &kernel, err) < 0)
            return -1;
        found[i] = kernel;
    }
    kda_kernels_bind(found, out);
    return 0;
}

static int find_in_set(void *ctx, const char *module, const char *entry, struct kernel **out,
                       struct err *err)
{
    return kernel_set_find(ctx, module, entry, out, err);
}

int kda_kernels_resolve(struct kernel_set *set, struct kda_kernels *out, struct err *err)
{
    const struct kernel_finder finder = {.find = find_in_set, .ctx = set};

    return kda_kernels_resolve_with(&finder, out, err);
}
