#include "kernels/ops/gdn.h"

#include "kernels/ops/launch_guard.h"

uint64_t gdn_stash_floats(uint32_t num_k_heads, uint32_t num_v_heads, uint32_t k_dim,
                          uint32_t v_dim)
{
    return GDN_VERIFY_ROWS *
           ((uint64_t)num_v_heads * v_dim + num_v_heads + (uint64_t)num_k_heads * k_dim);
}

/* The dims that all but flag_clear share. */
static void guard_dims(struct launch_guard *g, uint32_t batch, uint32_t nk, uint32_t nv,
                       uint32_t k_dim, uint32_t v_dim)
{
    guard_size(g, "batch_size", batch);
    guard_size(g, "num_k_heads", nk);
    guard_size(g, "num_v_heads", nv);
    guard_that(g, nk == 0 || nv % nk == 0, "num_v_heads = %u is not a multiple of num_k_heads = %u",
               nv, nk);
    guard_range(g, "k_dim", k_dim, GDN_DIM, GDN_DIM);
    guard_range(g, "v_dim", v_dim, GDN_DIM, GDN_DIM);
    guard_axis(g, "num_v_heads", 'x', nv);
    guard_axis(g, "batch_size", 'y', batch);
    guard_product(g, "state: num_v_heads x k_dim x v_dim", nv, k_dim, v_dim);
}

/* Rows must not overlap, and the last row's offset must fit the kernels' 32-bit arithmetic. */
static void guard_rows(struct launch_guard *g, const char *name, uint32_t stride, const char *width,
                       uint64_t least, uint32_t batch)
{
    guard_least(g, name, stride, width, least);
    guard_product(g, name, batch, GDN_VERIFY_ROWS, stride);
}

static void guard_operands(struct launch_guard *g, const dev_ptr bf16[4], const dev_ptr fp32[2])
{
    static const char *const bf16_name[] = {"query", "key", "value", "output"};
    static const char *const fp32_name[] = {"gate", "beta"};

    for (int i = 0; i < 4; i++)
        guard_pointer(g, bf16_name[i], bf16[i], 2);
    for (int i = 0; i < 2; i++)
        guard_pointer(g, fp32_name[i], fp32[i], 4);
}

static void guard_strides(struct launch_guard *g, uint32_t batch, uint32_t nk, uint32_t nv,
                          const uint32_t stride[3])
{
    guard_rows(g, "qk_stride", stride[0], "num_k_heads * k_dim", (uint64_t)nk * GDN_DIM, batch);
    guard_rows(g, "v_stride", stride[1], "num_v_heads * v_dim", (uint64_t)nv * GDN_DIM, batch);
    guard_rows(g, "gb_stride", stride[2], "num_v_heads", nv, batch);
}

static void guard_stash(struct launch_guard *g, uint32_t batch, uint32_t nk, uint32_t nv,
                        uint32_t stash_seq_floats)
{
    guard_least(g, "stash_seq_floats", stash_seq_floats,
                "4*(num_v_heads*v_dim + num_v_heads + num_k_heads*k_dim)",
                gdn_stash_floats(nk, nv, GDN_DIM, GDN_DIM));
    guard_product(g, "stash: batch_size x stash_seq_floats", batch, stash_seq_floats, 1);
}

/* Grid and block of every kernel of the family: a block a value head and sequence. */
static void per_head(struct launch *l, const struct kernel *kernel, uint32_t nv, uint32_t batch)
{
    launch_init(l, kernel);
    launch_grid(l, nv, batch, 1);
    launch_block(l, GDN_DIM, 1, 1);
}

int gdn_wy4_launch(const struct kernel *kernel, const struct gdn_wy4_args *a, struct err *err)
{
    struct launch_guard g;
    struct launch l;
    uint32_t align = a->state_is_table != 0 ? 8 : 16; /* pointers, or rows of four floats */

    launch_guard_init(&g, "gated_delta_rule_wy4", kernel, err);
    guard_range(&g, "state_is_table", a->state_is_table, 0, 1);
    guard_pointer(&g, a->state_is_table != 0 ? "h_table" : "h_state", a->h_state, align);
    guard_pointer(&g, "h_inter0", a->h_inter[0], align);
    guard_pointer(&g, "h_inter1", a->h_inter[1], align);
    guard_pointer(&g, "h_inter2", a->h_inter[2], align);
    guard_operands(&g, (dev_ptr[]){a->query, a->key, a->value, a->output},
                   (dev_ptr[]){a->gate, a->beta});
    guard_dims(&g, a->batch_size, a->num_k_heads, a->num_v_heads, a->k_dim, a->v_dim);
    guard_strides(&g, a->batch_size, a->num_k_heads, a->num_v_heads,
                  (uint32_t[]){a->qk_stride, a->v_stride, a->gb_stride});
    if (g.refused)
        return -1;
    per_head(&l, kernel, a->num_v_heads, a->batch_size);
    launch_ptr(&l, a->h_state);
    launch_ptr(&l, a->query);
    launch_ptr(&l, a->key);
    launch_ptr(&l, a->value);
    launch_ptr(&l, a->gate);
    launch_ptr(&l, a->beta);
    launch_ptr(&l, a->output);
    for (int i = 0; i < 3; i++)
        launch_ptr(&l, a->h_inter[i]);
    launch_u32(&l, a->batch_size);
    launch_u32(&l, a->num_k_heads);
    launch_u32(&l, a->num_v_heads);
    launch_u32(&l, a->k_dim);
    launch_u32(&l, a->v_dim);
    launch_u32(&l, a->qk_stride);
    launch_u32(&l, a->v_stride);
    launch_u32(&l, a->gb_stride);
    launch_u32(&l, a->state_is_table);
    return launch_submit(&l, err);
}

int gdn_woa_launch(const struct kernel *kernel, const struct gdn_woa_args *a, struct err *err)
{
    struct launch_guard g;
    struct launch l;
    uint64_t shared = (uint64_t)a->k_dim * a->v_dim * sizeof(float); /* one head's state */

    launch_guard_init(&g, "gated_delta_rule_wy4_woa", kernel, err);
    guard_pointer(&g, "h_table", a->h_table, 8);
    guard_pointer(&g, "stash", a->stash, 4);
    guard_pointer(&g, "engaged_flag", a->engaged_flag, 4);
    guard_operands(&g, (dev_ptr[]){a->query, a->key, a->value, a->output},
                   (dev_ptr[]){a->gate, a->beta});
    guard_dims(&g, a->batch_size, a->num_k_heads, a->num_v_heads, a->k_dim, a->v_dim);
    guard_strides(&g, a->batch_size, a->num_k_heads, a->num_v_heads,
                  (uint32_t[]){a->qk_stride, a->v_stride, a->gb_stride});
    guard_stash(&g, a->batch_size, a->num_k_heads, a->num_v_heads, a->stash_seq_floats);
    guard_shared(&g, shared, gb10_limits.shared_per_block);
    if (g.refused)
        return -1;
    per_head(&l, kernel, a->num_v_heads, a->batch_size);
    launch_shared(&l, shared);
    launch_ptr(&l, a->h_table);
    launch_ptr(&l, a->query);
    launch_ptr(&l, a->key);
    launch_ptr(&l, a->value);
    launch_ptr(&l, a->gate);
    launch_ptr(&l, a->beta);
    launch_ptr(&l, a->output);
    launch_ptr(&l, a->stash);
    launch_u32(&l, a->batch_size);
    launch_u32(&l, a->num_k_heads);
    launch_u32(&l, a->num_v_heads);
    launch_u32(&l, a->k_dim);
    launch_u32(&l, a->v_dim);
    launch_u32(&l, a->qk_stride);
    launch_u32(&l, a->v_stride);
    launch_u32(&l, a->gb_stride);
    launch_u32(&l, a->stash_seq_floats);
    launch_ptr(&l, a->engaged_flag);
    return launch_submit(&l, err);
}

int gdn_fold_launch(const struct kernel *kernel, const struct gdn_fold_args *a, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "gated_delta_rule_wy4_fold", kernel, err);
    guard_pointer(&g, "h_table", a->h_table, 8);
    guard_pointer(&g, "stash", a->stash, 4);
    guard_pointer(&g, "na_tab", a->na_tab, 4);
    guard_pointer(&g, "hi_tables", a->hi_tables, 8);
    guard_pointer(&g, "engaged_flag", a->engaged_flag, 4);
    guard_dims(&g, a->batch_size, a->num_k_heads, a->num_v_heads, a->k_dim, a->v_dim);
    guard_range(&g, "k_rows", a->k_rows, 1, GDN_VERIFY_ROWS);
    guard_least(&g, "slab_entries", a->slab_entries, "batch_size", a->batch_size);
    guard_product(&g, "hi_tables: k_rows x slab_entries", a->k_rows, a->slab_entries, 1);
    guard_stash(&g, a->batch_size, a->num_k_heads, a->num_v_heads, a->stash_seq_floats);
    if (g.refused)
        return -1;
    per_head(&l, kernel, a->num_v_heads, a->batch_size);
    launch_ptr(&l, a->h_table);
    launch_ptr(&l, a->stash);
    launch_ptr(&l, a->na_tab);
    launch_ptr(&l, a->hi_tables);
    launch_u32(&l, a->slab_entries);
    launch_ptr(&l, a->engaged_flag);
    launch_u32(&l, a->k_rows);
    launch_u32(&l, a->batch_size);
    launch_u32(&l, a->num_k_heads);
    launch_u32(&l, a->num_v_heads);
    launch_u32(&l, a->k_dim);
    launch_u32(&l, a->v_dim);
    launch_u32(&l, a->stash_seq_floats);
    return launch_submit(&l, err);
}

int gdn_flag_clear_launch(const struct kernel *kernel, dev_ptr flag, struct err *err)
{
    struct launch_guard g;
    struct launch l;

    launch_guard_init(&g, "gated_delta_rule_wy4_flag_clear", kernel, err);
    guard_pointer(&g, "flag", flag, 4);
    if (g.refused)
        return -1;
    launch_init(&l, kernel);
    launch_block(&l, 32, 1, 1);
    launch_ptr(&l, flag);
    return launch_submit(&l, err);
}
