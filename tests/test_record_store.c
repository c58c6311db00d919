/* Records: what is written is read back, and what is not whole is refused with file and line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/number.h"
#include "record/provenance.h"
#include "record/store.h"
#include "tests/scratch.h"

struct fixture {
    struct scratch scratch;
    char path[300];
    struct provenance prov;
    struct device_stamp device;
    struct record_set set;
    struct err err;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    char name[] = "some/folder/deltarig";
    char word[] = "verify";

    scratch_open(&f->scratch);
    scratch_path(&f->scratch, "sub/records.jsonl", f->path, sizeof f->path);
    assert_int_equal(provenance_collect(2, (char *[]){name, word, NULL}, &f->prov, &f->err), 0);
    f->device = (struct device_stamp){.spec = "cuda:0",
                                      .name = "Test \"GPU\"",
                                      .cc_major = 12,
                                      .cc_minor = 1,
                                      .sm_count = 48,
                                      .memory_bytes = 1ull << 37};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    records_release(&f->set);
    provenance_release(&f->prov);
    scratch_close(&f->scratch);
    free(f);
    return 0;
}

static struct store *open_store(struct fixture *f)
{
    struct store *s = NULL;

    if (store_open(f->path, &f->prov, &f->device, &s, &f->err) < 0)
        fail_msg("%s", f->err.text);
    return s;
}

static void put_verify(struct fixture *f, struct store *s, const char *text)
{
    struct verify_record *r = xcalloc(1, sizeof *r);

    snprintf(r->case_text, sizeof r->case_text, "%s", text);
    if (store_verify(s, r, &f->err) < 0)
        fail_msg("%s", f->err.text);
    free(r);
}

/* Reads the fixture's file, which must fail with ERR_INPUT and `want` in the text. */
static void refuse(struct fixture *f, const char *want)
{
    records_release(&f->set);
    if (records_read(f->path, &f->set, &f->err) == 0)
        fail_msg("read, but should be refused: %s", want);
    assert_int_equal(f->err.kind, ERR_INPUT);
    if (!strstr(f->err.text, want))
        fail_msg("\"%s\" does not say \"%s\"", f->err.text, want);
}

/* The whole file with the first `from` replaced by `to`. */
static void damage(struct fixture *f, const char *from, const char *to)
{
    struct text whole, bad;
    const char *at;

    text_init(&whole);
    text_init(&bad);
    assert_int_equal(file_read(f->path, 1 << 20, &whole, &f->err), 0);
    at = strstr(whole.data, from);
    assert_non_null(at);
    text_add_bytes(&bad, whole.data, (size_t)(at - whole.data));
    text_add(&bad, to);
    text_add(&bad, at + strlen(from));
    assert_int_equal(file_replace(f->path, bad.data, bad.len, &f->err), 0);
    text_release(&whole);
    text_release(&bad);
}

/* --- round trip ------------------------------------------------------------------------------- */

static void fill_verify(struct verify_record *r)
{
    *r = (struct verify_record){.case_text = "op a=1 seed=1", .op = "op", .tier = "smoke"};
    r->verdict = VERDICT_MISTRUST;
    snprintf(r->reason, sizeof r->reason, "tab\t quote\" back\\ bell\a bad\xff\xc3\xa9");
    r->checks_run = 1u << CHECK_GOLDEN | 1u << CHECK_IDENTITY;
    r->noutputs = 2;
    r->output[0] = (struct output_stat){.buffer = "output",
                                        .compared = 1u << 31,
                                        .max_error = INF64,
                                        .ratio_likely = 0.1,
                                        .ratio_worst = 1.0 / 3.0,
                                        .value = NAN64,
                                        .golden = -INF64};
    r->output[1] = (struct output_stat){.buffer = "state", .where = "state[head=1]"};
    r->nkernels = 1;
    r->kernel[0] = (struct kernel_stamp){.module = "m",
                                         .entry = "e",
                                         .registers = 255,
                                         .grid = {1, 2, 3},
                                         .dynamic_shared = 1ull << 40};
    r->device_s = 0.1 + 0.2;
    r->golden_cached = true;
}

static void verify_comes_back_bit_for_bit(void **state)
{
    struct fixture *f = *state;
    struct verify_record *r = xcalloc(1, sizeof *r);
    struct store *s = open_store(f);
    const struct verify_record *got;

    fill_verify(r);
    assert_int_equal(store_verify(s, r, &f->err), 0);
    store_close(s);
    if (records_read(f->path, &f->set, &f->err) < 0)
        fail_msg("%s", f->err.text);
    assert_int_equal(f->set.nverify, 1);
    got = &f->set.verify[0];
    assert_string_equal(got->reason, "tab\t quote\" back\\ bell\a bad\xef\xbf\xbd\xc3\xa9");
    assert_int_equal(got->verdict, VERDICT_MISTRUST);
    assert_int_equal(got->checks_run, r->checks_run);
    assert_int_equal(got->noutputs, 2);
    assert_true(got->output[0].max_error == INF64 && got->output[0].golden == -INF64);
    assert_true(isnan(got->output[0].value));
    assert_true(got->output[0].ratio_worst == 1.0 / 3.0);
    assert_true(got->output[0].compared == 1u << 31);
    assert_string_equal(got->output[1].where, "state[head=1]");
    assert_memory_equal(&got->kernel[0], &r->kernel[0], sizeof r->kernel[0]);
    assert_true(got->device_s == 0.1 + 0.2);
    assert_true(got->golden_cached);
    assert_memory_equal(&f->set.run[0].device, &f->device, sizeof f->device);
    assert_string_equal(f->set.run[0].prov.argv, "deltarig verify");
    free(r);
}

static void bench_keeps_every_sample(void **state)
{
    struct fixture *f = *state;
    struct bench_sample sample[3];
    struct bench_record *r = xcalloc(1, sizeof *r);
    struct store *s = open_store(f);
    const struct bench_record *got;

    for (unsigned i = 0; i < 3; i++)
        sample[i] = (struct bench_sample){.us = i == 2 ? NAN64 : 1.1 * (i + 1),
                                          .round = i,
                                          .at_s = 1.7e9 + 0.001 * i,
                                          .sm_clock_mhz = NAN64,
                                          .mem_clock_mhz = 3201,
                                          .temperature_c = NAN64,
                                          .power_w = NAN64,
                                          .energy_j = NAN64,
                                          .throttle = i,
                                          .flagged = i == 1};
    snprintf(r->case_text, sizeof r->case_text, "op a=1");
    r->temperature = BENCH_HOT;
    r->sample = sample;
    r->nsamples = 3;
    r->roof_us = NAN64;
    assert_int_equal(store_bench(s, r, &f->err), 0);
    r->nsamples = 0; /* a launch that failed has none */
    r->temperature = BENCH_COLD;
    assert_int_equal(store_bench(s, r, &f->err), 0);
    store_close(s);
    if (records_read(f->path, &f->set, &f->err) < 0)
        fail_msg("%s", f->err.text);
    assert_int_equal(f->set.nbench, 2);
    got = &f->set.bench[0];
    assert_int_equal(got->nsamples, 3);
    assert_true(got->sample[1].us == 2.2 && isnan(got->sample[2].us));
    assert_true(got->sample[2].at_s == sample[2].at_s && got->sample[2].throttle == 2);
    assert_true(got->sample[1].flagged && !got->sample[0].flagged);
    assert_true(isnan(got->sample[0].sm_clock_mhz) && isnan(got->roof_us));
    assert_int_equal(f->set.bench[1].nsamples, 0);
    free(r);
}

static void runs_are_told_apart(void **state)
{
    struct fixture *f = *state;
    struct ceiling_record ceiling = {.name = "dram_read", .unit = "GB/s", .value = 249};
    struct resources_record resources = {.module = "m", .entry = "e", .arch = "sm_121"};
    struct store *s = open_store(f);

    put_verify(f, s, "op a=1");
    assert_int_equal(store_ceiling(s, &ceiling, &f->err), 0);
    assert_int_equal(store_resources(s, &resources, &f->err), 0);
    resources.launch = 1; /* another launch of the same kernel is not a duplicate */
    assert_int_equal(store_resources(s, &resources, &f->err), 0);
    store_close(s);
    s = open_store(f);
    put_verify(f, s, "op a=1");
    store_close(s);
    if (records_read(f->path, &f->set, &f->err) < 0)
        fail_msg("%s", f->err.text);
    assert_int_equal(f->set.nruns, 2);
    assert_int_equal(f->set.verify_run[0], 0);
    assert_int_equal(f->set.verify_run[1], 1);
    assert_int_equal(f->set.nresources, 2);
    assert_true(f->set.ceiling[0].value == 249.0);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void write_two(struct fixture *f)
{
    struct store *s = open_store(f);

    put_verify(f, s, "op a=1");
    put_verify(f, s, "op a=2");
    store_close(s);
}

static void empty_and_absent_files_are_refused(void **state)
{
    struct fixture *f = *state;

    refuse(f, "cannot open");
    assert_int_equal(dir_make(f->path, &f->err), 0);
    refuse(f, "is a directory");
    rmdir(f->path);
    scratch_write(f->path, "");
    refuse(f, "records.jsonl:1: the file is empty");
    scratch_write(f->path, "\n");
    refuse(f, "records.jsonl:1: malformed");
}

static void unfinished_line_is_refused_and_mended(void **state)
{
    struct fixture *f = *state;
    struct store *s;

    write_two(f);
    assert_int_equal(file_append_sync(f->path, "{\"schema\":1,\"ty", 15, &f->err), 0);
    refuse(f, "records.jsonl:4: the last line is unfinished");
    s = open_store(f); /* the next run cuts it off */
    put_verify(f, s, "op a=3");
    store_close(s);
    records_release(&f->set);
    if (records_read(f->path, &f->set, &f->err) < 0)
        fail_msg("%s", f->err.text);
    assert_int_equal(f->set.nverify, 3);
}

static void foreign_files_are_not_appended_to(void **state)
{
    static const char *const texts[] = {"my notes\n", "my notes", "{\"schema\":1}\nmy notes"};
    struct fixture *f = *state;
    struct store *s;
    struct text t;

    text_init(&t);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char folder[300];

        assert_int_equal(dir_make(scratch_path(&f->scratch, "sub", folder, sizeof folder), &f->err),
                         0);
        scratch_write(f->path, texts[i]);
        assert_int_equal(store_open(f->path, &f->prov, &f->device, &s, &f->err), -1);
        assert_int_equal(f->err.kind, ERR_INPUT);
        text_clear(&t);
        assert_int_equal(file_read(f->path, 1000, &t, &f->err), 0);
        assert_string_equal(t.data, texts[i]);
    }
    text_release(&t);
}

static void a_second_writer_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store *first = open_store(f), *second = NULL;

    put_verify(f, first, "op a=1");
    assert_int_equal(store_open(f->path, &f->prov, &f->device, &second, &f->err), -1);
    assert_int_equal(f->err.kind, ERR_INPUT);
    assert_non_null(strstr(f->err.text, "another run is writing it"));
    assert_int_equal(store_discard(f->path, &f->err), -1);
    put_verify(f, first, "op a=2");
    store_close(first);
    assert_int_equal(records_read(f->path, &f->set, &f->err), 0);
    assert_int_equal(f->set.nruns, 1);
    assert_int_equal(f->set.nverify, 2);
    assert_int_equal(store_discard(f->path, &f->err), 0);
    assert_int_equal(store_discard(f->path, &f->err), 0); /* nothing there */
    store_close(open_store(f));
}

static void only_records_are_discarded(void **state)
{
    struct fixture *f = *state;
    char fifo[300], folder[300];

    assert_int_equal(dir_make(scratch_path(&f->scratch, "sub", folder, sizeof folder), &f->err), 0);
    scratch_write(f->path, "my notes\n");
    assert_int_equal(store_discard(f->path, &f->err), -1);
    assert_true(file_exists(f->path));
    scratch_path(&f->scratch, "pipe", fifo, sizeof fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(store_discard(fifo, &f->err), -1);
    assert_non_null(strstr(f->err.text, "is not a regular file"));
    assert_true(file_exists(fifo));
    assert_int_equal(unlink(fifo), 0);
}

static void assert_check(struct fixture *f, const char *path, const char *why)
{
    struct store *s;

    assert_int_equal(store_check(path, &f->err), -1);
    assert_int_equal(f->err.kind, ERR_INPUT);
    if (!strstr(f->err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", f->err.text, why);
    assert_int_equal(store_open(path, &f->prov, &f->device, &s, &f->err), -1); /* the two agree */
    assert_int_equal(f->err.kind, ERR_INPUT);
}

static void what_cannot_be_opened_is_known_before(void **state)
{
    struct fixture *f = *state;
    struct store *s;
    char path[300], target[300];

    assert_check(f, "/dev/null", "is not a regular file");
    assert_check(f, "/proc/none/records", "/proc/none: cannot make");
    assert_check(f, f->scratch.dir, "is a directory");
    assert_int_equal(store_check(f->path, &f->err), 0); /* in a folder that was not there */
    assert_false(file_exists(f->path));
    scratch_write(f->path, "my notes\n");
    assert_check(f, f->path, "holds something else than results");
    unlink(f->path);
    s = open_store(f);
    put_verify(f, s, "op a=1");
    assert_check(f, f->path, "another run is writing it");
    store_close(s);
    assert_int_equal(store_check(f->path, &f->err), 0);
    assert_int_equal(file_append_sync(f->path, "{\"schema\":1,\"ty", 15, &f->err), 0);
    assert_int_equal(store_check(f->path, &f->err), 0); /* a crash's line, which stays for now */
    refuse(f, "records.jsonl:3: the last line is unfinished");
    /* A link that leads to where a file can be made, and one that does not. */
    scratch_path(&f->scratch, "link", path, sizeof path);
    scratch_path(&f->scratch, "target", target, sizeof target);
    assert_int_equal(symlink("target", path), 0);
    assert_int_equal(store_check(path, &f->err), 0);
    assert_false(file_exists(target));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere/target", path), 0);
    assert_check(f, path, "cannot open");
}

static void duplicates_are_refused(void **state)
{
    struct fixture *f = *state;

    write_two(f);
    damage(f, "op a=2", "op a=1");
    refuse(f, "records.jsonl:3: the same case of the same run as line 2");
    damage(f, "op a=1", "op a=0");
    records_release(&f->set);
    assert_int_equal(records_read(f->path, &f->set, &f->err), 0);
    assert_int_equal(records_read(f->path, &f->set, &f->err), -1);
    assert_non_null(strstr(f->err.text, "was read before"));
}

static void other_schemas_are_refused_by_number(void **state)
{
    struct fixture *f = *state;

    write_two(f);
    damage(f, "\"schema\":1", "\"schema\":2");
    refuse(f, "records.jsonl:1: schema 2, this deltarig reads schema 1: use a newer deltarig");
    damage(f, "\"schema\":2", "\"schema\":0");
    refuse(f, "schema 0");
    damage(f, "\"schema\":0", "\"schema\":\"1\"");
    refuse(f, "\"schema\": a whole number");
}

static void malformed_values_are_refused_by_key(void **state)
{
    static const struct {
        const char *from, *to, *want;
    } cases[] = {
        {"\"verdict\":\"PASS\"", "\"verdict\":\"GREAT\"", ":2: key \"verdict\""},
        {"\"repeats\":0", "\"repeats\":-1", ":2: key \"repeats\""},
        {"\"repeats\":0", "\"repeats\":0.5", ":2: key \"repeats\""},
        {"\"repeats\":0", "\"repeats\":4294967296", ":2: key \"repeats\""},
        {"\"reference_s\":0", "\"reference_s\":\"fast\"", ":2: key \"reference_s\""},
        {"\"reference_s\":0", "\"reference_s\":1e999", ":2: malformed JSON"},
        {"\"golden_cached\":false", "\"golden_cached\":0", ":2: key \"golden_cached\""},
        {"\"checks_run\":[]", "\"checks_run\":[\"magic\"]", ":2: key \"checks_run\""},
        {"\"outputs\":[]", "\"outputs\":[{}]", ":2: outputs[0]: key \"buffer\" is missing"},
        {"\"outputs\":[]", "\"outputs\":7", ":2: key \"outputs\""},
        {"\"tier\":\"\",", "", ":2: key \"tier\" is missing"},
        {"\"tier\":\"\"", "\"tier\":\"much too long\"", ":2: key \"tier\": longer"},
        {"\"type\":\"verify\"", "\"type\":\"poem\"", ":2: key \"type\""},
        {"\"repeats\":0", "\"repeats\":0,\"repeats\":0", ":2: malformed JSON"},
        {"\"device\":{", "\"gadget\":{", ":1: key \"device\" is missing"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unlink(f->path);
        write_two(f);
        damage(f, cases[i].from, cases[i].to);
        refuse(f, cases[i].want);
    }
}

static void records_need_their_run(void **state)
{
    struct fixture *f = *state;

    write_two(f);
    damage(f, "\"run\":\"", "\"run\":\"0");
    refuse(f, "records.jsonl:2: run ");
}

static void sample_counts_must_agree(void **state)
{
    struct fixture *f = *state;
    struct bench_sample sample[2] = {{.us = 1.0}, {.us = 2.0}};
    struct bench_record *r = xcalloc(1, sizeof *r);
    struct store *s = open_store(f);

    r->sample = sample;
    r->nsamples = 2;
    assert_int_equal(store_bench(s, r, &f->err), 0);
    store_close(s);
    free(r);
    damage(f, "\"sample_count\":2", "\"sample_count\":4000000000");
    refuse(f, "records.jsonl:2: \"sample_count\" is 4000000000");
    damage(f, "\"sample_count\":4000000000", "\"sample_count\":2");
    damage(f, "\"us\":[1,2]", "\"us\":[1]");
    refuse(f, "records.jsonl:2: samples: key \"us\"");
    damage(f, "\"us\":[1]", "\"us\":[1,true]");
    refuse(f, "element 1: key \"us\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verify_comes_back_bit_for_bit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bench_keeps_every_sample, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_are_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(empty_and_absent_files_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unfinished_line_is_refused_and_mended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(foreign_files_are_not_appended_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_second_writer_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_records_are_discarded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_known_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(duplicates_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_schemas_are_refused_by_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(malformed_values_are_refused_by_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(records_need_their_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sample_counts_must_agree, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
