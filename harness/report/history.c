#include "report/history.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

/* --- reading ---------------------------------------------------------------------------------- */

struct folder {
    const char *path;
    struct record_set *set;
    size_t files;
};

static int read_one(const char *name, void *ctx, struct err *err)
{
    struct folder *f = ctx;
    size_t n = strlen(name);
    struct text path;
    int rc;

    if (n < 6 || strcmp(name + n - 6, ".jsonl") != 0)
        return 0;
    text_init(&path);
    text_addf(&path, "%s/%s", f->path, name);
    rc = records_read(path.data, f->set, err);
    text_release(&path);
    f->files++;
    return rc;
}

int history_read(const char *folder, struct record_set *set, struct err *err)
{
    struct folder f = {folder, set, 0};

    if (dir_each(folder, read_one, &f, err) < 0)
        return -1;
    if (f.files == 0)
        return err_set(err, ERR_INPUT, "%s: holds no *.jsonl file", folder);
    return 0;
}

/* --- series ----------------------------------------------------------------------------------- */

static struct history_series *find(struct history *h, const struct bench_record *r,
                                   const struct device_stamp *device)
{
    for (size_t i = 0; i < h->count; i++) {
        struct history_series *s = &h->series[i];

        if (s->temperature == r->temperature && strcmp(s->case_text, r->case_text) == 0 &&
            strcmp(s->device->name, device->name) == 0)
            return s;
    }
    h->series = xrealloc(h->series, h->count + 1, sizeof *h->series);
    h->series[h->count] = (struct history_series){
        .case_text = r->case_text, .temperature = r->temperature, .device = device};
    return &h->series[h->count++];
}

/* ISO 8601 in UTC sorts as text; runs of the same second stay in file order. */
static int by_start(const void *a, const void *b)
{
    const struct history_point *x = a;
    const struct history_point *y = b;
    int order = strcmp(x->run->prov.started, y->run->prov.started);

    return order != 0 ? order : (x->record > y->record) - (x->record < y->record);
}

void history_make(const struct record_set *set, const char *pattern, struct history *out)
{
    *out = (struct history){.count = 0};
    for (size_t i = 0; i < set->nbench; i++) {
        const struct bench_record *r = &set->bench[i];
        const struct run_stamp *run = &set->run[set->bench_run[i]];
        struct history_series *s;

        if (pattern && !strstr(r->case_text, pattern) && fnmatch(pattern, r->case_text, 0) != 0)
            continue;
        s = find(out, r, &run->device);
        s->point = xrealloc(s->point, s->count + 1, sizeof *s->point);
        s->point[s->count++] = (struct history_point){run, r};
    }
    for (size_t i = 0; i < out->count; i++)
        qsort(out->series[i].point, out->series[i].count, sizeof(struct history_point), by_start);
}

void history_release(struct history *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->series[i].point);
    free(h->series);
    *h = (struct history){.count = 0};
}

/* --- view ------------------------------------------------------------------------------------- */

static void point_row(struct table *t, const struct history_point *p,
                      const struct bench_record *before)
{
    const struct bench_record *r = p->record;

    table_cell(t, "%s", p->run->prov.started);
    table_cell(t, "%.10s%s", p->run->prov.git_commit[0] ? p->run->prov.git_commit : "-",
               p->run->prov.git_dirty ? "+" : "");
    if (!r->valid || isnan(r->median_us)) {
        table_cell(t, "INVALID");
        table_cell(t, "-");
        table_cell(t, "-");
    } else {
        table_cell(t, "%.3f", r->median_us);
        table_cell(t, "%.3f .. %.3f", r->low_us, r->high_us);
        if (before)
            table_cell(t, "%+.2f%%", 100.0 * (r->median_us / before->median_us - 1.0));
        else
            table_cell(t, "-");
    }
    table_cell(t, "%u", r->nsamples);
    table_cell(t, "%s", r->valid ? "" : r->reason);
}

void history_view(enum view view, const struct history *h, struct text *out)
{
    static const struct column columns[] = {
        {"started", 'l'},     {"commit", 'l'},  {"median [us]", 'r'}, {"95% interval", 'r'},
        {"to the last", 'r'}, {"samples", 'r'}, {"note", 'l'}};

    for (size_t i = 0; i < h->count; i++) {
        const struct history_series *s = &h->series[i];
        const struct bench_record *before = NULL;
        char title[800];
        struct table t;

        snprintf(title, sizeof title, "%s (%s) on %s%s", s->case_text,
                 temperature_name(s->temperature), s->device->name,
                 s->device->emulated ? ", emulated wall time" : "");
        view_heading(view, title, out);
        table_init(&t, columns, sizeof columns / sizeof *columns);
        for (size_t k = 0; k < s->count; k++) {
            point_row(&t, &s->point[k], before);
            if (s->point[k].record->valid)
                before = s->point[k].record;
        }
        view_table(view, &t, out);
        table_release(&t);
    }
}
