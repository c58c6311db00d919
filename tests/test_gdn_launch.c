/*
 * The launchers of the gated delta rule: arguments in the kernels' order, geometry and shared
 * memory as the ABI states them, and each refusal by name before anything runs.
 */
#include "kernels/ops/gdn.h"
#include "tests/launch_capture.h"

/* 2 key heads, 6 value heads: the least stash is 4 * (6 * 128 + 6 + 2 * 128) = 4120 floats. */
static const struct gdn_wy4_args parent_args = {
    .h_state = 0x1000,
    .query = 0x2000,
    .key = 0x3000,
    .value = 0x4000,
    .gate = 0x5000,
    .beta = 0x6000,
    .output = 0x7000,
    .h_inter = {0x8000, 0x9000, 0xa000},
    .batch_size = 3,
    .num_k_heads = 2,
    .num_v_heads = 6,
    .k_dim = 128,
    .v_dim = 128,
    .qk_stride = 300,
    .v_stride = 800,
    .gb_stride = 7,
    .state_is_table = 1,
};

static const struct gdn_woa_args woa_args = {
    .h_table = 0x1000,
    .query = 0x2000,
    .key = 0x3000,
    .value = 0x4000,
    .gate = 0x5000,
    .beta = 0x6000,
    .output = 0x7000,
    .stash = 0x8000,
    .batch_size = 3,
    .num_k_heads = 2,
    .num_v_heads = 6,
    .k_dim = 128,
    .v_dim = 128,
    .qk_stride = 300,
    .v_stride = 800,
    .gb_stride = 7,
    .stash_seq_floats = 4121,
    .engaged_flag = 0x9000,
};

static const struct gdn_fold_args fold_args = {
    .h_table = 0x1000,
    .stash = 0x2000,
    .na_tab = 0x3000,
    .hi_tables = 0x4000,
    .slab_entries = 5,
    .engaged_flag = 0x6000,
    .k_rows = 4,
    .batch_size = 3,
    .num_k_heads = 2,
    .num_v_heads = 6,
    .k_dim = 128,
    .v_dim = 128,
    .stash_seq_floats = 4121,
};

static void test_parent(void **state)
{
    struct capture *c = capture_new("ppppppppppuuuuuuuuu");
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(gdn_wy4_launch(&c->kernel, &parent_args, &err), 0);
    assert_geometry(c, (struct extent){6, 3, 1}, 128, 1, 0);
    assert_args(c, 10, (const uint32_t[]){3, 2, 6, 128, 128, 300, 800, 7, 1});
    free(c);
}

static void test_parent_refusals(void **state)
{
    struct gdn_wy4_args parent = parent_args;
    struct capture *c = capture_new("ppppppppppuuuuuuuuu");
    struct gdn_wy4_args contiguous = parent_args;

    (void)state;
    contiguous.state_is_table = 0;
    REFUSES(gdn_wy4_launch, c, parent, h_state, 0, "null h_table");
    REFUSES(gdn_wy4_launch, c, contiguous, h_state, 0, "null h_state");
    REFUSES(gdn_wy4_launch, c, contiguous, h_state, 0x1008,
            "h_state is at 0x1008, not aligned to 16");
    REFUSES(gdn_wy4_launch, c, parent, h_inter[1], 0, "null h_inter1");
    REFUSES(gdn_wy4_launch, c, parent, query, 0, "null query");
    REFUSES(gdn_wy4_launch, c, parent, key, 0x3001, "key is at 0x3001");
    REFUSES(gdn_wy4_launch, c, parent, gate, 0x5002, "gate is at 0x5002");
    REFUSES(gdn_wy4_launch, c, parent, output, 0, "null output");
    REFUSES(gdn_wy4_launch, c, parent, state_is_table, 2, "state_is_table = 2");
    REFUSES(gdn_wy4_launch, c, parent, k_dim, 64, "k_dim = 64");
    REFUSES(gdn_wy4_launch, c, parent, v_dim, 256, "v_dim = 256");
    REFUSES(gdn_wy4_launch, c, parent, num_v_heads, 5,
            "num_v_heads = 5 is not a multiple of num_k_heads = 2");
    REFUSES(gdn_wy4_launch, c, parent, num_k_heads, 0, "num_k_heads is 0");
    REFUSES(gdn_wy4_launch, c, parent, num_v_heads, 0, "num_v_heads is 0");
    REFUSES(gdn_wy4_launch, c, parent, batch_size, 0, "batch_size is 0");
    REFUSES(gdn_wy4_launch, c, parent, batch_size, 65536, "grid axis y");
    REFUSES(gdn_wy4_launch, c, parent, qk_stride, 255,
            "qk_stride = 255 is below num_k_heads * k_dim");
    REFUSES(gdn_wy4_launch, c, parent, v_stride, 767, "v_stride = 767");
    REFUSES(gdn_wy4_launch, c, parent, gb_stride, 5, "gb_stride = 5");
    REFUSES(gdn_wy4_launch, c, parent, qk_stride, 0x20000000, "qk_stride: 3 x 4 x 536870912");
    free(c);
}

static void test_woa(void **state)
{
    struct capture *c = capture_new("ppppppppuuuuuuuuup");
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(gdn_woa_launch(&c->kernel, &woa_args, &err), 0);
    assert_geometry(c, (struct extent){6, 3, 1}, 128, 1, 65536);
    c->seen.nargs--;
    assert_args(c, 8, (const uint32_t[]){3, 2, 6, 128, 128, 300, 800, 7, 4121});
    assert_int_equal(c->seen.arg[17].ptr, 0x9000);
    free(c);
}

static void test_woa_refusals(void **state)
{
    struct gdn_woa_args woa = woa_args;
    struct capture *c = capture_new("ppppppppuuuuuuuuup");

    (void)state;
    REFUSES(gdn_woa_launch, c, woa, h_table, 0, "null h_table");
    REFUSES(gdn_woa_launch, c, woa, stash, 0, "null stash");
    REFUSES(gdn_woa_launch, c, woa, engaged_flag, 0, "null engaged_flag");
    REFUSES(gdn_woa_launch, c, woa, h_table, 0x1004, "h_table is at 0x1004, not aligned to 8");
    REFUSES(gdn_woa_launch, c, woa, beta, 0, "null beta");
    REFUSES(gdn_woa_launch, c, woa, k_dim, 127, "k_dim = 127");
    REFUSES(gdn_woa_launch, c, woa, v_dim, 64, "v_dim = 64");
    REFUSES(gdn_woa_launch, c, woa, num_k_heads, 4, "not a multiple of num_k_heads = 4");
    REFUSES(gdn_woa_launch, c, woa, batch_size, 0, "batch_size is 0");
    REFUSES(gdn_woa_launch, c, woa, stash_seq_floats, 4119, "stash_seq_floats = 4119 is below");
    REFUSES(gdn_woa_launch, c, woa, stash_seq_floats, 0x60000000, "overflow");
    REFUSES(gdn_woa_launch, c, woa, gb_stride, 0, "gb_stride = 0");
    assert_int_equal(gdn_stash_floats(2, 6, 128, 128), 4120);
    free(c);
}

static void test_fold(void **state)
{
    struct capture *c = capture_new("ppppupuuuuuuu");
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(gdn_fold_launch(&c->kernel, &fold_args, &err), 0);
    assert_geometry(c, (struct extent){6, 3, 1}, 128, 1, 0);
    assert_int_equal(c->seen.arg[4].u32, 5);
    c->seen.arg[4].ptr = 0x5000; /* the only scalar among the pointers */
    assert_args(c, 6, (const uint32_t[]){4, 3, 2, 6, 128, 128, 4121});
    free(c);
}

static void test_fold_refusals(void **state)
{
    struct gdn_fold_args fold = fold_args;
    struct capture *c = capture_new("ppppupuuuuuuu");

    (void)state;
    REFUSES(gdn_fold_launch, c, fold, h_table, 0, "null h_table");
    REFUSES(gdn_fold_launch, c, fold, stash, 0, "null stash");
    REFUSES(gdn_fold_launch, c, fold, na_tab, 0, "null na_tab");
    REFUSES(gdn_fold_launch, c, fold, hi_tables, 0, "null hi_tables");
    REFUSES(gdn_fold_launch, c, fold, engaged_flag, 0, "null engaged_flag");
    REFUSES(gdn_fold_launch, c, fold, na_tab, 0x3002, "na_tab is at 0x3002");
    REFUSES(gdn_fold_launch, c, fold, k_rows, 0, "k_rows = 0");
    REFUSES(gdn_fold_launch, c, fold, k_rows, 5, "k_rows = 5");
    REFUSES(gdn_fold_launch, c, fold, slab_entries, 2, "slab_entries = 2 is below batch_size = 3");
    REFUSES(gdn_fold_launch, c, fold, slab_entries, 0x50000000, "hi_tables: k_rows x slab_entries");
    REFUSES(gdn_fold_launch, c, fold, batch_size, 0, "batch_size is 0");
    REFUSES(gdn_fold_launch, c, fold, v_dim, 192, "v_dim = 192");
    REFUSES(gdn_fold_launch, c, fold, num_v_heads, 7, "not a multiple");
    REFUSES(gdn_fold_launch, c, fold, stash_seq_floats, 4119, "stash_seq_floats = 4119");
    free(c);
}

static void test_flag_clear(void **state)
{
    struct capture *c = capture_new("p");
    struct err err = ERR_INIT;

    (void)state;
    assert_refused(gdn_flag_clear_launch(&c->kernel, 0, &err), &err, "null flag", c);
    assert_refused(gdn_flag_clear_launch(&c->kernel, 0x1002, &err), &err, "flag is at 0x1002", c);
    assert_refused(gdn_flag_clear_launch(NULL, 0x1000, &err), &err, "flag_clear: null kernel", c);
    assert_int_equal(gdn_flag_clear_launch(&c->kernel, 0x1000, &err), 0);
    assert_geometry(c, (struct extent){1, 1, 1}, 32, 1, 0);
    assert_args(c, 1, NULL);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parent),     cmocka_unit_test(test_parent_refusals),
        cmocka_unit_test(test_woa),        cmocka_unit_test(test_woa_refusals),
        cmocka_unit_test(test_fold),       cmocka_unit_test(test_fold_refusals),
        cmocka_unit_test(test_flag_clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
