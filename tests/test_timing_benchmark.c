/* A whole benchmark run on the CPU device: what is right is timed and judged again, what is
   wrong or absent is not timed, and both sides of a comparison get the same rounds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "device/kernel_set.h"
#include "measure/benchmark.h"
#include "measure/golden_cache.h"
#include "measure/runner.h"

/* After the headers: it has a macro of the name of a function of problem/golden.h. */
#include <cmocka.h>

#define CASE        "kda_fill n=257 gap=5 value=negative seed=1"
#define MAX_RESULTS 16

/* Its reference takes longer than to read a golden. */
#define SLOW_REFERENCE "kda_chunk_scan H=1 D=64 T=512"

/* What a run handed out. */
struct seen {
    unsigned opened, ceilings, results, repeats_done, results_at_last;
    struct bench_record record[MAX_RESULTS]; /* samples are not kept */
    unsigned repeat[MAX_RESULTS], side[MAX_RESULTS];
    double first_at_s[MAX_RESULTS];
    unsigned rounds[MAX_RESULTS];
    enum err_kind cause[MAX_RESULTS];
    char note[1024];
    unsigned warnings;
    char warning[1024];
};

static int on_opened(void *ctx, const struct device_info *info, struct err *err)
{
    struct seen *s = ctx;

    (void)err;
    s->opened++;
    assert_int_equal(info->kind, DEVICE_CPU);
    return 0;
}

static int on_ceiling(void *ctx, const struct ceiling_record *rec, struct err *err)
{
    struct seen *s = ctx;

    (void)rec;
    (void)err;
    s->ceilings++;
    return 0;
}

static int on_result(void *ctx, unsigned repeat, unsigned side, const struct bench_record *rec,
                     enum err_kind cause, struct err *err)
{
    struct seen *s = ctx;
    unsigned i = s->results++;

    (void)err;
    assert_true(i < MAX_RESULTS);
    s->cause[i] = cause;
    s->record[i] = *rec;
    s->record[i].sample = NULL;
    s->repeat[i] = repeat;
    s->side[i] = side;
    if (rec->nsamples) {
        s->first_at_s[i] = rec->sample[0].at_s;
        s->rounds[i] = rec->sample[rec->nsamples - 1].round + 1;
    }
    return 0;
}

static void on_note(void *ctx, const char *text)
{
    struct seen *s = ctx;

    snprintf(s->note, sizeof s->note, "%s", text);
}

static void on_warn(void *ctx, const char *text)
{
    struct seen *s = ctx;

    s->warnings++;
    snprintf(s->warning, sizeof s->warning, "%s", text);
}

static void on_repeat_done(void *ctx, unsigned repeat, size_t cases)
{
    struct seen *s = ctx;

    assert_int_equal(repeat, s->repeats_done++);
    assert_int_equal(cases, 1);
    s->results_at_last = s->results;
}

static void run_case(struct benchmark_options *opt, const char *text, struct seen *s)
{
    const struct benchmark_sink sink = {.ctx = s,
                                        .opened = on_opened,
                                        .ceiling = on_ceiling,
                                        .result = on_result,
                                        .note = on_note,
                                        .warn = on_warn,
                                        .repeat_done = on_repeat_done};
    struct case_list cases;
    struct err err = ERR_INIT;

    memset(s, 0, sizeof *s);
    opt->device = "cpu";
    opt->sheet_dir = "cases/devices";
    opt->suite = "test";
    opt->rounds = 4;
    if (!(opt->budget_s > 0))
        opt->budget_s = 0.05;
    case_list_init(&cases);
    if (case_line_expand(text, TIER_SMOKE, &cases, &err) < 0 ||
        benchmark_run(opt, &cases, &sink, &err) < 0)
        fail_msg("%s", err.text);
    case_list_release(&cases);
    assert_int_equal(s->opened, 1);
    assert_int_equal(s->ceilings, 0); /* an emulation has none */
}

static void test_a_right_kernel_is_timed(void **data)
{
    struct benchmark_options opt = {.sides = 1, .cold = true, .hot = true, .repeats = 2};
    struct seen s;

    (void)data;
    run_case(&opt, CASE, &s);
    assert_int_equal(s.results, 2); /* one temperature on the CPU device, two repeats */
    assert_int_equal(s.repeats_done, 2);
    assert_int_equal(s.results_at_last, 2); /* the records come first */
    for (unsigned i = 0; i < 2; i++) {
        const struct bench_record *r = &s.record[i];

        if (!r->valid)
            fail_msg("%s", r->reason);
        assert_int_equal(s.repeat[i], i);
        assert_string_equal(r->case_text, CASE);
        assert_int_equal(r->temperature, BENCH_HOT);
        assert_true(r->median_us > 0);
        assert_true(r->nsamples >= 8);
        assert_int_equal(s.rounds[i], 4);
        assert_int_equal(r->verified_after, i == 1); /* after the last */
        assert_true(r->write_bytes == 257 * 4);
        assert_true(isnan(r->roof_us)); /* nothing was measured to hold it against */
        assert_true(r->gb10_floor_us > 0);
        assert_int_equal(r->nkernels, 1);
        assert_string_equal(r->kernel[0].entry, "kda_fill_f32");
        assert_string_equal(r->launch_mode, "stream");
        assert_non_null(strstr(r->repro, "bench --case '" CASE "' --device cpu --hot"));
    }
    assert_true(s.first_at_s[1] > s.first_at_s[0]);
}

static void test_two_sides_get_the_same_rounds(void **data)
{
    struct benchmark_options opt = {.sides = 2, .cold = true};
    struct seen s;

    (void)data;
    run_case(&opt, CASE, &s);
    assert_int_equal(s.results, 2);
    assert_int_equal(s.side[0], 0);
    assert_int_equal(s.side[1], 1);
    assert_int_equal(s.rounds[0], 4);
    assert_int_equal(s.rounds[1], 4);
    assert_int_equal(s.record[0].temperature, BENCH_COLD); /* asked for by name */
}

/* Rounds beyond those planned are for an interval that is open, within the budget. */
static void test_an_open_interval_gets_further_rounds(void **data)
{
    struct benchmark_options opt = {.sides = 2, .hot = true, .most_rounds = 9, .budget_s = 60};
    struct seen s;

    (void)data;
    run_case(&opt, CASE, &s);
    assert_int_equal(s.results, 2);
    assert_int_equal(s.rounds[0], s.rounds[1]); /* both, though only one may be open */
    assert_in_range(s.rounds[0], 4, 9);
    assert_true(s.rounds[0] == 9 || (s.record[0].converged && s.record[1].converged));
    opt.budget_s = 1e-9; /* spent in the first round */
    run_case(&opt, CASE, &s);
    assert_int_equal(s.rounds[0], 4);
    assert_int_equal(s.rounds[1], 4);
}

/* A kernel set of one source. */
static void write_set(const char *dir, const char *source)
{
    char path[256];
    struct err err = ERR_INIT;

    snprintf(path, sizeof path, "%s/mine.cu", dir);
    if (dir_make(dir, &err) < 0 || file_replace(path, source, strlen(source), &err) < 0)
        fail_msg("%s", err.text);
}

static void test_a_wrong_kernel_is_not(void **data)
{
    static const char dir[] = "build/tests/bench-wrong";
    struct benchmark_options opt = {.sides = 1, .hot = true, .kernels = {dir}};
    struct seen s;

    (void)data;
    /* The fastest of all: it does nothing. */
    write_set(dir, "extern \"C\" __global__ void kda_fill_f32(float *dst, unsigned int n, "
                   "float value) {}\n");
    run_case(&opt, CASE, &s);
    assert_int_equal(s.results, 1);
    assert_false(s.record[0].valid);
    assert_int_equal(s.record[0].nsamples, 0);
    assert_true(isnan(s.record[0].median_us));
    if (!strstr(s.record[0].reason, "not timed: FAIL: "))
        fail_msg("%s", s.record[0].reason);
}

/* A kernel that is right for its first launches, so passes before it is timed, and then does
   `later` instead. */
static void write_changing(const char *dir, const char *later)
{
    char source[1024];

    snprintf(source, sizeof source,
             "static __device__ unsigned int launches;\n"
             "extern \"C\" __global__ void kda_fill_f32(float *dst, unsigned int n, float value)\n"
             "{\n"
             "    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
             "    if (i == 0)\n"
             "        atomicAdd(&launches, 1u);\n"
             "    if (launches > 20u) {\n"
             "        %s\n"
             "    }\n"
             "    if (i < n)\n"
             "        dst[i] = value;\n"
             "}\n",
             later);
    write_set(dir, source);
}

static void run_changing(const char *dir, const char *later, struct seen *s)
{
    struct benchmark_options opt = {.sides = 1, .hot = true, .kernels = {dir}};

    write_changing(dir, later);
    run_case(&opt, CASE, s);
    assert_int_equal(s->results, 1);
    assert_false(s->record[0].valid);
    assert_true(isnan(s->record[0].median_us));
}

/* The timed buffers are looked at once more after the loop. */
static void test_a_kernel_that_goes_wrong_while_timed_is_not_believed(void **data)
{
    struct seen s;

    (void)data;
    run_changing("build/tests/bench-late", "return;", &s);
    if (!strstr(s.record[0].reason, "after the timed loop: FAIL: "))
        fail_msg("%s", s.record[0].reason);
    assert_false(s.record[0].verified_after);
}

/* Both sides of a comparison have the same buffers, and one of them writes in front of one. */
static void test_damage_to_shared_buffers_is_charged_to_who_does_it(void **data)
{
    static const char dir[] = "build/tests/bench-damage";
    struct benchmark_options opt = {.sides = 2, .hot = true, .kernels = {dir, NULL}};
    struct seen s;

    (void)data;
    write_changing(dir, "if (i == 0) dst[-1] = 0;");
    run_case(&opt, CASE, &s);
    assert_int_equal(s.results, 2);
    assert_false(s.record[0].valid);
    assert_non_null(strstr(s.record[0].reason, "after the timed loop: FAIL: "));
    if (!s.record[1].valid)
        fail_msg("%s", s.record[1].reason);
    assert_true(s.record[1].verified_after);

    write_changing(dir, "if (i == 0 && launches == 21u) dst[-1] = 0;"); /* once: nobody knows who */
    run_case(&opt, CASE, &s);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(s.record[i].valid);
        assert_non_null(strstr(s.record[i].reason, "one of the two sides did this"));
    }
}

/* A launch that fails is no fast sample. */
static void test_a_launch_that_fails_while_timed_is_no_time(void **data)
{
    struct seen s;

    (void)data;
    run_changing("build/tests/bench-fault", "((volatile float *)0)[i] = value;", &s);
    if (!strstr(s.record[0].reason, "while it was timed: ") ||
        !strstr(s.record[0].reason, "null pointer"))
        fail_msg("%s", s.record[0].reason);
}

static struct kernel_set *open_set(struct device *device, const char *dir)
{
    struct kernel_set *set;
    struct err err = ERR_INIT;

    if (kernel_set_open(device, dir, &set, &err) < 0)
        fail_msg("%s", err.text);
    return set;
}

/* Another load of a set is taken when its files are the same, not when one has changed since. */
static void test_another_load_must_be_the_same_code(void **data)
{
    static const char dir[] = "build/tests/bench-rebind";
    static const char kernel[] =
        "extern \"C\" __global__ void kda_fill_f32(float *dst, unsigned int n, float value) {}\n";
    const struct runner_options opt = {.workers = 1};
    struct case_list cases;
    struct kernel_set *first, *same, *changed;
    struct device *device = NULL;
    struct runner *r;
    struct err err = ERR_INIT;

    (void)data;
    case_list_init(&cases);
    write_set(dir, kernel);
    if (case_line_expand(CASE, TIER_SMOKE, &cases, &err) < 0 ||
        device_open("cpu", &device, &err) < 0)
        fail_msg("%s", err.text);
    first = open_set(device, dir);
    same = open_set(device, dir);
    if (runner_open(device, first, &cases.items[0], &opt, &r, &err) < 0 ||
        runner_rebind(r, same, &err) < 0)
        fail_msg("%s", err.text);
    write_set(dir, "/* changed */ extern \"C\" __global__ void kda_fill_f32(float *dst, unsigned "
                   "int n, float value) { dst[0] = value; }\n");
    changed = open_set(device, dir);
    assert_int_equal(runner_rebind(r, changed, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_non_null(strstr(err.text, "kda_fill_f32 was changed while it was timed"));
    runner_close(r);
    kernel_set_close(changed);
    kernel_set_close(same);
    kernel_set_close(first);
    device_close(device);
    case_list_release(&cases);
}

static void test_an_absent_kernel_is_no_result(void **data)
{
    static const char dir[] = "build/tests/bench-absent";
    struct benchmark_options opt = {.sides = 1, .hot = true, .kernels = {dir}};
    struct seen s;

    (void)data;
    write_set(dir, "extern \"C\" __global__ void other(float *dst) {}\n");
    run_case(&opt, CASE, &s);
    assert_int_equal(s.results, 0);
    if (!strstr(s.note, "not timed: SKIP: "))
        fail_msg("%s", s.note);
}

/* Who is at fault comes with the record: dims that no kernel can have, a kernel that is wrong, one
   that takes its process with it. */
static void test_causes_are_told_apart(void **data)
{
    static const char dir[] = "build/tests/bench-dies";
    struct benchmark_options opt = {.sides = 1, .hot = true};
    struct seen s;

    (void)data;
    run_case(&opt, "gdn_flag_clear words=2 at=5", &s);
    assert_int_equal(s.results, 1);
    assert_false(s.record[0].valid);
    assert_int_equal(s.cause[0], ERR_INPUT);
    run_case(&opt, CASE, &s);
    assert_true(s.record[0].valid);
    assert_int_equal(s.cause[0], ERR_NONE);
    opt.kernels[0] = "build/tests/bench-wrong"; /* of the test above */
    run_case(&opt, CASE, &s);
    assert_false(s.record[0].valid);
    assert_int_equal(s.cause[0], ERR_NONE);
    write_set(dir, "#include <signal.h>\n"
                   "extern \"C\" __global__ void kda_fill_f32(float *dst, unsigned int n, float "
                   "value) { raise(SIGKILL); }\n");
    opt.kernels[0] = dir;
    run_case(&opt, CASE, &s);
    assert_int_equal(s.cause[0], ERR_SYSTEM);
    if (!strstr(s.record[0].reason, "signal 9") ||
        !strstr(s.record[0].reason, "in phase: running the kernels"))
        fail_msg("%s", s.record[0].reason);
}

/* A golden that is damaged costs time and is told; where nothing can be stored nothing is tried. */
static void test_the_cache_is_spoken_of(void **data)
{
    static const char dir[] = "build/tests/bench-golden";
    struct benchmark_options opt = {.sides = 1, .hot = true, .golden_dir = dir};
    struct case_list cases;
    struct problem p;
    struct golden g;
    struct golden_source src = {.dir = dir};
    struct err err = ERR_INIT;
    struct seen s;
    char path[300];
    bool cached;
    double seconds;

    (void)data;
    case_list_init(&cases);
    assert_int_equal(dir_make(dir, &err), 0);
    assert_int_equal(case_line_expand(CASE, TIER_SMOKE, &cases, &err), 0);
    problem_init(&p, &cases.items[0]);
    assert_int_equal(p.tc.op->shape(&p, &err), 0);
    golden_path(dir, &p, path, sizeof path);
    unlink(path);
    assert_int_equal(golden_obtain(&p, &src, &g, &cached, &seconds, &err), 0);
    golden_release(&g);
    run_case(&opt, CASE, &s);
    assert_int_equal(s.warnings, 0);
    assert_int_equal(truncate(path, 20), 0);
    run_case(&opt, CASE, &s);
    assert_true(s.record[0].valid);
    assert_true(s.warnings > 0);
    if (!strstr(s.warning, path) || !strstr(s.warning, "computed anew"))
        fail_msg("%s", s.warning);
    unlink(path);
    opt.golden_dir = "/proc/none";
    opt.golden_read_only = true;
    run_case(&opt, SLOW_REFERENCE, &s);
    assert_int_equal(s.warnings, 0);
    opt.golden_read_only = false;
    run_case(&opt, SLOW_REFERENCE, &s);
    assert_true(s.warnings > 0);
    assert_non_null(strstr(s.warning, "used but not kept"));
    problem_release(&p);
    case_list_release(&cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_right_kernel_is_timed),
        cmocka_unit_test(test_two_sides_get_the_same_rounds),
        cmocka_unit_test(test_an_open_interval_gets_further_rounds),
        cmocka_unit_test(test_a_wrong_kernel_is_not),
        cmocka_unit_test(test_a_kernel_that_goes_wrong_while_timed_is_not_believed),
        cmocka_unit_test(test_damage_to_shared_buffers_is_charged_to_who_does_it),
        cmocka_unit_test(test_a_launch_that_fails_while_timed_is_no_time),
        cmocka_unit_test(test_another_load_must_be_the_same_code),
        cmocka_unit_test(test_an_absent_kernel_is_no_result),
        cmocka_unit_test(test_causes_are_told_apart),
        cmocka_unit_test(test_the_cache_is_spoken_of),
    };

    return cmocka_run_group_tests_name("benchmark", tests, NULL, NULL);
}
