/* The table of the block's sixteen kernels: what is required, what is optional, what a failure
   names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/ops/kda.h"

/* After golden.h, whose expect_value() it would turn into its macro. */
#include <cmocka.h>

/* A set that has every entry but one. Kernel i stands for kda_entries[i]. */
struct fake_set {
    struct kernel kernel[KDA_HANDLES];
    int lacks;         /* index, or -1 */
    enum err_kind why; /* how it fails */
};

static int fake_find(void *ctx, const char *module, const char *entry, struct kernel **out,
                     struct err *err)
{
    struct fake_set *set = ctx;

    for (int i = 0; i < KDA_HANDLES; i++) {
        if (strcmp(kda_entries[i].module, module) != 0 || strcmp(kda_entries[i].entry, entry) != 0)
            continue;
        if (i == set->lacks)
            return err_set(err, set->why, "not found");
        *out = &set->kernel[i];
        return 0;
    }
    return err_set(err, ERR_MISSING, "unknown entry %s", entry);
}

static int resolve(struct fake_set *set, int lacks, enum err_kind why, struct kda_kernels *out,
                   struct err *err)
{
    const struct kernel_finder finder = {.find = fake_find, .ctx = set};

    set->lacks = lacks;
    set->why = why;
    return kda_kernels_resolve_with(&finder, out, err);
}

static void test_the_order_is_the_seeds(void **state)
{
    static const char *const entries[KDA_HANDLES] = {
        "dense_gemm_bf16",
        "dense_gemv_bf16",
        "dense_gemv_bf16_batchm",
        "causal_conv1d_update_l2norm",
        "causal_conv1d_update_prefill",
        "l2_norm_bf16",
        "kda_gate_bf16",
        "kda_chunk_prepare",
        "kda_chunk_scan",
        "kda_recurrent_decode_bf16",
        "kda_recurrent_decode_bf16_smem",
        "kda_o_norm_gated_bf16",
        "kda_split_widen",
        "kda_sigmoid_bf16_f32",
        "kda_fill_f32",
        "kda_pack_qkv_bf16",
    };
    unsigned required = 0;

    (void)state;
    for (int i = 0; i < KDA_HANDLES; i++) {
        assert_string_equal(kda_entries[i].entry, entries[i]);
        required += !kda_entries[i].optional;
    }
    assert_int_equal(required, 14);
    assert_null(kda_entries[KDA_HANDLES].module);
}

static void test_a_full_set_fills_every_handle(void **state)
{
    struct fake_set set = {.lacks = -1};
    struct kda_kernels k;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(resolve(&set, -1, ERR_NONE, &k, &err), 0);
    assert_ptr_equal(k.gemm, &set.kernel[0]);
    assert_ptr_equal(k.gemv, &set.kernel[1]);
    assert_ptr_equal(k.gemv_batchm, &set.kernel[2]);
    assert_ptr_equal(k.conv_decode, &set.kernel[3]);
    assert_ptr_equal(k.conv_prefill, &set.kernel[4]);
    assert_ptr_equal(k.l2, &set.kernel[5]);
    assert_ptr_equal(k.gate, &set.kernel[6]);
    assert_ptr_equal(k.chunk_prepare, &set.kernel[7]);
    assert_ptr_equal(k.chunk_scan, &set.kernel[8]);
    assert_ptr_equal(k.recurrent, &set.kernel[9]);
    assert_ptr_equal(k.recurrent_smem, &set.kernel[10]);
    assert_ptr_equal(k.o_norm, &set.kernel[11]);
    assert_ptr_equal(k.split_widen, &set.kernel[12]);
    assert_ptr_equal(k.sigmoid, &set.kernel[13]);
    assert_ptr_equal(k.fill, &set.kernel[14]);
    assert_ptr_equal(k.pack, &set.kernel[15]);
}

static void test_each_entry_missing_in_turn(void **state)
{
    (void)state;
    for (int i = 0; i < KDA_HANDLES; i++) {
        struct fake_set set;
        struct kda_kernels k;
        struct err err = ERR_INIT;
        int rc = resolve(&set, i, ERR_MISSING, &k, &err);

        if (kda_entries[i].optional) {
            assert_int_equal(rc, 0);
            assert_int_equal(err.kind, ERR_NONE);
            assert_string_equal(err.text, "");
            assert_null(i == 2 ? k.gemv_batchm : k.recurrent_smem);
            assert_ptr_equal(k.pack, &set.kernel[15]);
            continue;
        }
        assert_int_equal(rc, -1);
        assert_int_equal(err.kind, ERR_MISSING);
        assert_non_null(strstr(err.text, kda_entries[i].module));
        assert_non_null(strstr(err.text, kda_entries[i].entry));
    }
}

/* Optional means that it may be absent, not that it may be ambiguous or fail to load. */
static void test_a_broken_optional_entry_is_an_error(void **state)
{
    (void)state;
    for (int i = 0; i < KDA_HANDLES; i++) {
        struct fake_set set;
        struct kda_kernels k;
        struct err err = ERR_INIT;

        assert_int_equal(resolve(&set, i, ERR_INPUT, &k, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
        assert_non_null(strstr(err.text, kda_entries[i].entry));
    }
}

/* The project's own kernels, as built for the CPU device. */
static void test_our_own_set_has_all_sixteen(void **state)
{
    struct device *dev = NULL;
    struct kernel_set *set = NULL;
    struct kda_kernels k;
    struct err err = ERR_INIT;

    (void)state;
    if (device_open("cpu", &dev, &err) < 0 ||
        kernel_set_open(dev, "build/kernels/cpu", &set, &err) < 0 ||
        kda_kernels_resolve(set, &k, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(k.gemm->entry, "dense_gemm_bf16");
    assert_string_equal(k.gemv_batchm->entry, "dense_gemv_bf16_batchm");
    assert_string_equal(k.recurrent_smem->entry, "kda_recurrent_decode_bf16_smem");
    assert_string_equal(k.pack->entry, "kda_pack_qkv_bf16");
    kernel_set_close(set);
    device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_order_is_the_seeds),
        cmocka_unit_test(test_a_full_set_fills_every_handle),
        cmocka_unit_test(test_each_entry_missing_in_turn),
        cmocka_unit_test(test_a_broken_optional_entry_is_an_error),
        cmocka_unit_test(test_our_own_set_has_all_sixteen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
