/* Static resources: the assembler's log, occupancy against hand calculation, and launches that
   nobody makes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "measure/dry_run.h"
#include "measure/occupancy.h"
#include "measure/static_resources.h"
#include "problem/operator.h"

/* After the headers: it has a macro of the name of a function of problem/golden.h. */
#include <cmocka.h>

/* --- the log ---------------------------------------------------------------------------------- */

static const char log_text[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'scan' for 'sm_121'\n"
    "ptxas info    : Function properties for scan\n"
    "    48 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
    "ptxas info    : Used 79 registers, used 1 barriers, 48 bytes cumulative stack size, 4096 "
    "bytes "
    "smem, 400 bytes cmem[0]\n"
    "ptxas info    : Compile time = 3.1 ms\n"
    "ptxas info    : Compiling entry function 'fill' for 'sm_90'\n"
    "ptxas info    : Function properties for helper\n"
    "    80 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
    "ptxas info    : Function properties for fill\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 10 registers, used 0 barriers\n";

static void test_log(void **data)
{
    const struct resources_record *r;
    struct resources list;
    struct err err = ERR_INIT;

    (void)data;
    resources_init(&list);
    if (resources_parse(&list, log_text, "kda_chunk", "abc", &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(list.count, 2);
    r = resources_find(&list, "scan", "sm_121");
    assert_non_null(r);
    assert_string_equal(r->module, "kda_chunk");
    assert_string_equal(r->content, "abc");
    assert_string_equal(r->case_text, "");
    assert_int_equal(r->registers, 79);
    assert_int_equal(r->static_shared, 4096);
    assert_int_equal(r->stack_bytes, 48);
    assert_int_equal(r->spill_store_bytes, 12);
    assert_int_equal(r->spill_load_bytes, 16);
    r = resources_find(&list, "fill", "sm_90");
    assert_int_equal(r->registers, 10);
    assert_int_equal(r->stack_bytes, 0); /* not its helper's */
    assert_int_equal(r->static_shared, 0);
    assert_null(resources_find(&list, "scan", "sm_90"));
    resources_release(&list);
}

static void assert_log_refused(const char *text, const char *why)
{
    struct resources list;
    struct err err = ERR_INIT;

    resources_init(&list);
    assert_int_equal(resources_parse(&list, text, "m", "", &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    if (!strstr(err.text, why))
        fail_msg("got \"%s\", expected \"...%s...\"", err.text, why);
    resources_release(&list);
}

static void test_bad_logs(void **data)
{
    (void)data;
    assert_log_refused("ptxas info : Compiling entry function 'a' for 'sm_90'\n",
                       "says nothing of the registers of a");
    assert_log_refused("x : Compiling entry function 'a' for 'sm_90'\n"
                       "x : Compiling entry function 'b' for 'sm_90'\n",
                       "says nothing of the registers of a");
    assert_log_refused("x : Compiling entry function a\n", "cannot read");
    assert_log_refused("x : Compiling entry function 'a' for 'sm_90'\n"
                       "x : Used many registers\n",
                       "cannot read");
}

static void test_an_empty_log_has_no_kernels(void **data)
{
    struct resources list;
    struct err err = ERR_INIT;

    (void)data;
    resources_init(&list);
    assert_int_equal(resources_parse(&list, "", "m", "", &err), 0);
    assert_int_equal(list.count, 0);
    resources_release(&list);
}

/* --- occupancy -------------------------------------------------------------------------------- */

static void read_gb10(struct device_sheet *gb10)
{
    struct err err = ERR_INIT;

    if (device_sheet_read("cases/devices/gb10.ini", gb10, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_occupancy(uint32_t registers, uint32_t threads, uint64_t shared, uint32_t blocks,
                             const char *limiter)
{
    struct device_sheet gb10;
    struct resources_record r = {
        .registers = registers, .block = {threads, 1, 1}, .grid = {960, 1, 1}};

    read_gb10(&gb10);
    r.dynamic_shared = shared;
    occupancy_fill(&r, &gb10);
    if (r.blocks_per_sm != blocks || strcmp(r.limiter, limiter))
        fail_msg("%u registers, %u threads, %u bytes: %u blocks by %s, expected %u by %s",
                 registers, threads, (unsigned)shared, r.blocks_per_sm, r.limiter, blocks, limiter);
    if (!blocks)
        return;
    assert_true(fabs(r.occupancy - blocks * ((threads + 31) / 32) / 48.0) < 1e-12);
    assert_true(fabs(r.waves - 960.0 / (blocks * 48)) < 1e-12);
}

static void test_occupancy(void **data)
{
    (void)data;
    assert_occupancy(32, 256, 0, 6, "threads");     /* 1536 / 256 */
    assert_occupancy(16, 32, 0, 24, "blocks");      /* 48 warps would fit */
    assert_occupancy(64, 256, 0, 4, "registers");   /* 2048 a warp: 8 a partition, 32 warps */
    assert_occupancy(96, 128, 0, 5, "registers");   /* 3072: 5 a partition, 20 warps */
    assert_occupancy(97, 128, 0, 4, "registers");   /* rounded up to 3328: 4 a partition */
    assert_occupancy(32, 128, 65536, 1, "shared");  /* 66560 of 102400 */
    assert_occupancy(32, 128, 50176, 2, "shared");  /* 51200 each, exactly two */
    assert_occupancy(32, 128, 50177, 1, "shared");  /* rounded up to 51328 */
    assert_occupancy(32, 128, 101376, 1, "shared"); /* the most a block may have */
    assert_occupancy(32, 128, 101377, 0, "");       /* one byte more: none fits */
    assert_occupancy(0, 1024, 0, 1, "threads");     /* registers not known */
    assert_occupancy(32, 33, 0, 24, "blocks");      /* a warp and a bit takes two: 48 warps */
}

static void test_max_threads(void **data)
{
    struct device_sheet gb10;

    (void)data;
    read_gb10(&gb10);
    assert_int_equal(occupancy_max_threads(64, &gb10.sm), 1024);
    assert_int_equal(occupancy_max_threads(65, &gb10.sm), 896); /* 2304 a warp: 7 a partition */
    assert_int_equal(occupancy_max_threads(255, &gb10.sm), 256);
    assert_int_equal(occupancy_max_threads(0, &gb10.sm), 1024);
}

/* --- dry runs --------------------------------------------------------------------------------- */

struct tally {
    unsigned launches;
    struct resources_record last;
};

static int count(void *ctx, const struct resources_record *r, struct err *err)
{
    struct tally *t = ctx;

    (void)err;
    t->launches++;
    t->last = *r;
    return 0;
}

static void run_dry(const char *text, const struct resources *res, struct tally *t)
{
    struct device_sheet gb10;
    struct dry_run d = {.resources = res, .sheet = &gb10};
    struct test_case tc;
    struct device *cpu = NULL;
    struct err err = ERR_INIT;

    memset(t, 0, sizeof *t);
    read_gb10(&gb10);
    if (case_parse(text, &tc, &err) < 0 || device_open("cpu", &cpu, &err) < 0 ||
        kernel_set_open(cpu, NULL, &d.set, &err) < 0 || dry_run_case(&d, &tc, count, t, &err) < 0)
        fail_msg("%s", err.text);
    kernel_set_close(d.set);
    device_close(cpu);
}

static void test_a_launch_is_seen_with_its_geometry(void **data)
{
    struct resources none = {0};
    struct tally t;

    (void)data;
    run_dry("kda_split_widen T=5 qkv=512 pad=3 seed=1", &none, &t);
    assert_int_equal(t.launches, 1);
    assert_string_equal(t.last.entry, "kda_split_widen");
    assert_string_equal(t.last.case_text, "kda_split_widen T=5 qkv=512 pad=3 seed=1");
    assert_int_equal(t.last.grid[0], 2);
    assert_int_equal(t.last.grid[1], 5);
    assert_int_equal(t.last.block[0], 256);
    assert_int_equal(t.last.blocks_per_sm, 6);
    assert_string_equal(t.last.refused, "");
}

/* What the machine code takes on GB10 counts, not what this machine's module says. */
static void test_a_launch_that_gb10_would_refuse(void **data)
{
    struct resources_record built = {.entry = "kda_split_widen", .arch = DRY_RUN_ARCH};
    struct resources res = {.items = &built, .count = 1};
    struct tally t;

    (void)data;
    built.registers = 255; /* 256 threads are the most that fit */
    run_dry("kda_split_widen T=5 qkv=512 pad=3 seed=1", &res, &t);
    assert_string_equal(t.last.refused, "");
    assert_int_equal(t.last.registers, 255);
    assert_int_equal(t.last.blocks_per_sm, 1);
    assert_string_equal(t.last.limiter, "registers");
    built.registers = 40;
    built.static_shared = 101377;
    run_dry("kda_split_widen T=5 qkv=512 pad=3 seed=1", &res, &t);
    assert_int_equal(t.launches, 1);
    assert_string_equal(t.last.entry, "kda_split_widen");
    assert_non_null(strstr(t.last.refused, "101377 of static shared memory, GB10 allows 101376"));
}

static void assert_hollow(const struct buffer *b, const struct buffer *filled)
{
    bool number = b->dtype == DTYPE_BF16 || b->dtype == DTYPE_F32;

    assert_string_equal(b->name, filled->name);
    assert_int_equal(b->bytes, filled->bytes);
    assert_memory_equal(b->dim, filled->dim, sizeof b->dim);
    assert_int_equal(b->hollow, number);
    if (b->dtype == DTYPE_PTR)
        assert_memory_equal(b->refs, filled->refs, b->count * sizeof *b->refs);
    else if (!number && b->bytes)
        assert_memory_equal(b->init, filled->init, b->bytes);
}

/* Nothing that a launcher reads may be missing from the buffers of a dry run. */
static void test_a_hollow_problem_lacks_only_numbers(void **data)
{
    unsigned seen = 0;

    (void)data;
    for (size_t i = 0; i < operator_count; i++) {
        struct problem hollow, filled;
        struct err err = ERR_INIT;
        struct case_list list;
        char path[128];

        case_list_init(&list);
        snprintf(path, sizeof path, "cases/%s.case", operator_table[i]->name);
        if (case_file_read(path, &list, &err) < 0)
            fail_msg("%s", err.text);
        for (size_t k = 0; k < list.count; k++) {
            if (list.items[k].tier != TIER_SMOKE)
                continue;
            problem_init_hollow(&hollow, &list.items[k]);
            problem_init(&filled, &list.items[k]);
            if (operator_table[i]->shape(&hollow, &err) < 0 ||
                operator_table[i]->shape(&filled, &err) < 0)
                fail_msg("%s: %s", list.items[k].text, err.text);
            assert_int_equal(hollow.count, filled.count);
            for (unsigned b = 0; b < hollow.count; b++)
                assert_hollow(&hollow.buffer[b], &filled.buffer[b]);
            problem_release(&hollow);
            problem_release(&filled);
            seen++;
        }
        case_list_release(&list);
    }
    assert_true(seen >= operator_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_bad_logs),
        cmocka_unit_test(test_an_empty_log_has_no_kernels),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_max_threads),
        cmocka_unit_test(test_a_launch_is_seen_with_its_geometry),
        cmocka_unit_test(test_a_launch_that_gb10_would_refuse),
        cmocka_unit_test(test_a_hollow_problem_lacks_only_numbers),
    };

    return cmocka_run_group_tests_name("resources", tests, NULL, NULL);
}
