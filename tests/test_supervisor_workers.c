/* Workers that crash, hang, exit, lie or lose their device: each costs its own case and nothing
 * else. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "measure/supervisor.h"

#include <cmocka.h> /* last, as everywhere in the tests */

#define COUNT 12

enum act { WORK, CRASH, ABORT, EXIT, HANG, RETIRE, KILL_SELF, SLOW, WARN };

struct toy_result {
    size_t index;
    pid_t pid;
    int value;
    char why[256];
};

struct toy {
    enum act act[COUNT];
    enum device_kind kind;
    int open_fails_after; /* workers opened so far; -1: never fails */
    bool open_crashes;
    char marker[64]; /* a file that grows by a byte per open() */

    bool opened;
    unsigned done[COUNT];
    struct toy_result result[COUNT];
    size_t order[COUNT], finished;
    int done_fails_at;
    unsigned warnings;
    char warning[2000];
    pid_t warned_in;
};

static int count_opens(const struct toy *t)
{
    FILE *f = fopen(t->marker, "a+");
    assert_non_null(f);
    fputc('x', f);
    long n = ftell(f);
    fclose(f);
    return (int)n;
}

static int toy_open(void *worker, struct device_info *info, struct err *err)
{
    struct toy *t = worker;
    int n = count_opens(t);
    if (t->open_crashes)
        raise(SIGSEGV);
    if (t->open_fails_after >= 0 && n > t->open_fails_after)
        return err_set(err, ERR_MISSING, "no device today");
    info->kind = t->kind;
    snprintf(info->spec, sizeof(info->spec), "toy");
    return 0;
}

static void misbehave(enum act act)
{
    const struct timespec nap = {.tv_sec = 60}, blink = {.tv_nsec = 50000000};
    if (act == CRASH) {
        volatile int *nowhere = NULL;
        *nowhere = 1;
    } else if (act == ABORT) {
        abort();
    } else if (act == EXIT) {
        exit(7);
    } else if (act == HANG) {
        nanosleep(&nap, NULL);
    } else if (act == KILL_SELF) {
        raise(SIGKILL);
    } else if (act == SLOW) {
        nanosleep(&blink, NULL);
    }
}

static bool toy_run(void *worker, size_t index, void *result, const struct supervisor_link *link)
{
    struct toy *t = worker;
    struct toy_result *r = result;
    supervisor_phase(link, "thinking");
    supervisor_phase(link, "acting");
    if (t->act[index] == WARN) {
        char text[1500];
        snprintf(text, sizeof(text), "mind case %zu%1400s", index, "");
        supervisor_warn(link, text);
        supervisor_warn(link, "and mind the gap");
    }
    misbehave(t->act[index]);
    *r = (struct toy_result){.index = index, .pid = getpid(), .value = (int)index * 10};
    return t->act[index] == RETIRE;
}

static void toy_close(void *worker)
{
    (void)worker;
}

static int toy_opened(void *parent, const struct device_info *info, struct err *err)
{
    struct toy *t = parent;
    (void)err;
    assert_string_equal(info->spec, "toy");
    assert_false(t->opened);
    t->opened = true;
    return 0;
}

static int toy_done(void *parent, size_t index, const void *result, struct err *err)
{
    struct toy *t = parent;
    if (t->done_fails_at == (int)index)
        return err_set(err, ERR_SYSTEM, "the disk is full");
    t->done[index]++;
    t->result[index] = *(const struct toy_result *)result;
    t->order[t->finished++] = index;
    return 0;
}

static void toy_lost(void *parent, size_t index, const char *why, void *result)
{
    (void)parent;
    struct toy_result *r = result;
    *r = (struct toy_result){.index = index, .value = -1};
    snprintf(r->why, sizeof(r->why), "%s", why);
}

static void toy_warned(void *parent, const char *text)
{
    struct toy *t = parent;
    assert_int_equal(t->done[3], 0); /* before the result */
    t->warnings++;
    t->warned_in = getpid();
    if (t->warning[0] == '\0')
        snprintf(t->warning, sizeof(t->warning), "%s", text);
}

static void toy_init(struct toy *t, enum device_kind kind)
{
    struct err err = ERR_INIT;
    memset(t, 0, sizeof(*t));
    t->kind = kind;
    t->open_fails_after = -1;
    t->done_fails_at = -1;
    assert_int_equal(dir_make("build/tmp", &err), 0);
    snprintf(t->marker, sizeof(t->marker), "build/tmp/supervisor-%ld", (long)getpid());
    unlink(t->marker);
}

static int opens(const struct toy *t)
{
    return count_opens(t) - 1;
}

static struct supervisor_job job_of(struct toy *t, unsigned jobs)
{
    return (struct supervisor_job){.count = COUNT,
                                   .result_size = sizeof(struct toy_result),
                                   .jobs = jobs,
                                   .watchdog_s = 20.0,
                                   .worker = t,
                                   .open = toy_open,
                                   .run = toy_run,
                                   .close = toy_close,
                                   .parent = t,
                                   .opened = toy_opened,
                                   .done = toy_done,
                                   .lost = toy_lost,
                                   .warned = toy_warned};
}

static int supervise(struct toy *t, unsigned jobs, double watchdog_s, const bool *skip,
                     struct err *err)
{
    struct supervisor_job job = job_of(t, jobs);
    job.skip = skip;
    job.watchdog_s = watchdog_s;
    int rc = supervisor_run(&job, err);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left behind */
    return rc;
}

static void expect_all_done_once(const struct toy *t)
{
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(t->done[i], 1);
        assert_int_equal(t->result[i].index, i);
        if (t->act[i] == WORK || t->act[i] == RETIRE || t->act[i] == SLOW)
            assert_int_equal(t->result[i].value, i * 10);
        else
            assert_int_equal(t->result[i].value, -1);
    }
}

static void work_is_done_in_order_by_one_worker(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CUDA);
    assert_int_equal(supervise(&t, 1, 20.0, NULL, &err), 0);
    expect_all_done_once(&t);
    assert_int_equal(opens(&t), 1);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(t.order[i], i);
    assert_int_not_equal(t.result[0].pid, getpid());
    unlink(t.marker);
}

static void the_cpu_device_shares_the_work(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CPU);
    for (size_t i = 0; i < COUNT; i++)
        t.act[i] = SLOW;
    assert_int_equal(supervise(&t, 3, 20.0, NULL, &err), 0);
    expect_all_done_once(&t);
    assert_int_equal(opens(&t), 3);
    unlink(t.marker);
}

static void few_workers_share_a_gpu(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CUDA);
    for (size_t i = 0; i < COUNT; i++)
        t.act[i] = SLOW;
    assert_int_equal(supervise(&t, SUPERVISOR_GPU_JOBS + 4, 20.0, NULL, &err), 0);
    expect_all_done_once(&t);
    assert_int_equal(opens(&t), COUNT < SUPERVISOR_GPU_JOBS ? COUNT : SUPERVISOR_GPU_JOBS);
    unlink(t.marker);
}

static void a_death_costs_one_case(void **state)
{
    (void)state;
    static const struct {
        enum act act;
        const char *why;
    } rows[] = {{CRASH, "signal 11"},
                {ABORT, "signal 6"},
                {EXIT, "exit status 7"},
                {KILL_SELF, "signal 9"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned jobs = 1; jobs <= 2; jobs++) {
            struct toy t;
            struct err err = ERR_INIT;
            toy_init(&t, DEVICE_CPU);
            t.act[0] = t.act[4] = t.act[5] = t.act[COUNT - 1] = rows[i].act;
            assert_int_equal(supervise(&t, jobs, 20.0, NULL, &err), 0);
            expect_all_done_once(&t);
            assert_non_null(strstr(t.result[4].why, rows[i].why));
            unlink(t.marker);
        }
    }
}

static void a_hang_costs_one_case(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CUDA);
    t.act[3] = HANG;
    assert_int_equal(supervise(&t, 1, 0.3, NULL, &err), 0);
    expect_all_done_once(&t);
    assert_non_null(strstr(t.result[3].why, "no answer for 0.3 s"));
    assert_non_null(strstr(t.result[3].why, "in phase: acting"));
    assert_int_equal(opens(&t), 2);
    unlink(t.marker);
}

static void a_worker_that_retires_keeps_its_result(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CUDA);
    t.act[2] = t.act[3] = RETIRE;
    assert_int_equal(supervise(&t, 1, 20.0, NULL, &err), 0);
    expect_all_done_once(&t);
    assert_int_equal(opens(&t), 3);
    assert_int_not_equal(t.result[2].pid, t.result[3].pid);
    unlink(t.marker);
}

/* In whichever process the work is done. */
static void warnings_come_from_the_parent(void **state)
{
    (void)state;
    for (int in_process = 0; in_process < 2; in_process++) {
        struct toy t;
        struct err err = ERR_INIT;
        toy_init(&t, DEVICE_CPU);
        t.act[3] = WARN;
        struct supervisor_job job = job_of(&t, 2);
        job.in_process = in_process;
        assert_int_equal(supervisor_run(&job, &err), 0);
        assert_int_equal(t.warnings, 2);
        assert_int_equal(t.warned_in, getpid());
        assert_memory_equal(t.warning, "mind case 3 ", 12);
        assert_int_equal(strlen(t.warning), SUPERVISOR_WARNING_BYTES - 1); /* cut */
        assert_int_equal(t.result[3].value, 30);
        if (in_process)
            assert_int_equal(t.result[3].pid, getpid());
        else
            assert_int_not_equal(t.result[3].pid, getpid());
        unlink(t.marker);
        toy_init(&t, DEVICE_CPU); /* nobody listens */
        t.act[3] = WARN;
        job = job_of(&t, 2);
        job.in_process = in_process;
        job.warned = NULL;
        assert_int_equal(supervisor_run(&job, &err), 0);
        assert_int_equal(t.result[3].value, 30);
        unlink(t.marker);
    }
}

static void skipped_cases_are_not_touched(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    bool skip[COUNT] = {true, true, false, true, false, true, true, true, true, true, true, true};
    toy_init(&t, DEVICE_CPU);
    assert_int_equal(supervise(&t, 4, 20.0, skip, &err), 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(t.done[i], !skip[i]);
    memset(skip, true, sizeof(skip));
    unlink(t.marker);
    toy_init(&t, DEVICE_CPU);
    assert_int_equal(supervise(&t, 4, 20.0, skip, &err), 0);
    assert_int_equal(opens(&t), 0); /* nothing to do: no worker */
    unlink(t.marker);
}

static void no_device_at_the_start_is_the_callers_error(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CPU);
    t.open_fails_after = 0;
    assert_int_equal(supervise(&t, 2, 20.0, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_MISSING);
    assert_string_equal(err.text, "no device today");
    unlink(t.marker);
    toy_init(&t, DEVICE_CPU);
    t.open_crashes = true;
    assert_int_equal(supervise(&t, 2, 20.0, NULL, &err), -1);
    assert_non_null(strstr(err.text, "signal 11"));
    assert_int_equal(t.finished, 0);
    unlink(t.marker);
}

static void a_device_lost_for_good_loses_the_rest(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CUDA);
    t.act[4] = CRASH;
    t.open_fails_after = 1;
    assert_int_equal(supervise(&t, 1, 20.0, NULL, &err), 0);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(t.done[i], 1);
        assert_int_equal(t.result[i].value, i < 4 ? (int)i * 10 : -1);
    }
    assert_non_null(strstr(t.result[5].why, "no worker can be started any more: no device today"));
    unlink(t.marker);
}

static void trouble_of_the_parent_ends_the_run(void **state)
{
    (void)state;
    struct toy t;
    struct err err = ERR_INIT;
    toy_init(&t, DEVICE_CPU);
    t.done_fails_at = 3;
    assert_int_equal(supervise(&t, 2, 20.0, NULL, &err), -1);
    assert_string_equal(err.text, "the disk is full");
    unlink(t.marker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_done_in_order_by_one_worker),
        cmocka_unit_test(the_cpu_device_shares_the_work),
        cmocka_unit_test(few_workers_share_a_gpu),
        cmocka_unit_test(a_death_costs_one_case),
        cmocka_unit_test(a_hang_costs_one_case),
        cmocka_unit_test(a_worker_that_retires_keeps_its_result),
        cmocka_unit_test(warnings_come_from_the_parent),
        cmocka_unit_test(skipped_cases_are_not_touched),
        cmocka_unit_test(no_device_at_the_start_is_the_callers_error),
        cmocka_unit_test(a_device_lost_for_good_loses_the_rest),
        cmocka_unit_test(trouble_of_the_parent_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
