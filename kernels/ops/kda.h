/*
 * The kernels of a Kimi-Delta-Attention block: the table of sixteen handles, and a typed launcher
 * each. Layouts are row-major; "stride" counts elements. D is head_dim, qkv = heads * D, T tokens;
 * T_pad is T rounded up to a whole chunk. The gate of this family is a LOG decay (<= 0) per key
 * channel.
 *
 * A launcher checks what its kernel cannot do, refuses it by name (ERR_REFUSED) and otherwise
 * enqueues; it never waits. Argument structs name the fields in the kernel's own order.
 */
#ifndef OPS_KDA_H
#define OPS_KDA_H

#include "base/err.h"
#include "device/kernel_set.h"
#include "kernels/ops/kda_conv_launch.h"
#include "kernels/ops/kda_dense_launch.h"
#include "kernels/ops/kda_move_launch.h"
#include "kernels/ops/kda_pointwise_launch.h"
#include "kernels/ops/kda_recurrence_launch.h"
#include "problem/operator.h"

#define KDA_HANDLES 16

/* The handles in the order of the table; gemv_batchm and recurrent_smem are NULL when the set
   lacks them. */
struct kda_kernels {
    const struct kernel *gemm, *gemv, *gemv_batchm, *conv_decode, *conv_prefill, *l2, *gate,
        *chunk_prepare, *chunk_scan, *recurrent, *recurrent_smem, *o_norm, *split_widen, *sigmoid,
        *fill, *pack;
};

/* Module and entry of each handle, in the order of struct kda_kernels; ends with { NULL }. An
   operator that is composed of the block's kernels uses it as its `entries`. */
extern const struct operator_entry kda_entries[KDA_HANDLES + 1];

/* Finds all of them. ERR_MISSING names module and entry of the first required one that is
   absent; an optional one may be absent but not ambiguous or broken. */
int kda_kernels_resolve(struct kernel_set *set, struct kda_kernels *out, struct err *err);
/* The same through another lookup, with the contract of kernel_set_find(). */
struct kernel_finder {
    int (*find)(void *ctx, const char *module, const char *entry, struct kernel **out,
                struct err *err);
    void *ctx;
};
int kda_kernels_resolve_with(const struct kernel_finder *finder, struct kda_kernels *out,
                             struct err *err);

/* The table from kernels that are already resolved, in the order of kda_entries. */
void kda_kernels_bind(const struct kernel *const kernel[KDA_HANDLES], struct kda_kernels *out);

#endif
