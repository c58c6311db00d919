/*
 * A line per case over the runs: the median relative to the case's first one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/labels.h"

/* More lines than this cannot be told apart; the tables have all. */
#define MAX_LINES 16

static double first_median(const struct history_series *s)
{
    for (size_t k = 0; k < s->count; k++)
        if (s->point[k].record->valid && s->point[k].record->median_us > 0.0)
            return s->point[k].record->median_us;
    return 0.0;
}

/* Position among the runs that appear in the history: they are in order of their start. */
static size_t run_position(const struct run_stamp *const *run, size_t nruns,
                           const struct run_stamp *r)
{
    size_t i = 0;

    while (i < nruns && run[i] != r)
        i++;
    return i;
}

struct axis {
    const struct run_stamp *run[200];
    size_t count;
};

/* All runs of the series, in order of their start. */
static void collect_runs(const struct history *h, struct axis *axis)
{
    axis->count = 0;
    for (size_t i = 0; i < h->count; i++)
        for (size_t k = 0; k < h->series[i].count; k++) {
            const struct run_stamp *r = h->series[i].point[k].run;
            size_t at = axis->count;

            if (run_position(axis->run, axis->count, r) < axis->count ||
                axis->count == sizeof axis->run / sizeof *axis->run)
                continue;
            while (at > 0 && strcmp(axis->run[at - 1]->prov.started, r->prov.started) > 0) {
                axis->run[at] = axis->run[at - 1];
                at--;
            }
            axis->run[at] = r;
            axis->count++;
        }
}

static void add_tics(const struct axis *axis, struct text *out)
{
    /* At most twenty labels. */
    size_t step = axis->count / 20 + 1;

    text_add(out, "set xtics rotate by -35 (");
    for (size_t i = 0; i < axis->count; i += step)
        text_addf(out, "%s\"%.10s %.7s\" %zu", i ? ", " : "", axis->run[i]->prov.started,
                  axis->run[i]->prov.git_commit, i + 1);
    text_add(out, ") font ',8'\n");
}

/* The change in percent; an interval that is open (too few samples) ends at the median. */
static double percent(double us, double median, double first)
{
    return 100.0 * ((isfinite(us) ? us : median) / first - 1.0);
}

static void add_block(const struct history_series *s, const struct axis *axis, size_t number,
                      struct text *out)
{
    double first = first_median(s);

    text_addf(out, "$series%zu << EOD\n", number);
    for (size_t k = 0; k < s->count; k++) {
        const struct bench_record *r = s->point[k].record;
        size_t at = run_position(axis->run, axis->count, s->point[k].run);

        if (r->valid && r->median_us > 0.0 && at < axis->count)
            text_addf(
                out, "%zu %.6g %.6g %.6g\n", at + 1, percent(r->median_us, r->median_us, first),
                percent(r->low_us, r->median_us, first), percent(r->high_us, r->median_us, first));
    }
    text_add(out, "EOD\n");
}

static size_t sample_count(const struct history_series *s)
{
    size_t n = 0;

    for (size_t k = 0; k < s->count; k++)
        n += s->point[k].record->nsamples;
    return n;
}

/* How far its medians lie apart, as a ratio; 0 when there are no two of them: no line. */
static double movement(const struct history_series *s)
{
    double least = INF64, most = 0.0;
    size_t valid = 0;

    for (size_t k = 0; k < s->count; k++) {
        const struct bench_record *r = s->point[k].record;

        if (!r->valid || !(r->median_us > 0.0))
            continue;
        valid++;
        least = fmin(least, r->median_us);
        most = fmax(most, r->median_us);
    }
    return valid > 1 ? most / least : 0.0;
}

struct candidate {
    size_t series;
    double movement;
};

static int by_movement(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;

    if (x->movement != y->movement)
        return x->movement < y->movement ? 1 : -1;
    return (x->series > y->series) - (x->series < y->series);
}

/* The series with a line, those that moved most first; free() them. */
static struct candidate *choose(const struct history *h, size_t *count)
{
    struct candidate *list = xcalloc(h->count ? h->count : 1, sizeof *list);

    *count = 0;
    for (size_t i = 0; i < h->count; i++) {
        struct candidate c = {i, movement(&h->series[i])};

        if (c.movement > 0.0)
            list[(*count)++] = c;
    }
    qsort(list, *count, sizeof *list, by_movement);
    return list;
}

static void add_name(const struct history *h, size_t i, struct text *out)
{
    const char **all = xcalloc(h->count, sizeof *all);
    struct text label;

    text_init(&label);
    for (size_t k = 0; k < h->count; k++)
        all[k] = h->series[k].case_text;
    label_case(all, h->count, i, 48, &label);
    escape_gnuplot(out, label.data);
    text_release(&label);
    free(all);
}

static void add_curve(const struct history *h, size_t i, size_t line, const struct axis *axis,
                      struct text *blocks, struct text *curves)
{
    static const char *const colours[] = {"#1b4f8a", "#c2571a", "#2e7d32", "#6a3d9a",
                                          "#000000", "#a02010", "#00707a", "#7a5c00"};
    const struct history_series *s = &h->series[i];

    add_block(s, axis, line, blocks);
    text_addf(curves,
              "%s$series%zu u 1:2:3:4 w yerrorlines lw 1.5 pt %zu dt %zu lc rgb '%s' title ",
              line > 1 ? ", " : "plot ", line, line, (line - 1) % 5 + 1,
              colours[(line - 1) % (sizeof colours / sizeof *colours)]);
    add_name(h, i, curves);
    text_addf(curves, ".\", %s (%zu runs, n=%zu)\"", temperature_name(s->temperature), s->count,
              sample_count(s));
}

bool figure_history(const struct history *h, struct plot *p)
{
    struct axis axis;
    size_t lines, drawn;
    struct candidate *list = choose(h, &lines);
    struct text curves;

    drawn = lines < MAX_LINES ? lines : MAX_LINES;
    if (drawn > 0) {
        collect_runs(h, &axis);
        text_init(&curves);
        plot_init(p, "history",
                  "History: median time relative to a case's first run, with 95% intervals", 1300,
                  600);
        snprintf(p->note, sizeof p->note,
                 "Runs of different days are shown, not judged: drift of the machine is in them. "
                 "%zu of %zu series, those that moved most; the tables have all.",
                 drawn, lines);
        for (size_t i = 0; i < drawn; i++)
            add_curve(h, list[i].series, i + 1, &axis, &p->script, &curves);
        add_tics(&axis, &p->script);
        text_addf(&p->script,
                  "set ylabel 'change of the median time [%%]'\nset xrange [0.5:%zu.5]\n"
                  "set key outside right top Left reverse font ',8'\nset bmargin 9\n",
                  axis.count);
        text_add_bytes(&p->script, curves.data, curves.len);
        text_add(&p->script, "\n");
        text_release(&curves);
    }
    free(list);
    return drawn > 0;
}
