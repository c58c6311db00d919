/*
 * The launchers of projections and convolutions: arguments, geometry and shared memory as the
 * kernel ABI states them, and each refusal by name.
 */
#include <math.h>

#include "kernels/ops/kda.h"
#include "tests/launch_capture.h"

static const struct kda_dense_args dense = {
    .a = 0x1000, .b = 0x2000, .c = 0x3000, .m = 17, .n = 33, .k = 24};

static void test_gemm(void **state)
{
    struct capture *c = capture_new("pppuuu");
    struct kda_dense_args valid = dense;
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_gemm, c, valid, a, 0, "null A");
    REFUSES(kda_launch_gemm, c, valid, b, 0, "null B");
    REFUSES(kda_launch_gemm, c, valid, c, 0, "null C");
    REFUSES(kda_launch_gemm, c, valid, a, 0x1008, "A is at 0x1008, not aligned to 16");
    REFUSES(kda_launch_gemm, c, valid, b, 0x2002, "B is at 0x2002, not aligned to 16");
    REFUSES(kda_launch_gemm, c, valid, c, 0x3001, "C is at 0x3001, not aligned to 2");
    REFUSES(kda_launch_gemm, c, valid, k, 20, "K = 20 is not a multiple of 8");
    REFUSES(kda_launch_gemm, c, valid, k, 0, "K is 0");
    REFUSES(kda_launch_gemm, c, valid, m, 0, "M is 0");
    REFUSES(kda_launch_gemm, c, valid, n, 0, "N is 0");
    REFUSES(kda_launch_gemm, c, valid, m, 16 * 65535 + 1, "grid axis y");
    REFUSES(kda_launch_gemm, c, valid, n, 200000000, "overflow");
    REFUSES(kda_launch_gemm, c, valid, out_stride, 40, "out_stride = 40");
    assert_int_equal(kda_launch_gemm(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){3, 2, 1}, 16, 16, 0);
    assert_args(c, 3, (const uint32_t[]){17, 33, 24});
    free(c);
}

static void test_gemv(void **state)
{
    struct capture *c = capture_new("pppuu");
    struct kda_dense_args one = dense;
    struct err err = ERR_INIT;

    (void)state;
    one.m = 1;
    REFUSES(kda_launch_gemv, c, one, m, 2, "M = 2 is outside 1..1");
    REFUSES(kda_launch_gemv, c, one, k, 4, "K = 4 is not a multiple of 8");
    REFUSES(kda_launch_gemv, c, one, a, 0x1004, "A is at");
    REFUSES(kda_launch_gemv, c, one, c, 0, "null C");
    assert_int_equal(kda_launch_gemv(&c->kernel, &one, &err), 0);
    assert_geometry(c, (struct extent){9, 1, 1}, 256, 1, 0);
    assert_args(c, 3, (const uint32_t[]){33, 24});
    free(c);
}

static void test_gemv_batchm(void **state)
{
    struct capture *c = capture_new("pppuuuu");
    struct kda_dense_args rows = dense;
    struct err err = ERR_INIT;

    (void)state;
    rows.m = 16;
    rows.out_stride = 40;
    REFUSES(kda_launch_gemv_batchm, c, rows, m, 1, "M = 1 is outside 2..16");
    REFUSES(kda_launch_gemv_batchm, c, rows, m, 17, "M = 17 is outside 2..16");
    REFUSES(kda_launch_gemv_batchm, c, rows, out_stride, 32, "out_stride = 32 is below N = 33");
    REFUSES(kda_launch_gemv_batchm, c, rows, out_stride, 0x10000001, "overflow");
    REFUSES(kda_launch_gemv_batchm, c, rows, k, 12, "K = 12");
    assert_int_equal(kda_launch_gemv_batchm(&c->kernel, &rows, &err), 0);
    assert_geometry(c, (struct extent){9, 1, 1}, 256, 1, 0);
    assert_args(c, 3, (const uint32_t[]){16, 33, 24, 40});
    free(c);
}

/* Which of the three kernels a projection of `m` rows reaches: 'g'emm, gem'v', 'b'atchm. */
static char dispatched(uint32_t m, bool has_batchm)
{
    struct capture *gemm = capture_new("pppuuu"), *gemv = capture_new("pppuu");
    struct capture *batchm = capture_new("pppuuuu");
    const struct kda_kernels kernels = {
        .gemm = &gemm->kernel,
        .gemv = &gemv->kernel,
        .gemv_batchm = has_batchm ? &batchm->kernel : NULL,
    };
    struct kda_dense_args args = dense;
    struct err err = ERR_INIT;
    char which;

    args.m = m;
    assert_int_equal(kda_dense_mm(&kernels, &args, &err), 0);
    assert_int_equal(gemm->launches + gemv->launches + batchm->launches, 1);
    which = gemm->launches ? 'g' : gemv->launches ? 'v' : 'b';
    if (which == 'b')
        assert_int_equal(batchm->seen.arg[6].u32, args.n); /* out_stride = N in the block */
    free(batchm);
    free(gemv);
    free(gemm);
    return which;
}

static void test_dense_mm_dispatches_on_rows(void **state)
{
    (void)state;
    for (uint32_t m = 1; m <= 20; m++) {
        assert_int_equal(dispatched(m, true), m == 1 ? 'v' : m <= 16 ? 'b' : 'g');
        assert_int_equal(dispatched(m, false), m == 1 ? 'v' : 'g');
    }
}

static void test_a_missing_kernel_is_refused(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(kda_launch_gemm(NULL, &dense, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    assert_non_null(strstr(err.text, "dense_gemm_bf16: null kernel handle"));
}

static void test_conv_decode(void **state)
{
    struct kda_conv_decode_args valid = {.conv_state = 0x1000,
                                         .x = 0x2000,
                                         .weight = 0x3000,
                                         .bias = 0x4000,
                                         .y = 0x5000,
                                         .batch = 3,
                                         .dim = 808,
                                         .d_conv = 4,
                                         .qk_channels = 512,
                                         .head_dim = 128,
                                         .l2_eps = 1e-6f};
    struct capture *c = capture_new("pppppuuuuuf");
    struct kda_conv_decode_args no_bias = valid;
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_conv_decode, c, valid, conv_state, 0, "null conv_state");
    REFUSES(kda_launch_conv_decode, c, valid, conv_state, 0x1002, "conv_state is at");
    REFUSES(kda_launch_conv_decode, c, valid, x, 0, "null x");
    REFUSES(kda_launch_conv_decode, c, valid, weight, 0, "null weight");
    REFUSES(kda_launch_conv_decode, c, valid, bias, 0x4001, "bias is at");
    REFUSES(kda_launch_conv_decode, c, valid, y, 0, "null y");
    REFUSES(kda_launch_conv_decode, c, valid, batch, 0, "batch is 0");
    REFUSES(kda_launch_conv_decode, c, valid, batch, 65536, "grid axis y");
    REFUSES(kda_launch_conv_decode, c, valid, dim, 0, "dim is 0");
    REFUSES(kda_launch_conv_decode, c, valid, dim, 511, "dim = 511 is below qk_channels = 512");
    REFUSES(kda_launch_conv_decode, c, valid, d_conv, 0, "d_conv = 0 is outside 1..4");
    REFUSES(kda_launch_conv_decode, c, valid, d_conv, 5, "d_conv = 5 is outside 1..4");
    REFUSES(kda_launch_conv_decode, c, valid, qk_channels, 384, "qk_channels = 384");
    REFUSES(kda_launch_conv_decode, c, valid, head_dim, 64, "head_dim = 64");
    REFUSES(kda_launch_conv_decode, c, valid, l2_eps, -1.0f, "l2_eps = -1");
    REFUSES(kda_launch_conv_decode, c, valid, dim, 0x40000000, "overflow");
    assert_int_equal(kda_launch_conv_decode(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){4, 3, 1}, 256, 1, 0);
    assert_args(c, 5, (const uint32_t[]){3, 808, 4, 512, 128, bits_of(1e-6f)});
    no_bias.bias = 0;
    assert_int_equal(kda_launch_conv_decode(&c->kernel, &no_bias, &err), 0);
    assert_int_equal(c->seen.arg[3].ptr, 0);
    free(c);
}

static void test_conv_prefill(void **state)
{
    struct kda_conv_prefill_args valid = {.conv_state = 0x1000,
                                          .x = 0x2000,
                                          .weight = 0x3000,
                                          .bias = 0x4000,
                                          .y = 0x5000,
                                          .dim = 257,
                                          .d_conv = 3,
                                          .seq_len = 9,
                                          .in_stride = 300,
                                          .out_stride = 260};
    struct capture *c = capture_new("pppppuuuuu");
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_conv_prefill, c, valid, seq_len, 0, "seq_len is 0");
    REFUSES(kda_launch_conv_prefill, c, valid, in_stride, 256, "in_stride = 256 is below dim");
    REFUSES(kda_launch_conv_prefill, c, valid, out_stride, 1, "out_stride = 1 is below dim");
    REFUSES(kda_launch_conv_prefill, c, valid, d_conv, 5, "d_conv = 5");
    REFUSES(kda_launch_conv_prefill, c, valid, seq_len, 20000000, "overflow");
    REFUSES(kda_launch_conv_prefill, c, valid, y, 0, "null y");
    assert_int_equal(kda_launch_conv_prefill(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){2, 1, 1}, 256, 1, 0);
    assert_args(c, 5, (const uint32_t[]){257, 3, 9, 300, 260});
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemv),
        cmocka_unit_test(test_gemv_batchm),
        cmocka_unit_test(test_dense_mm_dispatches_on_rows),
        cmocka_unit_test(test_a_missing_kernel_is_refused),
        cmocka_unit_test(test_conv_decode),
        cmocka_unit_test(test_conv_prefill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
