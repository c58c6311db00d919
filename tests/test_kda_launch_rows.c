/* The launchers of the row-wise, elementwise and recurrent kernels: geometry, arguments,
   refusals by name. */
#include <math.h>

#include "kernels/ops/kda.h"
#include "tests/launch_capture.h"

static void test_l2(void **state)
{
    struct kda_l2_args valid = {
        .data = 0x1000, .heads = 5, .tokens = 7, .head_dim = 128, .eps = 1e-6f, .stride = 650};
    struct kda_l2_args wide = valid;
    struct capture *c = capture_new("pufu"), *w = capture_new("pufu");
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_l2, c, valid, data, 0, "null data");
    REFUSES(kda_launch_l2, c, valid, heads, 0, "heads is 0");
    REFUSES(kda_launch_l2, c, valid, tokens, 65536, "grid axis y");
    REFUSES(kda_launch_l2, c, valid, head_dim, 48, "head_dim = 48 is not a multiple of 32");
    REFUSES(kda_launch_l2, c, valid, stride, 639, "stride = 639 is below heads * head_dim = 640");
    REFUSES(kda_launch_l2, c, valid, heads, 0x40000000, "overflow");
    REFUSES(kda_launch_l2, c, valid, eps, -1e-6f, "eps = -1e-06");
    assert_int_equal(kda_launch_l2(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){5, 7, 1}, 128, 1, 0);
    assert_args(c, 1, (const uint32_t[]){128, bits_of(1e-6f), 650});
    wide.heads = 1;
    wide.head_dim = wide.stride = 2048;
    assert_int_equal(kda_launch_l2(&w->kernel, &wide, &err), 0);
    assert_geometry(w, (struct extent){1, 7, 1}, 1024, 1, 0);
    free(w);
    free(c);
}

static void test_gate(void **state)
{
    struct kda_gate_args valid = {.g_raw = 0x1000,
                                  .dt_bias = 0x2000,
                                  .a_log = 0x3000,
                                  .out = 0x4000,
                                  .tokens = 7,
                                  .heads = 5,
                                  .head_dim = 128,
                                  .lower_bound = -5.0f};
    struct capture *c = capture_new("ppppuuuf");
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_gate, c, valid, g_raw, 0, "null g_raw");
    REFUSES(kda_launch_gate, c, valid, a_log, 0, "null A_log");
    REFUSES(kda_launch_gate, c, valid, dt_bias, 2, "dt_bias is at 0x2");
    REFUSES(kda_launch_gate, c, valid, lower_bound, 0.0f, "lower_bound = 0");
    REFUSES(kda_launch_gate, c, valid, lower_bound, 5.0f, "lower_bound = 5");
    REFUSES(kda_launch_gate, c, valid, tokens, 0, "T is 0");
    REFUSES(kda_launch_gate, c, valid, tokens, 0x80000000, "overflow");
    assert_int_equal(kda_launch_gate(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){35, 1, 1}, 128, 1, 0);
    assert_args(c, 4, (const uint32_t[]){7, 5, 128, bits_of(-5.0f)});
    free(c);
}

static const struct kda_chunk_prepare_args prepare = {.k = 0x1000,
                                                      .v = 0x2000,
                                                      .gate = 0x3000,
                                                      .beta = 0x4000,
                                                      .gc = 0x5000,
                                                      .u = 0x6000,
                                                      .w = 0x7000,
                                                      .heads = 5,
                                                      .head_dim = 128,
                                                      .chunk = 32,
                                                      .tokens = 75};

static void test_chunk_prepare(void **state)
{
    struct capture *c = capture_new("pppppppuuuu");
    struct kda_chunk_prepare_args valid = prepare;
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_chunk_prepare, c, valid, k, 0, "null k");
    REFUSES(kda_launch_chunk_prepare, c, valid, w, 0, "null w");
    REFUSES(kda_launch_chunk_prepare, c, valid, beta, 0x4002, "beta is at");
    REFUSES(kda_launch_chunk_prepare, c, valid, chunk, 0, "chunk C is 0");
    REFUSES(kda_launch_chunk_prepare, c, valid, tokens, 0, "T is 0");
    REFUSES(kda_launch_chunk_prepare, c, valid, chunk, 64, "49408 bytes of shared memory");
    REFUSES(kda_launch_chunk_prepare, c, valid, chunk, UINT32_MAX, "overflow");
    REFUSES(kda_launch_chunk_prepare, c, valid, heads, 65536, "grid axis y");
    assert_int_equal(kda_launch_chunk_prepare(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){3, 5, 1}, 128, 1, 20608);
    assert_args(c, 7, (const uint32_t[]){5, 128, 32, 75});
    free(c);
}

static void test_chunk_scan(void **state)
{
    struct kda_chunk_scan_args valid = {.q = 0x1000,
                                        .k = 0x2000,
                                        .gc = 0x3000,
                                        .u = 0x4000,
                                        .w = 0x5000,
                                        .state = 0x6000,
                                        .out = 0x7000,
                                        .heads = 5,
                                        .head_dim = 128,
                                        .chunk = 32,
                                        .num_chunks = 3,
                                        .tokens = 75,
                                        .scale = 0.125f};
    struct capture *c = capture_new("pppppppuuuuuf");
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_chunk_scan, c, valid, state, 0, "null state");
    REFUSES(kda_launch_chunk_scan, c, valid, chunk, 0, "chunk C is 0");
    REFUSES(kda_launch_chunk_scan, c, valid, num_chunks, 2, "num_chunks = 2");
    REFUSES(kda_launch_chunk_scan, c, valid, num_chunks, 4, "num_chunks = 4");
    REFUSES(kda_launch_chunk_scan, c, valid, scale, -HUGE_VALF, "scale = -inf");
    REFUSES(kda_launch_chunk_scan, c, valid, heads, 0, "H is 0");
    REFUSES(kda_launch_chunk_scan, c, valid, heads, 300000, "overflow");
    assert_int_equal(kda_launch_chunk_scan(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){5, 1, 1}, 128, 1, 36864);
    assert_args(c, 7, (const uint32_t[]){5, 128, 32, 3, 75, bits_of(0.125f)});
    free(c);
}

/* 48 KiB, exactly: the largest chunk at D = 32 that both kernels take, and one more. */
static void test_chunk_shared_memory_ceiling(void **state)
{
    struct capture *c = capture_new("pppppppuuuu");
    struct kda_chunk_prepare_args args = prepare;
    struct err err = ERR_INIT;

    (void)state;
    args.head_dim = 32;
    REFUSES(kda_launch_chunk_prepare, c, args, chunk, 96, "49536 bytes");
    args.chunk = 95;
    assert_int_equal(kda_launch_chunk_prepare(&c->kernel, &args, &err), 0);
    assert_int_equal(c->seen.shared, (95 * 32 + 95 * 95 + 95) * 4);
    assert_int_equal(kda_padded_tokens(75, 32), 96);
    assert_int_equal(kda_padded_tokens(UINT32_MAX, 32), UINT64_C(0x100000000));
    free(c);
}

static const struct kda_recurrent_args token = {.q = 0x1000,
                                                .k = 0x2000,
                                                .v = 0x3000,
                                                .gate = 0x4000,
                                                .beta = 0x5000,
                                                .state = 0x6000,
                                                .out = 0x7000,
                                                .heads = 5,
                                                .head_dim = 128,
                                                .scale = 0.125f};

static void test_recurrent(void **state)
{
    struct capture *c = capture_new("pppppppuuf"), *narrow = capture_new("pppppppuuf");
    struct kda_recurrent_args small = token;
    struct kda_recurrent_args valid = token;
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_recurrent, c, valid, q, 0, "null q");
    REFUSES(kda_launch_recurrent, c, valid, gate, 0, "null gate");
    REFUSES(kda_launch_recurrent, c, valid, heads, 0, "H is 0");
    REFUSES(kda_launch_recurrent, c, valid, head_dim, 0, "D is 0");
    REFUSES(kda_launch_recurrent, c, valid, head_dim, 8480, "101760 bytes of shared memory");
    REFUSES(kda_launch_recurrent, c, valid, heads, 300000, "overflow");
    assert_int_equal(kda_launch_recurrent(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){5, 1, 1}, 128, 1, 1536);
    assert_args(c, 7, (const uint32_t[]){5, 128, bits_of(0.125f)});
    small.head_dim = 64;
    assert_int_equal(kda_launch_recurrent(&narrow->kernel, &small, &err), 0);
    assert_geometry(narrow, (struct extent){5, 1, 1}, 64, 1, 768);
    free(narrow);
    free(c);
}

static int smem_of(const struct capture *c, const struct kda_recurrent_args *args, uint32_t columns,
                   struct err *err)
{
    return kda_launch_recurrent_smem(&c->kernel, args, columns, err);
}

static void test_recurrent_smem(void **state)
{
    static const struct {
        uint32_t columns;
        const char *needle;
    } refused[] = {{0, "VPB = 0"}, {48, "VPB = 48 does not divide D = 128"}, {2048, "VPB = 2048"}};
    struct capture *c = capture_new("pppppppuufu");
    struct kda_recurrent_args wide = token;
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_refused(smem_of(c, &token, refused[i].columns, &err), &err, refused[i].needle, c);
    wide.head_dim = 192;
    assert_refused(smem_of(c, &wide, 192, &err), &err, "150528 bytes of shared memory", c);
    assert_int_equal(smem_of(c, &token, KDA_SMEM_COLUMNS, &err), 0);
    assert_geometry(c, (struct extent){5, 4, 1}, 32, 1, (3 * 128 + 32 * 129) * 4);
    assert_args(c, 7, (const uint32_t[]){5, 128, bits_of(0.125f), 32});
    free(c);
}

static void test_o_norm(void **state)
{
    struct kda_o_norm_args valid = {.x = 0x1000,
                                    .gate = 0x2000,
                                    .weight = 0x3000,
                                    .out = 0x4000,
                                    .rows = 9,
                                    .head_dim = 96,
                                    .eps = 1e-5f};
    struct capture *c = capture_new("ppppuf");
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_o_norm, c, valid, x, 0, "null x");
    REFUSES(kda_launch_o_norm, c, valid, rows, 0, "rows is 0");
    REFUSES(kda_launch_o_norm, c, valid, head_dim, 1056, "head_dim = 1056 is outside 32..1024");
    REFUSES(kda_launch_o_norm, c, valid, head_dim, 100, "head_dim = 100 is not a multiple of 32");
    REFUSES(kda_launch_o_norm, c, valid, rows, 0x40000000, "overflow");
    assert_int_equal(kda_launch_o_norm(&c->kernel, &valid, &err), 0);
    assert_geometry(c, (struct extent){9, 1, 1}, 96, 1, 0);
    assert_args(c, 4, (const uint32_t[]){96, bits_of(1e-5f)});
    free(c);
}

static void test_split_and_pack(void **state)
{
    struct kda_split_widen_args split = {
        .src = 0x1000, .q = 0x2000, .k = 0x3000, .v = 0x4000, .tokens = 7, .qkv = 300};
    struct kda_pack_args pack = {
        .q = 0x1000, .k = 0x2000, .v = 0x3000, .dst = 0x4000, .tokens = 7, .qkv = 300};
    struct capture *s = capture_new("ppppuu"), *p = capture_new("ppppuu");
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_split_widen, s, split, src, 0, "null src");
    REFUSES(kda_launch_split_widen, s, split, v, 0x4002, "v is at 0x4002");
    REFUSES(kda_launch_split_widen, s, split, tokens, 65536, "grid axis y");
    REFUSES(kda_launch_split_widen, s, split, qkv, 0, "qkv is 0");
    REFUSES(kda_launch_split_widen, s, split, qkv, 0x10000000, "overflow");
    REFUSES(kda_launch_pack, p, pack, dst, 0, "null dst");
    REFUSES(kda_launch_pack, p, pack, tokens, 0, "T is 0");
    assert_int_equal(kda_launch_split_widen(&s->kernel, &split, &err), 0);
    assert_int_equal(kda_launch_pack(&p->kernel, &pack, &err), 0);
    assert_geometry(s, (struct extent){2, 7, 1}, 256, 1, 0);
    assert_geometry(p, (struct extent){2, 7, 1}, 256, 1, 0);
    assert_args(s, 4, (const uint32_t[]){7, 300});
    assert_args(p, 4, (const uint32_t[]){7, 300});
    free(p);
    free(s);
}

static void test_sigmoid_and_fill(void **state)
{
    struct kda_sigmoid_args sigmoid = {.src = 0x1000, .dst = 0x2000, .n = 257};
    struct kda_fill_args fill = {.dst = 0x1000, .n = UINT32_MAX, .value = -3.0f};
    struct capture *s = capture_new("ppu"), *f = capture_new("puf");
    struct err err = ERR_INIT;

    (void)state;
    REFUSES(kda_launch_sigmoid, s, sigmoid, src, 0, "null src");
    REFUSES(kda_launch_sigmoid, s, sigmoid, n, 0, "n is 0");
    REFUSES(kda_launch_fill, f, fill, dst, 0, "null dst");
    REFUSES(kda_launch_fill, f, fill, n, 0, "n is 0");
    assert_int_equal(kda_launch_sigmoid(&s->kernel, &sigmoid, &err), 0);
    assert_int_equal(kda_launch_fill(&f->kernel, &fill, &err), 0);
    assert_geometry(s, (struct extent){2, 1, 1}, 256, 1, 0);
    assert_args(s, 2, (const uint32_t[]){257});
    /* ceil(n / 256) must not wrap near the top of the range. */
    assert_geometry(f, (struct extent){16777216, 1, 1}, 256, 1, 0);
    assert_args(f, 1, (const uint32_t[]){UINT32_MAX, bits_of(-3.0f)});
    free(f);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_l2),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_chunk_prepare),
        cmocka_unit_test(test_chunk_scan),
        cmocka_unit_test(test_chunk_shared_memory_ceiling),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_recurrent_smem),
        cmocka_unit_test(test_o_norm),
        cmocka_unit_test(test_split_and_pack),
        cmocka_unit_test(test_sigmoid_and_fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
