/*
 * Every check of the verify protocol is sprung by a launcher that commits the fault the check is
 * for, on a device that is the host's memory; the same launcher without a fault passes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/number.h"
#include "host_device.h"
#include "measure/runner.h"

#include <cmocka.h> /* last: its macro expect_value would hide golden.h's function */

#define N 37 /* 148 bytes: 12 of slack before the CPU device's guard page */

static const char *const faults[] = {
    "none",   "wrong",  "nan",      "unwritten",    "input",        "pointer", "keep",  "behind",
    "before", "repeat", "schedule", "shared_zero",  "late_copy",    "twin",    "fault", "refused",
    "late",   "broken", "noop",     "fault_second", "behind_third", "idle",    NULL};
enum fault {
    NONE,
    WRONG,
    NOT_A_NUMBER,
    UNWRITTEN,
    INPUT,
    POINTER,
    KEEP,
    BEHIND,
    BEFORE,
    REPEAT,
    SCHEDULE,
    SHARED_ZERO,
    LATE_COPY,
    TWIN,
    FAULT,
    REFUSED,
    LATE,
    BROKEN,
    NOOP,
    FAULT_SECOND,
    BEHIND_THIRD,
    IDLE,
};
static const struct param params[] = {
    {.key = "fault", .fallback = 0, .min = 0, .max = IDLE, .choices = faults},
    {.key = NULL},
};

enum { X, TABLE, Y, TWIN_Y, STATE, WORK };

/* y = 2x and its twin, state[even] += x, state[odd] stays; the state is reached through a pointer
 * table. */
static int toy_shape(struct problem *p, struct err *err)
{
    const struct dim dims[] = {{"row", N}, {NULL, 0}}, two[] = {{"entry", 2}, {NULL, 0}};
    int id;
    if (problem_add(p, "x", DTYPE_F32, ROLE_IN, dims, &id, err) < 0 ||
        problem_add(p, "table", DTYPE_PTR, ROLE_IN, two, &id, err) < 0 ||
        problem_add(p, "y", DTYPE_F32, ROLE_OUT, dims, &id, err) < 0 ||
        problem_add(p, "twin", DTYPE_F32, ROLE_OUT, dims, &id, err) < 0 ||
        problem_add(p, "state", DTYPE_F32, ROLE_INOUT, dims, &id, err) < 0 ||
        problem_add(p, "work", DTYPE_F32, ROLE_SCRATCH, dims, &id, err) < 0)
        return -1;
    if (case_u32(&p->tc, "fault") == BROKEN)
        return err_set(err, ERR_INPUT, "these dims are impossible");
    for (size_t i = 0; i < N; i++) {
        dtype_store(DTYPE_F32, p->buffer[X].init, i, (double)(i + 1));
        dtype_store(DTYPE_F32, p->buffer[STATE].init, i, 100.0);
    }
    p->buffer[TABLE].refs[0] = (struct pointer_ref){.buffer = STATE, .offset = 4};
    return 0;
}

static int toy_reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                         struct err *err)
{
    (void)env;
    (void)err;
    bool idle = case_u32(&p->tc, "fault") == IDLE;
    struct expectation *state = golden_open(g, p, STATE);
    for (size_t i = 0; i < N; i += 2)
        (expect_value)(state, i, idle ? 100.0 : 101.0 + (double)i, 0.5, 0.25);
    if (idle)
        return 0;
    struct expectation *y = golden_open(g, p, Y), *twin = golden_open(g, p, TWIN_Y);
    for (size_t i = 0; i < N; i++) {
        (expect_value)(y, i, 2.0 * (double)(i + 1), 0.5, 0.25);
        (expect_value)(twin, i, 2.0 * (double)(i + 1), 0.5, 0.25);
    }
    return 0;
}

static unsigned launches;    /* of the case that runs */
static uint64_t poison_seen; /* the table's second entry, which nobody may follow */

static void right_kernel(const struct operator_run *run, float *x, float *y, float *state)
{
    float *twin = host_pointer(run->ptr[TWIN_Y]), *work = host_pointer(run->ptr[WORK]);
    for (size_t i = 0; i < N; i++) {
        y[i] = twin[i] = 2.0f * x[i];
        work[i] = (float)launches; /* nobody's business */
        if (i % 2 == 0)
            state[i] += x[i];
    }
}

static void faulty_kernel(const struct operator_run *run, enum fault fault, float *x, float *y,
                          float *state)
{
    const struct schedule *s = &((struct host_device *)run->device)->schedule;
    float *twin = host_pointer(run->ptr[TWIN_Y]);
    uint64_t *table = host_pointer(run->ptr[TABLE]);
    y[5] += fault == WRONG ? 1.0f : 0.0f;
    y[5] += fault == REPEAT && launches > 1 ? 0.0625f * (float)launches : 0.0f;
    y[5] += fault == SCHEDULE && s->order == ORDER_WARPS ? 0.125f : 0.0f;
    y[5] += fault == SHARED_ZERO && s->fill == SHARED_FILL_ZERO ? 0.125f : 0.0f;
    y[5] += fault == LATE_COPY && s->late_async_copies ? 0.125f : 0.0f;
    twin[9] = fault == TWIN ? nextafterf(twin[9], 0.0f) : twin[9];
    x[7] += fault == INPUT ? 1.0f : 0.0f;
    table[1] += fault == POINTER ? 8 : 0;
    state[3] += fault == KEEP ? 1.0f : 0.0f;
    if (fault == NOT_A_NUMBER)
        y[5] = (float)NAN64;
    if (fault == BEHIND || (fault == BEHIND_THIRD && launches == 3))
        y[N] = 1.0f;
    if (fault == BEFORE)
        y[-1] = 1.0f;
}

static int toy_launch(const struct operator_run *run, struct err *err)
{
    enum fault fault = case_u32(&run->problem->tc, "fault");
    float *x = host_pointer(run->ptr[X]), *y = host_pointer(run->ptr[Y]);
    uint64_t *table = host_pointer(run->ptr[TABLE]);
    float *state = (float *)host_pointer(table[0]) - 1;
    launches++;
    poison_seen = table[1];
    if (fault == REFUSED)
        return err_set(err, ERR_REFUSED, "toy: h_table is null");
    if (fault == FAULT || (fault == FAULT_SECOND && launches == 2))
        return err_set(err, ERR_FAULT, "toy: illegal address");
    if (fault == NOOP || fault == IDLE)
        return 0;
    float held = y[11];
    right_kernel(run, x, y, state);
    faulty_kernel(run, fault, x, y, state);
    if (fault == UNWRITTEN)
        memcpy(&y[11], &held, sizeof(held));
    if (fault == LATE)
        err_set(&((struct host_device *)run->device)->sync_err, ERR_FAULT, "toy: stuck barrier");
    return 0;
}

static void toy_identities(const struct outcome *out, struct identity_report *rep)
{
    identity_equal(rep, out, "twin = y", (struct identity_side){.buffer = TWIN_Y},
                   (struct identity_side){.buffer = Y}, N);
}

static const struct operator_entry no_entries[] = {{.entry = NULL}};
static const struct op toy = {.name = "toy",
                              .entries = no_entries,
                              .params = params,
                              .contract = "fp32",
                              .shape = toy_shape,
                              .reference = toy_reference,
                              .launch = toy_launch,
                              .identities = toy_identities};

/* --- running it ------------------------------------------------------------------------------- */

static struct verify_record rec;
static struct err err;

static int verify_on(struct host_device *dev, const char *text)
{
    struct test_case tc;
    struct runner_options opt = {.workers = 1};
    err = (struct err)ERR_INIT;
    launches = 0;
    assert_int_equal(case_parse_for(&toy, text, &tc, &err), 0);
    int rc = verify_case(&dev->base, NULL, &tc, &opt, &rec, &err);
    assert_int_equal(dev->allocations, 0);
    return rc;
}

static void expect_verdict(enum device_kind kind, const char *text, enum verdict verdict,
                           const char *check, const char *reason)
{
    struct host_device dev;
    host_device_init(&dev, kind);
    verify_on(&dev, text);
    if (rec.verdict != verdict || strcmp(rec.failed_check, check) != 0 ||
        strstr(rec.reason, reason) == NULL)
        fail_msg("%s: %s by '%s': '%s'; wanted %s by '%s': '%s'", text, verdict_name(rec.verdict),
                 rec.failed_check, rec.reason, verdict_name(verdict), check, reason);
}

static void a_right_kernel_passes_on_both_devices(void **state)
{
    (void)state;
    expect_verdict(DEVICE_CPU, "toy", VERDICT_PASS, "", "");
    assert_int_equal(rec.repeats, 4);
    assert_int_equal(rec.schedules, 4);
    assert_int_equal(launches, 4);
    assert_int_equal(rec.checks_run, (1u << CHECK_COUNT) - 1);
    expect_verdict(DEVICE_CUDA, "toy", VERDICT_PASS, "", "");
    assert_int_equal(rec.repeats, 3);
    assert_int_equal(rec.schedules, 1);
    assert_int_equal(rec.checks_run, ((1u << CHECK_COUNT) - 1) & ~(1u << CHECK_SCHEDULE));
}

static void every_fault_is_caught_by_its_check(void **state)
{
    (void)state;
    static const struct {
        const char *text, *check, *reason;
    } rows[] = {
        {"toy fault=wrong", "golden", "y[row=5] is 13, golden 12, bound 0.25, error/bound 4"},
        {"toy fault=nan", "golden", "y[row=5]"},
        {"toy fault=unwritten", "coverage", "y[row=11] was never written"},
        {"toy fault=noop", "coverage", "y[row=0] was never written (37 of 37"},
        {"toy fault=input", "inputs", "x[row=7]"},
        {"toy fault=pointer", "inputs", "table[entry=1]"},
        {"toy fault=keep", "keep", "state[row=3]"},
        {"toy fault=behind", "fence", "buffer y"},
        {"toy fault=before", "fence", "buffer y"},
        {"toy fault=twin", "identity", "twin = y: twin[row=9]"},
        {"toy fault=fault", "launch", "illegal address"},
        {"toy fault=refused", "launch", "h_table is null"},
        {"toy fault=late", "launch", "stuck barrier"},
        {"toy fault=fault_second", "launch", "illegal address"},
        {"toy fault=behind_third", "fence", "buffer y"},
        {"toy fault=repeat", "repeat", "y[row=5] is 12 with"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_verdict(DEVICE_CPU, rows[i].text, VERDICT_FAIL, rows[i].check, rows[i].reason);
        expect_verdict(DEVICE_CUDA, rows[i].text, VERDICT_FAIL, rows[i].check, rows[i].reason);
    }
}

static void dependence_on_the_schedule_is_told_from_chance(void **state)
{
    (void)state;
    expect_verdict(DEVICE_CPU, "toy fault=schedule", VERDICT_FAIL, "schedule",
                   "y[row=5] is 12 with forward order, shared memory of NaN but 12.125 with warp "
                   "after warp");
    expect_verdict(DEVICE_CPU, "toy fault=shared_zero", VERDICT_FAIL, "schedule",
                   "shared memory of zeros");
    expect_verdict(DEVICE_CPU, "toy fault=late_copy", VERDICT_FAIL, "schedule", "reverse order");
    expect_verdict(DEVICE_CUDA, "toy fault=schedule", VERDICT_PASS, "", "");
}

static void an_idle_case_is_mistrusted(void **state)
{
    (void)state;
    expect_verdict(DEVICE_CPU, "toy fault=idle", VERDICT_MISTRUST, "golden",
                   "would pass: what it is to hold is there before");
}

static void the_harness_own_trouble_is_an_error(void **state)
{
    (void)state;
    struct host_device dev;
    host_device_init(&dev, DEVICE_CUDA);
    assert_int_equal(verify_on(&dev, "toy fault=broken"), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_int_equal(rec.verdict, VERDICT_ERROR);
    assert_non_null(strstr(rec.reason, "impossible"));
    dev.full = true;
    assert_int_equal(verify_on(&dev, "toy"), -1);
    assert_int_equal(rec.verdict, VERDICT_ERROR);
    assert_non_null(strstr(rec.reason, "no memory for x"));
    host_device_init(&dev, DEVICE_CUDA);
    err_set(&dev.sync_err, ERR_SYSTEM, "the driver is gone");
    assert_int_equal(verify_on(&dev, "toy"), -1);
    assert_int_equal(rec.verdict, VERDICT_ERROR);
}

static void a_record_repeats_itself(void **state)
{
    (void)state;
    expect_verdict(DEVICE_CPU, "toy seed=9", VERDICT_PASS, "", "");
    assert_string_equal(rec.repro,
                        "build/deltarig verify --device host --case 'toy fault=none seed=9'");
    assert_string_equal(rec.case_text, "toy fault=none seed=9");
    assert_string_equal(rec.op, "toy");
    assert_int_equal(rec.noutputs, 3);
    char bits[HASH_HEX];
    snprintf(bits, sizeof(bits), "%s", rec.output[0].bits);
    expect_verdict(DEVICE_CUDA, "toy seed=9", VERDICT_PASS, "", "");
    assert_string_equal(rec.output[0].bits, bits);
    expect_verdict(DEVICE_CUDA, "toy fault=wrong seed=9", VERDICT_FAIL, "golden", "y[row=5]");
    assert_string_not_equal(rec.output[0].bits, bits);
}

/* On the CPU device the end of an empty guarded buffer, so that following it names the mistake; on
   CUDA an address that no driver hands out. */
static void poisoned_pointers_point_at_nothing(void **state)
{
    (void)state;
    expect_verdict(DEVICE_CUDA, "toy", VERDICT_PASS, "", "");
    assert_true(poison_seen == UINT64_C(0xdeadbeefdeadbee0));
    expect_verdict(DEVICE_CPU, "toy", VERDICT_PASS, "", "");
    assert_true(poison_seen != UINT64_C(0xdeadbeefdeadbee0) && poison_seen != 0);
}

static void a_fast_restore_starts_from_the_same_contents(void **state)
{
    (void)state;
    struct host_device dev;
    struct test_case tc;
    struct runner *r;
    struct runner_options opt = {.workers = 1};
    err = (struct err)ERR_INIT;
    assert_int_equal(case_parse_for(&toy, "toy", &tc, &err), 0);
    host_device_init(&dev, DEVICE_CUDA);
    assert_int_equal(runner_open(&dev.base, NULL, &tc, &opt, &r, &err), 0);
    assert_int_equal(runner_restore(r, &err), 0);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(runner_launch(r, &err), 0);
        assert_int_equal(runner_collect(r, &err), 0);
        assert_int_equal(runner_judge(r, &rec, &err), 0);
        assert_int_equal(rec.verdict, VERDICT_PASS);
        assert_int_equal(runner_restore_fast(r, &err), 0);
    }
    assert_int_equal(runner_launch(r, &err), 0); /* and without a restore the state has moved on */
    assert_int_equal(runner_launch(r, &err), 0);
    assert_int_equal(runner_collect(r, &err), 0);
    assert_int_equal(runner_judge(r, &rec, &err), 0);
    assert_int_equal(rec.verdict, VERDICT_FAIL);
    runner_close(r);
    assert_int_equal(dev.allocations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_kernel_passes_on_both_devices),
        cmocka_unit_test(every_fault_is_caught_by_its_check),
        cmocka_unit_test(dependence_on_the_schedule_is_told_from_chance),
        cmocka_unit_test(an_idle_case_is_mistrusted),
        cmocka_unit_test(the_harness_own_trouble_is_an_error),
        cmocka_unit_test(a_record_repeats_itself),
        cmocka_unit_test(poisoned_pointers_point_at_nothing),
        cmocka_unit_test(a_fast_restore_starts_from_the_same_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
