/* Barriers, warp operations with masks, schedules that catch a race, fills, workers. */
#include <math.h>

#include "cpu_run.h"

static void set_schedule(struct cpu_run *r, enum thread_order order, uint64_t seed,
                         enum shared_fill fill, unsigned workers)
{
    assert_true(device_set_schedule(
        r->device,
        &(struct schedule){.order = order, .seed = seed, .fill = fill, .workers = workers}));
}

/* Does some schedule give other bits than the forward one? */
static bool schedules_disagree(struct cpu_run *r, const char *entry)
{
    enum { BLOCKS = 3, THREADS = 256 };
    static int first[BLOCKS * THREADS], now[BLOCKS * THREADS];
    dev_ptr out = cpu_buffer_of(r, "out", NULL, sizeof now);
    struct launch l = cpu_launch_of(r, entry, BLOCKS, THREADS);
    bool differ = false;

    launch_ptr(&l, out);
    for (unsigned i = 0; i < 5; i++) {
        enum thread_order order = i == 0 ? ORDER_FORWARD : i == 1 ? ORDER_REVERSE : ORDER_RANDOM;

        set_schedule(r, order, i, SHARED_FILL_NAN, 1 + i % 2);
        cpu_submit(r, &l);
        cpu_read(r, i ? now : first, out, sizeof now);
        differ |= i && memcmp(now, first, sizeof now) != 0;
    }
    device_free(r->device, out);
    return differ;
}

static void a_missing_barrier_shows_in_the_schedules(void **state)
{
    struct cpu_run r;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    assert_true(schedules_disagree(&r, "mirror_racy"));
    assert_false(schedules_disagree(&r, "mirror_right"));
    cpu_run_close(&r);
}

static void a_schedule_repeats_itself(void **state)
{
    enum { THREADS = 256 };
    int a[THREADS], b[THREADS];
    struct cpu_run r;
    struct launch l;
    dev_ptr out;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    l = cpu_launch_of(&r, "mirror_racy", 1, THREADS);
    launch_ptr(&l, out = cpu_buffer_of(&r, "out", NULL, sizeof a));
    set_schedule(&r, ORDER_RANDOM, 11, SHARED_FILL_ZERO, 1);
    cpu_submit(&r, &l);
    cpu_read(&r, a, out, sizeof a);
    cpu_submit(&r, &l);
    cpu_read(&r, b, out, sizeof b);
    assert_memory_equal(a, b, sizeof a);
    set_schedule(&r, ORDER_RANDOM, 12, SHARED_FILL_ZERO, 1);
    cpu_submit(&r, &l);
    cpu_read(&r, b, out, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    cpu_run_close(&r);
}

static void threads_may_leave_before_a_barrier(void **state)
{
    static const unsigned stay[] = {1, 31, 32, 33, 100, 128};
    struct cpu_run r;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
        for (int order = ORDER_FORWARD; order <= ORDER_RANDOM; order++) {
            int out[128];
            struct launch l = cpu_launch_of(&r, "early_return", 1, 128);
            dev_ptr p = cpu_buffer_of(&r, "out", NULL, sizeof out);

            launch_ptr(&l, p);
            launch_u32(&l, stay[i]);
            set_schedule(&r, (enum thread_order)order, i, SHARED_FILL_NAN, 1);
            cpu_submit(&r, &l);
            cpu_read(&r, out, p, sizeof out);
            for (unsigned t = 0; t < stay[i]; t++)
                assert_int_equal(out[t], stay[i]);
        }
    cpu_run_close(&r);
}

static void barrier_votes(void **state)
{
    int out[5];
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    l = cpu_launch_of(&r, "votes", 1, 75);
    launch_ptr(&l, p = cpu_buffer_of(&r, "out", NULL, sizeof out));
    cpu_submit(&r, &l);
    cpu_read(&r, out, p, sizeof out);
    assert_true(out[0] == 37 && out[1] == 0 && out[2] == 1 && out[3] == 1 && out[4] == 0);
    cpu_run_close(&r);
}

static void check_warp(const uint32_t *out)
{
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t down = lane % 8 + 3 < 8 ? lane + 3 : lane;

        assert_int_equal(out[lane], 50);
        assert_int_equal(out[32 + lane], lane < 3 ? lane : lane - 3);
        assert_int_equal(out[64 + lane], down);
        assert_int_equal(out[96 + lane], lane ^ 9u);
        assert_int_equal(out[128 + lane], 0x49249249u);
        assert_int_equal(out[160 + lane], 31 * 32 / 2);
        assert_int_equal((int32_t)out[192 + lane], -7);
        assert_int_equal(out[224 + lane], 0xffu << lane / 8 * 8);
        assert_int_equal(out[256 + lane], UINT32_MAX);
        assert_int_equal(out[288 + lane], 1);
        assert_int_equal(out[320 + lane], lane < 20 ? 119u : 0xfff00000u);
    }
}

static void warp_operations_in_every_order(void **state)
{
    uint32_t out[352];
    struct cpu_run r;
    dev_ptr p;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    p = cpu_buffer_of(&r, "out", NULL, sizeof out);
    for (unsigned i = 0; i < 6; i++) {
        struct launch l = cpu_launch_of(&r, "warp_ops", 1, 32);

        launch_ptr(&l, p);
        set_schedule(&r, i < 3 ? (enum thread_order)i : ORDER_RANDOM, i, SHARED_FILL_NAN, 1);
        cpu_submit(&r, &l);
        cpu_read(&r, out, p, sizeof out);
        check_warp(out);
    }
    cpu_run_close(&r);
}

static void lanes_outside_and_lanes_gone(void **state)
{
    float f[8];
    uint32_t u[16];
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    l = cpu_launch_of(&r, "outside_mask", 1, 32);
    launch_ptr(&l, p = cpu_buffer_of(&r, "f", NULL, sizeof f));
    cpu_submit(&r, &l);
    cpu_read(&r, f, p, sizeof f);
    for (int i = 0; i < 8; i++)
        assert_true(isnan(f[i]));
    for (int order = ORDER_FORWARD; order <= ORDER_RANDOM; order++) {
        set_schedule(&r, (enum thread_order)order, 3, SHARED_FILL_NAN, 1);
        l = cpu_launch_of(&r, "exited_lanes", 1, 32);
        launch_ptr(&l, p = cpu_buffer_of(&r, "u", NULL, sizeof u));
        cpu_submit(&r, &l);
        cpu_read(&r, u, p, sizeof u);
        for (int i = 0; i < 16; i++)
            assert_int_equal(u[i], 0xffff);
    }
    cpu_run_close(&r);
}

static void shared_memory_starts_with_the_fill(void **state)
{
    static const uint32_t want[] = {
        [SHARED_FILL_NAN] = UINT32_MAX, [SHARED_FILL_ZERO] = 0, [SHARED_FILL_BIG] = 0x7e967699u};
    struct cpu_run r;
    dev_ptr p;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    p = cpu_buffer_of(&r, "out", NULL, 8);
    for (int fill = SHARED_FILL_NAN; fill <= SHARED_FILL_BIG; fill++) {
        struct launch l = cpu_launch_of(&r, "read_fill", 1, 1);
        uint32_t out[2];

        launch_shared(&l, 64);
        launch_ptr(&l, p);
        set_schedule(&r, ORDER_FORWARD, 0, (enum shared_fill)fill, 1);
        cpu_submit(&r, &l);
        cpu_read(&r, out, p, sizeof out);
        assert_int_equal(out[0], want[fill]);
        assert_int_equal(out[1], want[fill]);
    }
    cpu_run_close(&r);
}

static void results_do_not_depend_on_workers(void **state)
{
    enum { BLOCKS = 37 };
    static float x[BLOCKS * 1024];
    static const unsigned shape[][2] = {{32, 32}, {16, 16}, {64, 2}, {2, 1}};
    float first[BLOCKS], now[BLOCKS];
    struct cpu_run r;
    dev_ptr px, py;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i * 7919 % 1000) / 997.0f;
    px = cpu_buffer_of(&r, "x", x, sizeof x);
    py = cpu_buffer_of(&r, "y", NULL, sizeof now);
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (unsigned i = 0; i < 8; i++) {
            struct launch l = cpu_launch_of(&r, "tree_sum", BLOCKS, 1);

            launch_block(&l, shape[s][0], shape[s][1], 1);
            launch_shared(&l, 4 * (uint64_t)shape[s][0] * shape[s][1]);
            launch_ptr(&l, px);
            launch_ptr(&l, py);
            set_schedule(&r, (enum thread_order)(i % 3), i, SHARED_FILL_NAN, 1 + i % 4);
            cpu_submit(&r, &l);
            cpu_read(&r, i ? now : first, py, sizeof now);
            if (i)
                assert_memory_equal(first, now, sizeof now);
        }
    cpu_run_close(&r);
}

static void graphs_and_events_replay(void **state)
{
    float x[4] = {1, 2, 3, 4}, y = 0;
    struct cpu_run r;
    struct graph *g;
    struct event *a, *b;
    struct launch l;
    dev_ptr px, py, pz;
    double ms;

    (void)state;
    cpu_run_open(&r, "cpu_sync");
    px = cpu_buffer_of(&r, "x", x, sizeof x);
    py = cpu_buffer_of(&r, "y", &y, sizeof y);
    pz = cpu_buffer_of(&r, "z", &y, sizeof y);
    l = cpu_launch_of(&r, "tree_sum", 1, 4);
    launch_shared(&l, 16);
    launch_ptr(&l, px);
    launch_ptr(&l, py);
    MUST(&r, graph_begin(r.device, &r.err));
    cpu_submit(&r, &l);
    MUST(&r, device_copy(r.device, pz, py, sizeof y, &r.err));
    MUST(&r, device_fill32(r.device, px, 0, 2, &r.err));
    assert_int_equal(device_upload(r.device, px, x, sizeof x, &r.err), -1);
    MUST(&r, graph_end(r.device, &g, &r.err));
    cpu_read(&r, &y, pz, sizeof y);
    assert_true(y == 0);
    MUST(&r, event_create(r.device, &a, &r.err));
    MUST(&r, event_create(r.device, &b, &r.err));
    assert_int_equal(event_elapsed_ms(a, b, &ms, &r.err), -1);
    MUST(&r, event_record(a, &r.err));
    MUST(&r, graph_launch(g, &r.err));
    cpu_read(&r, &y, pz, sizeof y);
    assert_true(y == 10);
    MUST(&r, graph_launch(g, &r.err));
    MUST(&r, event_record(b, &r.err));
    MUST(&r, event_elapsed_ms(a, b, &ms, &r.err));
    assert_true(ms >= 0);
    cpu_read(&r, &y, pz, sizeof y);
    assert_true(y == 7);
    event_free(a);
    event_free(b);
    graph_free(g);
    cpu_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_barrier_shows_in_the_schedules),
        cmocka_unit_test(a_schedule_repeats_itself),
        cmocka_unit_test(threads_may_leave_before_a_barrier),
        cmocka_unit_test(barrier_votes),
        cmocka_unit_test(warp_operations_in_every_order),
        cmocka_unit_test(lanes_outside_and_lanes_gone),
        cmocka_unit_test(shared_memory_starts_with_the_fill),
        cmocka_unit_test(results_do_not_depend_on_workers),
        cmocka_unit_test(graphs_and_events_replay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
