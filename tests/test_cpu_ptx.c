/* Inline PTX against plain sums, and cp.async that lands as late as its waits allow. */
#include "cpu_run.h"

static uint16_t bf16_bits(float exact)
{
    uint32_t u;

    memcpy(&u, &exact, sizeof u);
    return (uint16_t)(u >> 16);
}

/* Small integers: every product and sum is exact, so the layout alone decides. */
static float entry(unsigned i, unsigned j, unsigned seed)
{
    return (float)((int)((i * 31 + j * 17 + seed) % 13) - 6);
}

static void mma_m16n8k16_bf16(void **state)
{
    uint16_t a[16][16], b[8][16];
    float d[16][8];
    struct cpu_run r;
    struct launch l;
    dev_ptr out;

    (void)state;
    for (unsigned k = 0; k < 16; k++) {
        for (unsigned i = 0; i < 16; i++)
            a[i][k] = bf16_bits(entry(i, k, 1));
        for (unsigned n = 0; n < 8; n++)
            b[n][k] = bf16_bits(entry(n, k, 5));
    }
    cpu_run_open(&r, "cpu_ptx");
    l = cpu_launch_of(&r, "mma16816", 1, 32);
    launch_ptr(&l, cpu_buffer_of(&r, "a", a, sizeof a));
    launch_ptr(&l, cpu_buffer_of(&r, "b", b, sizeof b));
    launch_ptr(&l, out = cpu_buffer_of(&r, "d", NULL, sizeof d));
    cpu_submit(&r, &l);
    cpu_read(&r, d, out, sizeof d);
    for (unsigned i = 0; i < 16; i++)
        for (unsigned n = 0; n < 8; n++) {
            float want = 1.0f;

            for (unsigned k = 0; k < 16; k++)
                want += entry(i, k, 1) * entry(n, k, 5);
            assert_true(d[i][n] == want);
        }
    launch_block(&l, 16, 1, 1);
    expect_fault(&r, &l, WORDS("mma.sync by an incomplete warp"));
    cpu_run_close(&r);
}

static void mma_m16n8k8_tf32(void **state)
{
    float a[16][8], b[8][8], d[16][8];
    struct cpu_run r;
    struct launch l;
    dev_ptr out;

    (void)state;
    for (unsigned k = 0; k < 8; k++) {
        for (unsigned i = 0; i < 16; i++)
            a[i][k] = entry(i, k, 2) + 0x1p-13f; /* below tf32's last bit: the hardware drops it */
        for (unsigned n = 0; n < 8; n++)
            b[k][n] = entry(k, n, 3);
    }
    cpu_run_open(&r, "cpu_ptx");
    l = cpu_launch_of(&r, "mma1688", 1, 32);
    launch_ptr(&l, cpu_buffer_of(&r, "a", a, sizeof a));
    launch_ptr(&l, cpu_buffer_of(&r, "b", b, sizeof b));
    launch_ptr(&l, out = cpu_buffer_of(&r, "d", NULL, sizeof d));
    cpu_submit(&r, &l);
    cpu_read(&r, d, out, sizeof d);
    for (unsigned i = 0; i < 16; i++)
        for (unsigned n = 0; n < 8; n++) {

            float want = 0;

            for (unsigned k = 0; k < 8; k++) {
                uint32_t u;
                float t;

                memcpy(&u, &a[i][k], sizeof u);
                u &= 0xffffe000u;
                memcpy(&t, &u, sizeof t);
                want += t * b[k][n];
            }
            assert_true(d[i][n] == want);
        }
    cpu_run_close(&r);
}

static void ldmatrix_plain_and_transposed(void **state)
{
    uint16_t in[2][8][8];
    uint32_t out[32][4];
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    for (unsigned i = 0; i < 128; i++)
        (&in[0][0][0])[i] = (uint16_t)(1000 + i);
    cpu_run_open(&r, "cpu_ptx");
    l = cpu_launch_of(&r, "matrices", 1, 32);
    launch_ptr(&l, cpu_buffer_of(&r, "in", in, sizeof in));
    launch_ptr(&l, p = cpu_buffer_of(&r, "out", NULL, sizeof out));
    cpu_submit(&r, &l);
    cpu_read(&r, out, p, sizeof out);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned m = 0; m < 2; m++) {
            unsigned i = lane / 4, j = lane % 4 * 2;
            uint32_t plain = in[m][i][j] | (uint32_t)in[m][i][j + 1] << 16;
            uint32_t turned = in[m][j][i] | (uint32_t)in[m][j + 1][i] << 16;

            assert_int_equal(out[lane][m], plain);
            assert_int_equal(out[lane][2 + m], turned);
        }
    cpu_run_close(&r);
}

/* Does the copy arrive, with copies landing at once or late? */
static bool stages_arrive(struct cpu_run *r, const char *entry, bool late)
{
    enum { THREADS = 64 };
    static float in[THREADS][4], out[THREADS][4];
    struct launch l = cpu_launch_of(r, entry, 1, THREADS);
    dev_ptr from, to;
    bool same = true;

    for (unsigned i = 0; i < THREADS * 4; i++)
        (&in[0][0])[i] = (float)i + 1;
    from = cpu_buffer_of(r, "in", in, sizeof in);
    to = cpu_buffer_of(r, "out", NULL, sizeof out);
    launch_shared(&l, sizeof in);
    launch_ptr(&l, from);
    launch_ptr(&l, to);
    (void)device_set_schedule(r->device, &(struct schedule){.late_async_copies = late});
    cpu_submit(r, &l);
    cpu_read(r, out, to, sizeof out);
    for (unsigned t = 0; t < THREADS; t++)
        same = same && memcmp(out[t], in[THREADS - 1 - t], sizeof in[0]) == 0;
    device_free(r->device, from);
    device_free(r->device, to);
    return same;
}

static void late_copies_catch_a_wait_off_by_one(void **state)
{
    struct cpu_run r;

    (void)state;
    cpu_run_open(&r, "cpu_ptx");
    assert_true(stages_arrive(&r, "stages_right", false));
    assert_true(stages_arrive(&r, "stages_right", true));
    assert_true(stages_arrive(&r, "stages_late", false));
    assert_false(stages_arrive(&r, "stages_late", true));
    cpu_run_close(&r);
}

static void pipeline_fills_with_zeros(void **state)
{
    float in[32][4], out[32][4];
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    for (unsigned i = 0; i < 128; i++)
        (&in[0][0])[i] = (float)i + 1;
    cpu_run_open(&r, "cpu_ptx");
    for (int late = 0; late < 2; late++) {
        (void)device_set_schedule(r.device, &(struct schedule){.late_async_copies = late != 0});
        l = cpu_launch_of(&r, "pipeline", 1, 32);
        launch_ptr(&l, cpu_buffer_of(&r, "in", in, sizeof in));
        launch_ptr(&l, p = cpu_buffer_of(&r, "out", NULL, sizeof out));
        cpu_submit(&r, &l);
        cpu_read(&r, out, p, sizeof out);
        for (unsigned t = 0; t < 32; t++)
            assert_true(out[t][0] == in[t][0] && out[t][2] == in[t][2] && out[t][3] == 0);
    }
    cpu_run_close(&r);
}

static void registers_predicates_and_special_registers(void **state)
{
    uint32_t in[32], out[32];
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    for (uint32_t i = 0; i < 32; i++)
        in[i] = i * i;
    cpu_run_open(&r, "cpu_ptx");
    l = cpu_launch_of(&r, "scalars", 1, 32);
    launch_ptr(&l, cpu_buffer_of(&r, "in", in, sizeof in));
    launch_ptr(&l, p = cpu_buffer_of(&r, "out", NULL, sizeof out));
    cpu_submit(&r, &l);
    cpu_read(&r, out, p, sizeof out);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 2 * in[i] * 16 + (i % 2 ? 7 : 9));
    cpu_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mma_m16n8k16_bf16),
        cmocka_unit_test(mma_m16n8k8_tf32),
        cmocka_unit_test(ldmatrix_plain_and_transposed),
        cmocka_unit_test(late_copies_catch_a_wait_off_by_one),
        cmocka_unit_test(pipeline_fills_with_zeros),
        cmocka_unit_test(registers_predicates_and_special_registers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
