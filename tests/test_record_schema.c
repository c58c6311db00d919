/* The schema's document names every key; provenance gives nothing local away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "record/provenance.h"
#include "record/schema.h"
#include "record/store.h"
#include "tests/scratch.h"

/* Keys that are not in a table, because they hold objects. */
static const char *const nested[] = {"schema",  "type",    "run",    "device",
                                     "outputs", "kernels", "samples"};

static void assert_documented(const char *readme, const char *key)
{
    char quoted[64];

    snprintf(quoted, sizeof quoted, "`%s`", key);
    if (!strstr(readme, quoted))
        fail_msg("results/README.md does not document %s", quoted);
}

/* The part of the document from one heading to the next "## ". */
static void section(const char *readme, const char *heading, struct text *out)
{
    const char *start = strstr(readme, heading);
    const char *end;

    if (!start) {
        fail_msg("results/README.md has no \"%s\"", heading);
        return;
    }
    end = strstr(start + 3, "\n## ");
    text_clear(out);
    text_add_bytes(out, start, end ? (size_t)(end - start) : strlen(start));
}

static void every_key_is_documented_where_it_belongs(void **state)
{
    const struct {
        const char *heading;
        const struct field *table;
    } tables[] = {
        {"## `run`", schema_provenance},      {"## `run`", schema_device},
        {"## `verify`", schema_verify},       {"## `verify`", schema_output},
        {"## `verify`", schema_kernel},       {"## `bench`", schema_bench},
        {"## `bench`", schema_sample},        {"## `ceiling`", schema_ceiling},
        {"## `resources`", schema_resources},
    };
    struct err err = ERR_INIT;
    struct text readme, part;

    (void)state;
    text_init(&readme);
    text_init(&part);
    if (file_read("results/README.md", 1 << 20, &readme, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        section(readme.data, tables[i].heading, &part);
        for (const struct field *f = tables[i].table; f->key; f++)
            assert_documented(part.data, f->key);
    }
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++)
        assert_documented(readme.data, nested[i]);
    text_release(&readme);
    text_release(&part);
}

/* Collects the keys of a written object, nested ones too, and holds them against the document. */
static void assert_all_documented(const char *readme, json_t *json)
{
    void *it;

    for (size_t i = 0; json_is_array(json) && i < json_array_size(json); i++)
        assert_all_documented(readme, json_array_get(json, i));
    if (!json_is_object(json))
        return;
    for (it = json_object_iter(json); it; it = json_object_iter_next(json, it)) {
        assert_documented(readme, json_object_iter_key(it));
        assert_all_documented(readme, json_object_iter_value(it));
    }
}

static void write_one_of_each(const char *path)
{
    struct provenance prov = {.argv = xstrdup("deltarig")};
    struct device_stamp device = {.spec = "cpu"};
    struct ceiling_record ceiling = {.name = "launch"};
    struct resources_record resources = {.arch = "sm_121"};
    struct bench_sample sample = {.us = 1};
    struct bench_record *bench = xcalloc(1, sizeof *bench);
    struct verify_record *verify = xcalloc(1, sizeof *verify);
    struct err err = ERR_INIT;
    struct store *s;

    bench->nsamples = bench->nkernels = verify->noutputs = verify->nkernels = 1;
    bench->sample = &sample;
    if (store_open(path, &prov, &device, &s, &err) < 0 || store_verify(s, verify, &err) < 0 ||
        store_bench(s, bench, &err) < 0 || store_ceiling(s, &ceiling, &err) < 0 ||
        store_resources(s, &resources, &err) < 0)
        fail_msg("%s", err.text);
    store_close(s);
    provenance_release(&prov);
    free(bench);
    free(verify);
}

static void every_written_key_is_documented(void **state)
{
    struct err err = ERR_INIT;
    struct scratch scratch;
    struct text readme, written;
    char path[300];
    char *save = NULL;
    unsigned lines = 0;

    (void)state;
    scratch_open(&scratch);
    text_init(&readme);
    text_init(&written);
    write_one_of_each(scratch_path(&scratch, "r.jsonl", path, sizeof path));
    assert_int_equal(file_read("results/README.md", 1 << 20, &readme, &err), 0);
    assert_int_equal(file_read(path, 1 << 20, &written, &err), 0);
    for (char *line = strtok_r(written.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *json = json_loads(line, 0, NULL);

        assert_non_null(json);
        assert_all_documented(readme.data, json);
        json_decref(json);
        lines++;
    }
    assert_int_equal(lines, 5);
    text_release(&readme);
    text_release(&written);
    scratch_close(&scratch);
}

/* --- provenance ------------------------------------------------------------------------------- */

static void absolute_paths_are_reduced(void **state)
{
    static const struct {
        const char *word, *want;
    } words[] = {
        {"verify", "verify"},
        {"--kernels=/a/b/mine", "--kernels=.../mine"},
        {"/a/b/mine/", ".../mine"},
        {"a=/x/y,/z:w", "a=.../y,.../z:w"},
        {"relative/path", "relative/path"},
        {"/", ".../"},
        {"op n=1 seed=2", "'op n=1 seed=2'"},
        {"", "''"},
    };
    char here[2048], below[2100], around[2100];
    struct text t;

    (void)state;
    text_init(&t);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        text_clear(&t);
        provenance_word(&t, words[i].word);
        assert_string_equal(t.data, words[i].want);
    }
    assert_non_null(getcwd(here, sizeof here));
    snprintf(below, sizeof below, "--out=%s/build/x", here);
    snprintf(around, sizeof around, "%s-other/x", here);
    text_clear(&t);
    provenance_word(&t, below);
    assert_string_equal(t.data, "--out=build/x");
    text_clear(&t);
    provenance_word(&t, around); /* shares the letters, not the folder */
    assert_string_equal(t.data, ".../x");
    text_clear(&t);
    provenance_word(&t, here);
    assert_string_equal(t.data, ".");
    text_release(&t);
}

static void provenance_knows_the_machine_but_not_its_name(void **state)
{
    char name[] = "/some/where/deltarig", word[] = "verify";
    char host[256] = "";
    struct err err = ERR_INIT;
    struct provenance p;

    (void)state;
    assert_int_equal(provenance_collect(2, (char *[]){name, word, NULL}, &p, &err), 0);
    assert_string_equal(p.argv, "deltarig verify");
    assert_true(p.host_cpu[0] && p.host_arch[0] && p.os[0] && p.compiler[0] && p.version[0]);
    assert_int_equal(strlen(p.started), strlen("2026-01-01T00:00:00Z"));
    assert_true(p.git_commit[0] == '\0' || strlen(p.git_commit) == 40);
    assert_null(strstr(p.compiler, " /"));
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    if (strlen(host) > 4)
        assert_null(strstr(p.os, host));
    provenance_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_documented_where_it_belongs),
        cmocka_unit_test(every_written_key_is_documented),
        cmocka_unit_test(absolute_paths_are_reduced),
        cmocka_unit_test(provenance_knows_the_machine_but_not_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
