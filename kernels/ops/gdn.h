/*
 * Launchers of the gated delta rule's four kernels (K = 4 speculative verify). Layouts are row-
 * major, "stride" counts elements, row b*4+t belongs to token t of sequence b. Arguments stand in
 * the kernels' own order. Nothing here waits.
 *
 * A launcher refuses (ERR_REFUSED, naming its kernel, the argument and the rule) before anything
 * runs: null and misaligned pointers, dims that the kernels do not support, strides that make
 * rows overlap, and products that the kernels' 32-bit arguments cannot count.
 */
#ifndef OPS_GDN_H
#define OPS_GDN_H

#include "base/err.h"
#include "device/launch.h"

#define GDN_DIM         128 /* k_dim and v_dim that the kernels support, and their block */
#define GDN_VERIFY_ROWS 4   /* tokens of a verify step */

/* gated_delta_rule_wy4: verify and write the state after every token. */
struct gdn_wy4_args {
    dev_ptr
        h_state; /* fp32 [batch, num_v_heads, k_dim, v_dim], or a table of `batch_size` pointers */
    dev_ptr query, key; /* bf16, row stride qk_stride */
    dev_ptr value;      /* bf16, row stride v_stride */
    dev_ptr gate, beta; /* fp32, row stride gb_stride; the gate is the decay itself */
    dev_ptr output;     /* bf16 [batch*4, num_v_heads, v_dim] */
    dev_ptr h_inter[3]; /* states after tokens 0..2, like h_state */
    uint32_t batch_size, num_k_heads, num_v_heads, k_dim, v_dim;
    uint32_t qk_stride, v_stride, gb_stride;
    uint32_t state_is_table; /* 0: the four are contiguous states, 1: tables */
};
int gdn_wy4_launch(const struct kernel *kernel, const struct gdn_wy4_args *args, struct err *err);

/* gated_delta_rule_wy4_woa: verify, write no state, stash u | g | k, set the engaged word. */
struct gdn_woa_args {
    dev_ptr h_table; /* `batch_size` pointers to states */
    dev_ptr query, key, value, gate, beta, output;
    dev_ptr stash; /* fp32, gdn_stash_floats() or more a sequence */
    uint32_t batch_size, num_k_heads, num_v_heads, k_dim, v_dim;
    uint32_t qk_stride, v_stride, gb_stride;
    uint32_t stash_seq_floats;
    dev_ptr engaged_flag; /* u32 */
};
int gdn_woa_launch(const struct kernel *kernel, const struct gdn_woa_args *args, struct err *err);

/* gated_delta_rule_wy4_fold: engaged word set: replay na_tab[b] stashed rows; clear: restore slab
   na_tab[b] - 1 when na_tab[b] < k_rows. */
struct gdn_fold_args {
    dev_ptr h_table, stash, na_tab;
    dev_ptr hi_tables; /* slab t begins t * slab_entries pointers into it */
    uint32_t slab_entries;
    dev_ptr engaged_flag;
    uint32_t k_rows, batch_size, num_k_heads, num_v_heads, k_dim, v_dim, stash_seq_floats;
};
int gdn_fold_launch(const struct kernel *kernel, const struct gdn_fold_args *args, struct err *err);

/* gated_delta_rule_wy4_flag_clear. */
int gdn_flag_clear_launch(const struct kernel *kernel, dev_ptr flag, struct err *err);

/* The least stash of one sequence: u [4][num_v_heads][v_dim] | g [4][num_v_heads] | k
   [4][num_k_heads][k_dim]. */
uint64_t gdn_stash_floats(uint32_t num_k_heads, uint32_t num_v_heads, uint32_t k_dim,
                          uint32_t v_dim);

#endif
