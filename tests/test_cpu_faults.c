/* Each thing a kernel can do wrong is a fault with a text that says what and where; the process
   lives, and the next launch works. */
#include "cpu_run.h"

#include "device/cpu/cpu_device.h"
#include "tests/emulated.h"

static struct launch with_buffer(struct cpu_run *r, const char *entry, dev_ptr p)
{
    struct launch l = cpu_launch_of(r, entry, 3, 64);

    launch_ptr(&l, p);
    return l;
}

/* store_at and load_at take a 64-bit index, which the builder passes as a pointer-sized word. */
static struct launch access_at(struct cpu_run *r, const char *entry, dev_ptr p, int64_t element)
{
    struct launch l = cpu_launch_of(r, entry, 1, 1);

    launch_ptr(&l, p);
    launch_ptr(&l, (dev_ptr)element);
    return l;
}

static void setup(struct cpu_run *r, dev_ptr *p)
{
    const int zeros[100] = {0};

    cpu_run_open(r, "cpu_faults");
    *p = cpu_buffer_of(r, "state", zeros, sizeof zeros);
    (void)device_set_schedule(r->device, &(struct schedule){.workers = 2});
}

/* An emulator may not tell reads from writes. */
static const char *invalid(const char *verb)
{
    return emulated() ? "invalid " : verb;
}

static void accesses_outside_name_the_buffer(void **state)
{
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    setup(&r, &p);
    l = access_at(&r, "store_at", p, 100);
    expect_fault(&r, &l,
                 WORDS("kernel store_at", "block (0,0,0)", "thread (0,0,0)",
                       invalid("invalid write"),
                       "0 bytes past the end of buffer state (400 bytes)"));
    l = access_at(&r, "load_at", p, 1123);
    expect_fault(&r, &l, WORDS(invalid("invalid read"), "4092 bytes past the end of buffer state"));
    l = access_at(&r, "load_at", p, -1000000);
    expect_fault(&r, &l,
                 WORDS(invalid("invalid read"), "4000000 bytes before the start of buffer state"));
    l = with_buffer(&r, "null_store", p);
    expect_fault(&r, &l, WORDS(invalid("invalid write"), "null pointer"));
    l = with_buffer(&r, "wild_store", p);
    expect_fault(&r, &l, WORDS("wild address 0x424242424240, in no buffer"));
    l = with_buffer(&r, "beyond_store", p);
    expect_fault(&r, &l, WORDS(emulated() ? "invalid " : "wild address"));
    l = access_at(&r, "store_at", p, 99);
    cpu_submit(&r, &l);
    cpu_run_close(&r);
}

/* A buffer whose size is no multiple of 16 does not reach its guard page: the bytes between are
   checked instead. */
static void a_write_into_the_slack_is_seen(void **state)
{
    struct cpu_run r;
    struct launch l;
    dev_ptr p, odd;

    (void)state;
    setup(&r, &p);
    odd = cpu_buffer_of(&r, "odd", NULL, 20);
    l = access_at(&r, "store_at", odd, 6);
    expect_fault(&r, &l, WORDS("4 bytes past the end of buffer odd (20 bytes)"));
    cpu_run_close(&r);
}

static void shared_memory_ends_where_the_launch_says(void **state)
{
    static const struct {
        int element;
        const char *says;
    } bad[] = {
        {64, "0 bytes past the end of the 256 bytes of dynamic shared memory"},
        {-1, "bytes before the start of dynamic shared memory"},
        {100000, "past the end of the 256 bytes of dynamic shared memory"},
    };
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    setup(&r, &p);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        l = cpu_launch_of(&r, "dynamic_store", 1, 1);
        launch_shared(&l, 256);
        launch_i32(&l, bad[i].element);
        expect_fault(&r, &l, WORDS(bad[i].says));
    }
    l = cpu_launch_of(&r, "dynamic_store", 1, 1);
    launch_shared(&l, 252);
    launch_i32(&l, 63);
    expect_fault(&r, &l, WORDS("0 bytes past the end of the 252 bytes"));
    launch_shared(&l, 256);
    cpu_submit(&r, &l);
    cpu_run_close(&r);
}

static void barriers_and_masks(void **state)
{
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    setup(&r, &p);
    l = with_buffer(&r, "divergent", p);
    expect_fault(&r, &l, WORDS("__syncthreads at", "cpu_faults.cu:", "while other threads"));
    l = with_buffer(&r, "divergent_line", p);
    expect_fault(&r, &l, WORDS("__syncthreads at", "while other threads", "another one, at"));
    l = with_buffer(&r, "stuck", p);
    expect_fault(&r, &l,
                 WORDS("stuck barrier", "threads 0 to 39 wait at",
                       "cpu_faults.cu:", "threads 40 to 63", "warp operation"));
    l = with_buffer(&r, "not_in_mask", p);
    expect_fault(&r, &l, WORDS("lane 0 is not in its own mask 0xfffffffe", "cpu_faults.cu:"));
    cpu_run_close(&r);
}

static void traps_and_arithmetic(void **state)
{
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    setup(&r, &p);
    l = with_buffer(&r, "traps", p);
    expect_fault(&r, &l, WORDS("__trap() at", "cpu_faults.cu:"));
    l = with_buffer(&r, "asserts", p);
    expect_fault(&r, &l, WORDS("assertion failed: p[0] != 0"));
    l = with_buffer(&r, "divides", p);
    expect_fault(&r, &l, WORDS("integer division by zero at", "cpu_faults.cu:"));
    l = with_buffer(&r, "remainder_of", p);
    expect_fault(&r, &l, WORDS("integer division by zero at", "cpu_faults.cu:"));
    l = with_buffer(&r, "compilers_trap", p);
    expect_fault(&r, &l, WORDS("trap (unreachable code or a failed check) at cpu_faults.cu:"));
    l = with_buffer(&r, "overflows", p);
    expect_fault(&r, &l, WORDS("the thread's stack", "overflowed"));
    l = with_buffer(&r, "misaligned", p);
    launch_grid(&l, 1, 1, 1);
    launch_block(&l, 1, 1, 1);
    cpu_submit(&r, &l);
    launch_block(&l, 2, 1, 1);
    expect_fault(&r, &l,
                 WORDS("thread (1,0,0)", "misaligned address", "16-byte", "cpu_faults.cu:"));
    cpu_run_close(&r);
}

static void infinite_loops_end(void **state)
{
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    setup(&r, &p);
    cpu_set_block_limit(r.device, 0.2);
    l = with_buffer(&r, "spins", p);
    expect_fault(&r, &l, WORDS("still running after 0.2 s", "infinite loop"));
    l = with_buffer(&r, "barrier_loop", p);
    expect_fault(&r, &l, WORDS("still running after 0.2 s"));
    l = access_at(&r, "store_at", p, 0);
    cpu_submit(&r, &l);
    cpu_run_close(&r);
}

static void limits_are_gb10s(void **state)
{
    static const struct {
        struct extent grid, block;
        uint64_t shared;
    } refused[] = {
        {{1, 1, 1}, {1025, 1, 1}, 0},   {{1, 1, 1}, {32, 33, 1}, 0},
        {{1, 1, 1}, {1, 1, 65}, 0},     {{1, 65536, 1}, {1, 1, 1}, 0},
        {{1, 1, 65536}, {1, 1, 1}, 0},  {{0, 1, 1}, {1, 1, 1}, 0},
        {{1, 1, 1}, {1, 1, 1}, 101377}, {{1, 1, 1}, {1, 1, 1}, UINT64_C(1) << 32},
    };
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    setup(&r, &p);
    l = access_at(&r, "store_at", p, 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        l.grid = refused[i].grid;
        l.block = refused[i].block;
        l.shared = refused[i].shared;
        assert_int_equal(launch_submit(&l, &r.err), -1);
        assert_int_equal(r.err.kind, ERR_REFUSED);
        assert_non_null(strstr(r.err.text, "CUDA_ERROR_INVALID_VALUE"));
    }
    l.grid = l.block = (struct extent){1, 1, 1};
    l.shared = 101376;
    cpu_submit(&r, &l);
    cpu_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_outside_name_the_buffer),
        cmocka_unit_test(a_write_into_the_slack_is_seen),
        cmocka_unit_test(shared_memory_ends_where_the_launch_says),
        cmocka_unit_test(barriers_and_masks),
        cmocka_unit_test(traps_and_arithmetic),
        cmocka_unit_test(infinite_loops_end),
        cmocka_unit_test(limits_are_gb10s),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
