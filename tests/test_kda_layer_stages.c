/*
 * A KDA layer's judge: a right run passes, and bits spoilt at one stage are blamed on that stage,
 * not on those behind it. And the domain of the gate: what is no log decay is refused before
 * anything is launched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ops/kda_recurrence_common.h"
#include "measure/runner_state.h"

#include <cmocka.h> /* last: its macro expect_value would hide golden.h's function */

struct layer {
    struct device *device;
    struct kernel_set *set;
    struct runner *runner;
};

static void must(int rc, const struct err *err)
{
    if (rc < 0)
        fail_msg("%s", err->text);
}

/* One case, run once on the CPU device. */
static void layer_open(struct layer *l, const char *text)
{
    struct runner_options opt = {.workers = 1};
    struct err err = ERR_INIT;
    struct test_case tc;

    must(case_parse(text, &tc, &err), &err);
    must(device_open("cpu", &l->device, &err), &err);
    must(kernel_set_open(l->device, NULL, &l->set, &err), &err);
    must(runner_open(l->device, l->set, &tc, &opt, &l->runner, &err), &err);
    must(runner_restore(l->runner, &err), &err);
    must(runner_launch(l->runner, &err), &err);
    must(runner_collect(l->runner, &err), &err);
}

static void layer_close(struct layer *l)
{
    runner_close(l->runner);
    kernel_set_close(l->set);
    device_close(l->device);
}

static void judged(struct layer *l, struct verify_record *rec)
{
    struct err err = ERR_INIT;

    runner_record_init(rec, &l->runner->problem.tc, "cpu", NULL);
    must(runner_judge(l->runner, rec, &err), &err);
}

/* Moves one element of the buffer, judges, and puts it back. */
static void spoil(struct layer *l, const char *name)
{
    int id = problem_find(&l->runner->problem, name);
    assert_true(id >= 0);
    const struct buffer *b = &l->runner->problem.buffer[id];
    void *data = l->runner->after[id];
    size_t at = b->count > 40 ? 40 : 0; /* in the first row: some rows behind are a pad */
    double was = dtype_load(b->dtype, data, at);
    struct verify_record rec;
    char where[64];

    dtype_store(b->dtype, data, at, was + 0.5);
    judged(l, &rec);
    dtype_store(b->dtype, data, at, was);
    snprintf(where, sizeof(where), "%s[", name);
    if (rec.verdict != VERDICT_FAIL || strstr(rec.reason, where) == NULL)
        fail_msg("%s spoilt, but: %s", name, rec.reason);
}

static void blames(const char *text, const char *const *stages)
{
    struct layer l;
    struct verify_record rec;

    layer_open(&l, text);
    judged(&l, &rec);
    if (rec.verdict != VERDICT_PASS)
        fail_msg("%s: %s", text, rec.reason);
    for (; *stages != NULL; stages++)
        spoil(&l, *stages);
    judged(&l, &rec);
    assert_int_equal(rec.verdict, VERDICT_PASS);
    layer_close(&l);
}

static void decode_blames_the_first_stage(void **unused)
{
    static const char *const stages[] = {"q",   "k",     "v",    "packed", "conv_state", "conv",
                                         "f_a", "f_b",   "gate", "b",      "beta",       "g_a",
                                         "g_b", "state", "core", "norm",   "y",          NULL};

    (void)unused;
    blames("kda_decode_layer hidden=64 H=1", stages);
}

static void prefill_blames_the_first_stage(void **unused)
{
    static const char *const stages[] = {
        "q",   "k",    "v", "packed", "conv_state", "conv", "normed", "q32",  "k32",  "v32", "f_a",
        "f_b", "gate", "b", "beta",   "g_a",        "g_b",  "state",  "core", "norm", "y",   NULL};

    (void)unused;
    blames("kda_prefill_layer hidden=64 H=1 T=9", stages);
}

/* Decode's and prefill's outputs are each held against the other path as well. */
static void paths_are_held_against_each_other(void **unused)
{
    static const char *const stages[] = {"core_of_prefill_by_decode", "state_of_prefill_by_decode",
                                         NULL};

    (void)unused;
    blames("kda_decode_vs_prefill hidden=64 H=1 T=3", stages);
}

static const char *const recurrences[] = {"kda_recurrent",     "kda_recurrent_smem",
                                          "kda_chunk_prepare", "kda_chunk_scan",
                                          "kda_chunk_pair",    "kda_prefill_split"};

/* The planted case: a linear decay, as a GDN caller would pass. */
static void linear_decays_are_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof(recurrences) / sizeof(recurrences[0]); i++)
        for (int linear = 0; linear < 2; linear++) {
            struct err err = ERR_INIT;
            struct test_case tc;
            struct problem p;
            char text[128];
            snprintf(text, sizeof(text), "%s D=32 decay=%s", recurrences[i],
                     linear ? "linear" : "log");
            must(case_parse(text, &tc, &err), &err);
            problem_init(&p, &tc);
            int rc = tc.op->shape(&p, &err);
            if (linear) {
                assert_int_equal(rc, -1);
                assert_int_equal(err.kind, ERR_INPUT);
                assert_non_null(strstr(err.text, "gate > 0 at gate[token=0 head=0 channel=0]"));
            } else {
                must(rc, &err);
            }
            problem_release(&p);
        }
}

static void gates_that_are_no_numbers_are_refused(void **unused)
{
    struct err err = ERR_INIT;
    struct test_case tc;
    struct problem p;

    (void)unused;
    must(case_parse("kda_recurrent H=2 D=32 T=2", &tc, &err), &err);
    problem_init(&p, &tc);
    must(tc.op->shape(&p, &err), &err);
    struct kda_sizes n = kda_sizes_of(&p, false);
    int gate = problem_find(&p, "gate");
    dtype_store(DTYPE_F32, p.buffer[gate].init, 40, 0.0);
    must(kda_check_gate(&p, gate, &n, &err), &err);
    buffer_poison(&p.buffer[gate], 70, 1);
    assert_int_equal(kda_check_gate(&p, gate, &n, &err), -1);
    assert_non_null(strstr(err.text, "gate[token=1 head=0 channel=6]"));
    problem_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_blames_the_first_stage),
        cmocka_unit_test(prefill_blames_the_first_stage),
        cmocka_unit_test(paths_are_held_against_each_other),
        cmocka_unit_test(linear_decays_are_refused),
        cmocka_unit_test(gates_that_are_no_numbers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
