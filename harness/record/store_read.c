/*
 * Reading records: strictly, since a comparison that drops a line it could not read reports a
 * smaller suite as if it were the whole.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/schema.h"
#include "record/store.h"

/* A limit against a file that was never meant to be read: 1 GiB is a million verdicts. */
#define MAX_FILE_BYTES ((size_t)1 << 30)

/* What a record is about, to find the same twice in one run. */
struct seen {
    struct hash key;
    size_t line;
};

struct reader {
    const char *path;
    struct record_set *set;
    struct seen *seen;
    size_t nseen;
};

static void remember(struct reader *rd, size_t line, const char *run, const char *what,
                     const char *detail)
{
    struct text key;

    text_init(&key);
    text_addf(&key, "%s\n%s\n%s", run, what, detail);
    rd->seen = xrealloc(rd->seen, rd->nseen + 1, sizeof *rd->seen);
    rd->seen[rd->nseen++] = (struct seen){hash_bytes(key.data, key.len), line};
    text_release(&key);
}

static int by_key_and_line(const void *a, const void *b)
{
    const struct seen *x = a;
    const struct seen *y = b;

    if (x->key.hi != y->key.hi)
        return x->key.hi < y->key.hi ? -1 : 1;
    if (x->key.lo != y->key.lo)
        return x->key.lo < y->key.lo ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int refuse_duplicates(struct reader *rd, struct err *err)
{
    if (rd->nseen > 1)
        qsort(rd->seen, rd->nseen, sizeof *rd->seen, by_key_and_line);
    for (size_t i = 1; i < rd->nseen; i++)
        if (hash_equal(rd->seen[i - 1].key, rd->seen[i].key))
            return err_set(err, ERR_INPUT,
                           "%s:%zu: the same case of the same run as line %zu; remove one",
                           rd->path, rd->seen[i].line, rd->seen[i - 1].line);
    return 0;
}

/* --- one record of each type ------------------------------------------------------------------ */

/* Appends a zeroed element of `size` bytes to an array of `count`, and `run` to the array
   beside it. */
static void *push(void **items, size_t **runs, size_t *count, size_t size, size_t run)
{
    char *grown = xrealloc(*items, *count + 1, size);

    *items = grown;
    *runs = xrealloc(*runs, *count + 1, sizeof **runs);
    (*runs)[*count] = run;
    memset(grown + *count * size, 0, size);
    return grown + (*count)++ * size;
}

static int read_objects(const json_t *json, const char *key, const struct field *table,
                        void *objects, size_t stride, size_t most, unsigned *count, struct err *err)
{
    const json_t *array = json_object_get(json, key);

    if (!json_is_array(array) || json_array_size(array) > most)
        return err_set(err, ERR_INPUT, "key \"%s\": an array of at most %zu objects is needed", key,
                       most);
    *count = (unsigned)json_array_size(array);
    for (size_t i = 0; i < *count; i++)
        if (codec_read(json_array_get(array, i), table, (char *)objects + i * stride, err) < 0)
            return err_context(err, "%s[%zu]", key, i);
    return 0;
}

static int read_run(struct reader *rd, const json_t *json, const char *id, struct err *err)
{
    struct record_set *set = rd->set;
    struct run_stamp *run;
    const json_t *device = json_object_get(json, "device");

    for (size_t i = 0; i < set->nruns; i++)
        if (strcmp(set->run[i].id, id) == 0)
            return err_set(err, ERR_INPUT, "run %s was read before; give each run once", id);
    set->run = xrealloc(set->run, set->nruns + 1, sizeof *set->run);
    run = &set->run[set->nruns++];
    *run = (struct run_stamp){.prov.argv = NULL};
    memcpy(run->id, id, strlen(id) + 1);
    if (codec_read(json, schema_provenance, &run->prov, err) < 0)
        return -1;
    if (!device)
        return err_set(err, ERR_INPUT, "key \"device\" is missing");
    if (codec_read(device, schema_device, &run->device, err) < 0)
        return err_context(err, "device");
    return 0;
}

static int read_verify(struct record_set *set, const json_t *json, size_t run, struct err *err)
{
    void *items = set->verify;
    struct verify_record *r = push(&items, &set->verify_run, &set->nverify, sizeof *r, run);

    set->verify = items;
    if (codec_read(json, schema_verify, r, err) < 0)
        return -1;
    if (read_objects(json, "outputs", schema_output, r->output, sizeof r->output[0],
                     RECORD_MAX_OUTPUTS, &r->noutputs, err) < 0)
        return -1;
    return read_objects(json, "kernels", schema_kernel, r->kernel, sizeof r->kernel[0],
                        RECORD_MAX_KERNELS, &r->nkernels, err);
}

static int read_bench(struct record_set *set, const json_t *json, size_t run, struct err *err)
{
    void *items = set->bench;
    struct bench_record *r = push(&items, &set->bench_run, &set->nbench, sizeof *r, run);
    const json_t *samples = json_object_get(json, "samples");

    set->bench = items;
    if (codec_read(json, schema_bench, r, err) < 0)
        return -1;
    if (!samples)
        return err_set(err, ERR_INPUT, "key \"samples\" is missing");
    /* The count is believed only once the columns have it: it decides an allocation. */
    if (json_array_size(json_object_get(samples, "round")) != r->nsamples)
        return err_set(err, ERR_INPUT, "\"sample_count\" is %u, \"samples\" holds another number",
                       r->nsamples);
    r->sample = xcalloc(r->nsamples, sizeof *r->sample);
    if (codec_read_columns(samples, schema_sample, r->sample, sizeof *r->sample, r->nsamples, err) <
        0)
        return err_context(err, "samples");
    return read_objects(json, "kernels", schema_kernel, r->kernel, sizeof r->kernel[0],
                        RECORD_MAX_KERNELS, &r->nkernels, err);
}

static int read_ceiling(struct record_set *set, const json_t *json, size_t run, struct err *err)
{
    void *items = set->ceiling;
    struct ceiling_record *r = push(&items, &set->ceiling_run, &set->nceilings, sizeof *r, run);

    set->ceiling = items;
    return codec_read(json, schema_ceiling, r, err);
}

static int read_resources(struct record_set *set, const json_t *json, size_t run, struct err *err)
{
    void *items = set->resources;
    struct resources_record *r =
        push(&items, &set->resources_run, &set->nresources, sizeof *r, run);

    set->resources = items;
    return codec_read(json, schema_resources, r, err);
}

/* --- lines ------------------------------------------------------------------------------------ */

static int run_index(const struct record_set *set, const char *id, size_t *out, struct err *err)
{
    for (size_t i = set->nruns; i-- > 0;)
        if (strcmp(set->run[i].id, id) == 0) {
            *out = i;
            return 0;
        }
    return err_set(err, ERR_INPUT, "run %s is not there: no earlier line of type \"run\" has it",
                   id);
}

static int read_record(struct reader *rd, const json_t *json, const char *type, const char *id,
                       size_t line, struct err *err)
{
    struct record_set *set = rd->set;
    char launch[400];
    size_t run = 0;

    if (strcmp(type, "run") == 0)
        return read_run(rd, json, id, err);
    if (run_index(set, id, &run, err) < 0)
        return -1;
    if (strcmp(type, "verify") == 0) {
        if (read_verify(set, json, run, err) < 0)
            return -1;
        remember(rd, line, id, "verify", set->verify[set->nverify - 1].case_text);
    } else if (strcmp(type, "bench") == 0) {
        if (read_bench(set, json, run, err) < 0)
            return -1;
        remember(rd, line, id, temperature_name(set->bench[set->nbench - 1].temperature),
                 set->bench[set->nbench - 1].case_text);
    } else if (strcmp(type, "ceiling") == 0) {
        if (read_ceiling(set, json, run, err) < 0)
            return -1;
        remember(rd, line, id, "ceiling", set->ceiling[set->nceilings - 1].name);
    } else if (strcmp(type, "resources") == 0) {
        const struct resources_record *r;

        if (read_resources(set, json, run, err) < 0)
            return -1;
        r = &set->resources[set->nresources - 1];
        snprintf(launch, sizeof launch, "%s %s %s %u", r->module, r->entry, r->arch, r->launch);
        remember(rd, line, id, launch, r->case_text);
    } else {
        return err_set(err, ERR_INPUT, "key \"type\": \"%s\" is not known", type);
    }
    return 0;
}

static int check_schema(const json_t *json, struct err *err)
{
    const json_t *schema = json_object_get(json, "schema");

    if (!json_is_integer(schema))
        return err_set(err, ERR_INPUT, "key \"schema\": a whole number is needed");
    if (json_integer_value(schema) != RECORD_SCHEMA)
        return err_set(err, ERR_INPUT, "schema %lld, this deltarig reads schema %d: %s",
                       (long long)json_integer_value(schema), RECORD_SCHEMA,
                       json_integer_value(schema) > RECORD_SCHEMA ? "use a newer deltarig"
                                                                  : "record again");
    return 0;
}

static int read_json(struct reader *rd, const json_t *json, size_t line, struct err *err)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *id = json_string_value(json_object_get(json, "run"));

    if (!json_is_object(json))
        return err_set(err, ERR_INPUT, "a JSON object is needed");
    if (check_schema(json, err) < 0)
        return -1;
    if (!type)
        return err_set(err, ERR_INPUT, "key \"type\": a text is needed");
    if (!id || !*id || strlen(id) >= sizeof rd->set->run->id)
        return err_set(err, ERR_INPUT, "key \"run\": an id of 1 to %zu characters is needed",
                       sizeof rd->set->run->id - 1);
    return read_record(rd, json, type, id, line, err);
}

static int read_line(struct reader *rd, const char *text, size_t n, size_t line, struct err *err)
{
    json_error_t why;
    json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    int rc;

    if (!json)
        return err_set(err, ERR_INPUT, "%s:%zu: malformed JSON at column %d: %s", rd->path, line,
                       why.column, why.text);
    rc = read_json(rd, json, line, err);
    json_decref(json);
    return rc < 0 ? err_context(err, "%s:%zu", rd->path, line) : 0;
}

static int read_lines(struct reader *rd, const struct text *all, struct err *err)
{
    const char *p = all->data;
    const char *end = all->data + all->len;

    if (all->len == 0)
        return err_set(err, ERR_INPUT, "%s:1: the file is empty, it has no run", rd->path);
    for (size_t line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));

        if (!newline)
            return err_set(
                err, ERR_INPUT,
                "%s:%zu: the last line is unfinished (no newline); a run was cut off while "
                "writing it: remove the line or append to the file once more",
                rd->path, line);
        if (read_line(rd, p, (size_t)(newline - p), line, err) < 0)
            return -1;
        p = newline + 1;
    }
    return refuse_duplicates(rd, err);
}

int records_read(const char *path, struct record_set *set, struct err *err)
{
    struct reader rd = {.path = path, .set = set};
    struct text all;
    int rc;

    text_init(&all);
    rc = file_read(path, MAX_FILE_BYTES, &all, err);
    if (rc == 0)
        rc = read_lines(&rd, &all, err);
    free(rd.seen);
    text_release(&all);
    return rc;
}

void records_release(struct record_set *set)
{
    for (size_t i = 0; i < set->nruns; i++)
        free(set->run[i].prov.argv);
    for (size_t i = 0; i < set->nbench; i++)
        free(set->bench[i].sample);
    free(set->run);
    free(set->verify);
    free(set->verify_run);
    free(set->bench);
    free(set->bench_run);
    free(set->ceiling);
    free(set->ceiling_run);
    free(set->resources);
    free(set->resources_run);
    *set = (struct record_set){.nruns = 0};
}
