/*
 * A line per case over the runs: the median relative to the case's first one.
 */
#include <math.h>
#include <string.h>

#include "report/figures.h"

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

/* A line worth drawing has two points. */
static bool drawable(const struct history_series *s)
{
    size_t valid = 0;

    for (size_t k = 0; k < s->count; k++)
        valid += s->point[k].record->valid && s->point[k].record->median_us > 0.0;
    return valid > 1;
}

bool figure_history(const struct history *h, struct plot *p)
{
    static const char *const colours[] = {"#1b4f8a", "#c2571a", "#2e7d32", "#6a3d9a",
                                          "#000000", "#a02010", "#00707a", "#7a5c00"};
    struct axis axis;
    size_t lines = 0;
    struct text curves;

    collect_runs(h, &axis);
    text_init(&curves);
    for (size_t i = 0; i < h->count && lines < MAX_LINES; i++) {
        const struct history_series *s = &h->series[i];

        if (!drawable(s))
            continue;
        if (lines++ == 0)
            plot_init(p, "history",
                      "History: median time relative to a case's first run, with 95% intervals",
                      1300, 560);
        add_block(s, &axis, lines, &p->script);
        text_addf(&curves,
                  "%s$series%zu u 1:2:3:4 w yerrorlines lw 1.5 pt %zu dt %zu lc rgb '%s' title ",
                  lines > 1 ? ", " : "plot ", lines, lines, (lines - 1) % 5 + 1,
                  colours[(lines - 1) % (sizeof colours / sizeof *colours)]);
        plot_case_label(&curves, s->case_text, 48);
        text_addf(&curves, ".\", %s (%zu runs, n=%zu)\"", temperature_name(s->temperature),
                  s->count, sample_count(s));
    }
    if (lines > 0) {
        p->note = "Runs of different days are shown, not judged: drift of the machine is in them.";
        add_tics(&axis, &p->script);
        text_addf(&p->script,
                  "set ylabel 'change of the median time [%%]'\nset xrange [0.5:%zu.5]\n"
                  "set key outside right top Left reverse font ',8'\nset bmargin 8\n",
                  axis.count);
        text_add_bytes(&p->script, curves.data, curves.len);
        text_add(&p->script, "\n");
    }
    text_release(&curves);
    return lines > 0;
}
