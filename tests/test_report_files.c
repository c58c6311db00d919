/* The commands report, compare and merge on made-up records: files, exit codes, what is
   never drawn. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/cli.h"
#include "tests/emulated.h"
#include "tests/scratch.h"
#include "tests/synthetic.h"

struct fixture {
    struct scratch scratch;
    char base[300], next[300], cpu[300], out[300];
    struct text said; /* what the last command printed, both streams */
};

static void write_side(const char *path, const char *device, double start_s, uint64_t seed,
                       double slower)
{
    struct synthetic s;

    synthetic_open(&s, path, device, start_s, seed);
    if (!s.device.emulated)
        synthetic_put_ceiling(&s, "dram_read", "GB/s", 4100.0);
    for (int t = BENCH_COLD; t <= BENCH_HOT; t++) {
        struct bench_record *r = synthetic_bench(&s, "gdn_woa nk=16 batch=4 seed=1",
                                                 (enum temperature)t, 30.0 * (1.0 + slower));

        r->read_bytes = 4e7;
        r->write_bytes = 1e7;
        r->flops = 1e8;
        synthetic_put_bench(&s, r);
    }
    synthetic_put_verify(&s, synthetic_verify("gdn_woa nk=16 batch=4 seed=1", VERDICT_PASS));
    synthetic_put_verify(&s, synthetic_verify("gdn_fold na=<4> & \"more\"", VERDICT_FAIL));
    synthetic_close(&s);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    scratch_open(&f->scratch);
    scratch_path(&f->scratch, "base.jsonl", f->base, sizeof f->base);
    scratch_path(&f->scratch, "new.jsonl", f->next, sizeof f->next);
    scratch_path(&f->scratch, "cpu.jsonl", f->cpu, sizeof f->cpu);
    scratch_path(&f->scratch, "out", f->out, sizeof f->out);
    write_side(f->base, "NVIDIA H200", 1.77e9, 1, 0.0);
    write_side(f->next, "NVIDIA H200", 1.77e9 + 5.0, 2, 0.0);
    write_side(f->cpu, "Some CPU (emulated)", 1.77e9, 3, 0.0);
    text_init(&f->said);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    text_release(&f->said);
    scratch_close(&f->scratch);
    free(f);
    return 0;
}

/* Runs a command with the words given, NULL at the end, and keeps what it prints. */
static int run(struct fixture *f, int (*command)(int, char **), const char *name, ...)
{
    char *argv[16] = {(char *)(uintptr_t) "deltarig", (char *)(uintptr_t)name};
    char log[300];
    struct err err = ERR_INIT;
    va_list args;
    int argc = 2, rc, fd, saved[2];

    va_start(args, name);
    while ((argv[argc] = va_arg(args, char *)) != NULL)
        argc++;
    va_end(args);
    fd =
        open(scratch_path(&f->scratch, "log", log, sizeof log), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        saved[i] = dup(i + 1);
        dup2(fd, i + 1);
    }
    rc = command(argc, argv);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        dup2(saved[i], i + 1);
        close(saved[i]);
    }
    close(fd);
    text_clear(&f->said);
    assert_int_equal(file_read(log, 1 << 20, &f->said, &err), 0);
    return rc;
}

static void read_out(struct fixture *f, const char *name, struct text *out)
{
    struct err err = ERR_INIT;
    char path[400];

    snprintf(path, sizeof path, "%s/%s", f->out, name);
    text_clear(out);
    if (file_read(path, (size_t)1 << 24, out, &err) < 0)
        fail_msg("%s", err.text);
}

static bool out_exists(struct fixture *f, const char *name)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", f->out, name);
    return file_exists(path);
}

/* --- report ----------------------------------------------------------------------------------- */

static bool gnuplot_is_here(void)
{
    return system("gnuplot --version >/dev/null 2>&1") == 0;
}

static void report_writes_a_self_contained_page(void **state)
{
    struct fixture *f = *state;
    struct text page;

    if (!gnuplot_is_here())
        skip();
    text_init(&page);
    assert_int_equal(run(f, cmd_report, "report", f->next, f->cpu, "--out", f->out, NULL),
                     EXIT_PASS);
    read_out(f, "report.html", &page);
    assert_non_null(strstr(page.data, "<svg"));
    assert_non_null(strstr(page.data, "gdn_fold na=&#60;4&#62; &#38; &#34;more&#34;"));
    assert_null(strstr(page.data, "<script"));
    assert_null(strstr(page.data, "<img"));
    assert_null(strstr(page.data, "src="));
    assert_null(strstr(page.data, "@import"));
    assert_null(strstr(page.data, "DOCTYPE svg"));
    for (const char *p = page.data; (p = strstr(p, "http")) != NULL; p += 4)
        assert_memory_equal(p, "http://www.w3.org/", 18); /* the names of SVG, nothing to fetch */
    assert_true(out_exists(f, "roofline-nvidia-h200.png"));
    assert_true(out_exists(f, "roofline-nvidia-h200.svg"));
    assert_true(out_exists(f, "bandwidth-nvidia-h200.gp"));
    assert_true(out_exists(f, "report.md") && out_exists(f, "junit.xml"));
    text_release(&page);
}

static void emulated_times_stay_off_gpu_figures(void **state)
{
    struct fixture *f = *state;
    struct text t;

    text_init(&t);
    assert_int_equal(run(f, cmd_report, "report", f->cpu, "--out", f->out, NULL), EXIT_PASS);
    assert_false(out_exists(f, "roofline-cpu.gp"));
    assert_false(out_exists(f, "bandwidth-cpu.gp"));
    read_out(f, "report.txt", &t);
    assert_non_null(strstr(t.data, "Emulated wall times"));
    assert_null(strstr(t.data, "GB/s"));
    if (gnuplot_is_here()) {
        read_out(f, "emulated-cpu.gp", &t);
        assert_non_null(strstr(t.data, "EMULATION"));
    }
    text_release(&t);
}

static void report_without_gnuplot_says_so(void **state)
{
    struct fixture *f = *state;
    char *path;
    struct text page;

    if (emulated()) /* where a missing program is not noticed */
        skip();
    path = xstrdup(getenv("PATH"));
    text_init(&page);
    setenv("PATH", f->scratch.dir, 1);
    assert_int_equal(run(f, cmd_report, "report", f->next, "--out", f->out, "--quiet", NULL),
                     EXIT_PASS);
    setenv("PATH", path, 1);
    assert_non_null(strstr(f->said.data, "gnuplot is not installed"));
    read_out(f, "report.html", &page);
    assert_null(strstr(page.data, "<figure"));
    assert_non_null(strstr(page.data, "</html>"));
    text_release(&page);
    free(path);
}

static void report_refuses_bad_input(void **state)
{
    struct fixture *f = *state;
    char empty[300];

    assert_int_equal(run(f, cmd_report, "report", NULL), EXIT_INPUT);
    assert_int_equal(run(f, cmd_report, "report", "no/such.jsonl", "--out", f->out, NULL),
                     EXIT_INPUT);
    scratch_write(scratch_path(&f->scratch, "empty.jsonl", empty, sizeof empty), "");
    assert_int_equal(run(f, cmd_report, "report", empty, "--out", f->out, NULL), EXIT_INPUT);
    assert_non_null(strstr(f->said.data, "empty.jsonl:1: "));
    assert_int_equal(run(f, cmd_report, "report", f->next, f->next, "--out", f->out, NULL),
                     EXIT_INPUT);
}

/* --- compare ---------------------------------------------------------------------------------- */

static void compare_exits_by_what_it_found(void **state)
{
    struct fixture *f = *state;
    char slow[300], runs[300], markdown[300];
    struct synthetic s;

    assert_int_equal(run(f, cmd_compare, "compare", f->base, f->next, NULL), EXIT_PASS);
    write_side(scratch_path(&f->scratch, "slow.jsonl", slow, sizeof slow), "NVIDIA H200",
               1.77e9 + 5.0, 4, 0.03);
    scratch_path(&f->scratch, "c.md", markdown, sizeof markdown);
    assert_int_equal(run(f, cmd_compare, "compare", f->base, slow, "--markdown", markdown, NULL),
                     EXIT_FAIL);
    assert_non_null(strstr(f->said.data, "SLOWER"));
    assert_true(file_exists(markdown));
    assert_int_equal(run(f, cmd_compare, "compare", f->base, slow, "--threshold", "5", NULL),
                     EXIT_PASS);
    assert_int_equal(run(f, cmd_compare, "compare", slow, f->base, NULL), EXIT_PASS);
    assert_non_null(strstr(f->said.data, "FASTER"));
    assert_int_equal(run(f, cmd_compare, "compare", f->base, f->cpu, NULL), EXIT_INPUT);
    synthetic_open(&s, scratch_path(&f->scratch, "runs.jsonl", runs, sizeof runs), "NVIDIA H200", 0,
                   5);
    synthetic_close(&s);
    assert_int_equal(run(f, cmd_compare, "compare", runs, runs, NULL), EXIT_NOTHING);
}

static void compare_refuses_bad_input(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run(f, cmd_compare, "compare", f->base, NULL), EXIT_INPUT);
    assert_int_equal(run(f, cmd_compare, "compare", NULL), EXIT_INPUT);
    assert_int_equal(run(f, cmd_compare, "compare", f->base, "absent.jsonl", NULL), EXIT_INPUT);
    assert_int_equal(run(f, cmd_compare, "compare", f->base, f->next, "--threshold", "nan", NULL),
                     EXIT_INPUT);
    assert_int_equal(run(f, cmd_compare, "compare", f->base, f->next, "--threshold", "-1", NULL),
                     EXIT_INPUT);
    assert_int_equal(run(f, cmd_compare, "compare", f->base, f->next, "--fdr", "0", NULL),
                     EXIT_INPUT);
    assert_int_equal(run(f, cmd_compare, "compare", "--help", NULL), EXIT_PASS);
}

static void compare_prints_json(void **state)
{
    struct fixture *f = *state;
    json_t *json;

    assert_int_equal(run(f, cmd_compare, "compare", f->base, f->next, "--json", NULL), EXIT_PASS);
    json = json_loads(f->said.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "timings")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "worse")), 0);
    json_decref(json);
}

static void history_follows_a_case(void **state)
{
    struct fixture *f = *state;
    char folder[300];

    remove(f->cpu);
    assert_int_equal(run(f, cmd_compare, "compare", "--history", f->scratch.dir, NULL), EXIT_PASS);
    assert_non_null(strstr(f->said.data, "gdn_woa nk=16 batch=4 seed=1 (cold) on NVIDIA H200"));
    assert_non_null(strstr(f->said.data, "2026-03-02T12:00:00Z"));
    assert_non_null(strstr(f->said.data, "2026-03-03T12:00:00Z"));
    assert_int_equal(
        run(f, cmd_compare, "compare", "--history", f->scratch.dir, "--case", "nothing", NULL),
        EXIT_NOTHING);
    mkdir(scratch_path(&f->scratch, "none", folder, sizeof folder), 0700);
    assert_int_equal(run(f, cmd_compare, "compare", "--history", folder, NULL), EXIT_INPUT);
}

/* --- merge ------------------------------------------------------------------------------------ */

static void merge_joins_shards(void **state)
{
    struct fixture *f = *state;
    struct record_set set = {.nruns = 0};
    struct err err = ERR_INIT;
    char all[300];

    scratch_path(&f->scratch, "all.jsonl", all, sizeof all);
    assert_int_equal(run(f, cmd_merge, "merge", f->base, f->next, "--out", all, NULL), EXIT_PASS);
    assert_int_equal(records_read(all, &set, &err), 0);
    assert_int_equal(set.nruns, 2);
    assert_int_equal(set.nbench, 4);
    records_release(&set);
    assert_int_equal(run(f, cmd_merge, "merge", all, f->base, "--out", all, NULL), EXIT_INPUT);
    assert_non_null(strstr(f->said.data, "was read before"));
    assert_int_equal(records_read(all, &set, &err), 0); /* left as it was */
    records_release(&set);
    assert_int_equal(run(f, cmd_merge, "merge", f->base, NULL), EXIT_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(report_writes_a_self_contained_page),
        TEST(emulated_times_stay_off_gpu_figures),
        TEST(report_without_gnuplot_says_so),
        TEST(report_refuses_bad_input),
        TEST(compare_exits_by_what_it_found),
        TEST(compare_refuses_bad_input),
        TEST(compare_prints_json),
        TEST(history_follows_a_case),
        TEST(merge_joins_shards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
