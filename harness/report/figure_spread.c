/*
 * Figures of scatter: all samples of each case; the effects of a comparison with their intervals.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/labels.h"
#include "report/summary.h"

#define MAX_ROWS      60 /* of one figure */
#define ROW_PIXELS    20
#define MARGIN_PIXELS 150

/* --- samples ---------------------------------------------------------------------------------- */

static bool has_samples(const struct bench_record *r)
{
    return r->nsamples > 0 && r->median_us > 0.0 && isfinite(r->median_us);
}

/* Deviation from the median in percent; beyond the axis it is drawn at its end. */
static void add_samples(const struct bench_record *r, unsigned row, bool flagged, struct text *out)
{
    for (unsigned i = 0; i < r->nsamples; i++) {
        const struct bench_sample *s = &r->sample[i];

        if (s->flagged != flagged || !isfinite(s->us))
            continue;
        /* Samples of one round share a height within the row's strip, rounds rise. */
        text_addf(out, "%.5g %.3f\n", 100.0 * (s->us / r->median_us - 1.0),
                  -(double)row + 0.35 - 0.7 * (double)i / (double)r->nsamples);
    }
}

/* The records of one part, at most MAX_ROWS of those with samples. */
struct strips {
    const struct device_group *g;
    const struct bench_record **row;
    unsigned rows, parts;
};

/* Divides the records evenly; false when there is no such part. */
static bool choose_strips(const struct device_group *g, unsigned part, struct strips *s)
{
    unsigned all = 0, each;

    *s = (struct strips){.g = g, .row = xcalloc(g->nbench ? g->nbench : 1, sizeof *s->row)};
    for (size_t i = 0; i < g->nbench; i++)
        if (has_samples(g->bench[i]))
            s->row[all++] = g->bench[i];
    s->parts = (all + MAX_ROWS - 1) / MAX_ROWS;
    if (part >= s->parts)
        return false;
    each = (all + s->parts - 1) / s->parts;
    s->rows = all - part * each < each ? all - part * each : each;
    memmove(s->row, s->row + part * each, s->rows * sizeof *s->row);
    return true;
}

static void add_strips(const struct strips *s, bool flagged, struct text *out)
{
    text_addf(out, "$%s << EOD\n", flagged ? "flagged" : "used");
    for (unsigned i = 0; i < s->rows; i++)
        add_samples(s->row[i], i + 1, flagged, out);
    text_add(out, "EOD\n");
}

/* The 95% interval of the median as a box behind the samples. */
static void add_intervals(const struct strips *s, struct text *out)
{
    text_add(out, "$interval << EOD\n");
    for (unsigned i = 0; i < s->rows; i++) {
        const struct bench_record *r = s->row[i];

        if (isfinite(r->low_us) && isfinite(r->high_us))
            text_addf(out, "%.5g %.5g %u\n", 100.0 * (r->low_us / r->median_us - 1.0),
                      100.0 * (r->high_us / r->median_us - 1.0), i + 1);
    }
    text_add(out, "EOD\n");
}

static void add_strip_tics(const struct strips *s, struct text *out)
{
    text_add(out, "set ytics (");
    for (unsigned i = 0; i < s->rows; i++) {
        const struct bench_record *r = s->row[i];

        text_addf(out, "%s\"%u  \".", i ? ", " : "", case_number(s->g, r));
        label_bench(s->g, r, 56, out);
        /* The label closes its quotes; gnuplot joins with the dot. */
        text_addf(out, ".\", %s, ", temperature_name(r->temperature));
        text_addf(out, r->median_us < 1000.0 ? "%.4g us" : "%.0f us", r->median_us);
        text_addf(out, ", n=%u\" -%u", r->nsamples, i + 1);
    }
    text_add(out, ") font ',9'\n");
}

/* The axis in percent: twice the 95% quantile of the deviations, at least half a percent; to
   the left no further than the fastest sample. What lies beyond is drawn at its end. */
static struct interval axis_of(const struct device_group *g)
{
    double *deviation = NULL;
    size_t n = 0;
    double fastest = 0.0;
    double axis;

    for (size_t i = 0; i < g->nbench; i++) {
        const struct bench_record *r = g->bench[i];

        for (unsigned k = 0; has_samples(r) && k < r->nsamples; k++) {
            double d = 100.0 * (r->sample[k].us / r->median_us - 1.0);

            if (!isfinite(d))
                continue;
            deviation = xrealloc(deviation, n + 1, sizeof *deviation);
            deviation[n++] = fabs(d);
            fastest = d < fastest ? d : fastest;
        }
    }
    axis = n ? fmax(0.5, 2.0 * stats_quantile(deviation, n, 0.95)) : 0.5;
    free(deviation);
    return (struct interval){fmax(-axis, fmin(1.2 * fastest, -0.5)), axis};
}

static void draw_strips(const struct strips *s, struct text *out)
{
    struct interval axis = axis_of(s->g);

    add_strips(s, false, out);
    add_strips(s, true, out);
    add_intervals(s, out);
    add_strip_tics(s, out);
    text_addf(out,
              "set xlabel 'deviation from the median [%%]'\nset yrange [-%u.8:-0.2]\n"
              "set xrange [%.4g:%.4g]\nset grid noytics\n"
              "clip(v) = v > %.4g ? %.4g : v < %.4g ? %.4g : v\n"
              "set key above center horizontal Left reverse\n",
              s->rows, axis.low, axis.high, axis.high, axis.high, axis.low, axis.low);
    text_add(out, "plot $used u (clip($1)):2 w p pt 7 ps 0.35 lc rgb '#1b4f8a' title 'sample', "
                  "$flagged u (clip($1)):2 w p pt 2 ps 0.7 lc rgb '#c2571a' title 'flagged', "
                  "$interval u 1:(-$3):1:2:(-$3-0.42):(-$3+0.42) w boxxyerror fs empty lc rgb "
                  "'#000000' lw 1.2 title '95% interval of the median'\n");
}

bool figure_samples(const struct device_group *g, unsigned part, struct plot *p)
{
    struct strips s;
    char name[96];
    bool there = choose_strips(g, part, &s);

    if (there) {
        snprintf(name, sizeof name, "samples-%s", g->slug);
        plot_init(p, name,
                  g->device->emulated
                      ? "Every sample (emulated wall time), as deviation from the median"
                      : "Every sample, as deviation from the median of its case",
                  1300, MARGIN_PIXELS + ROW_PIXELS * s.rows);
        plot_part(p, part, s.parts);
        snprintf(
            p->note, sizeof p->note,
            "n: samples. Within a strip time runs downwards. Box: 95%% interval of the median. "
            "Crosses: flagged samples (throttled or at a low clock), not used. Points at the edge "
            "lie beyond it.");
        draw_strips(&s, &p->script);
    }
    free(s.row);
    return there;
}

/* --- forest ----------------------------------------------------------------------------------- */

static void add_effects(const struct timing_change *const *order, size_t rows, enum change change,
                        struct text *out)
{
    text_addf(out, "$%s << EOD\n", change_name(change));
    for (size_t i = 0; i < rows; i++) {
        const struct regress_result *r = &order[i]->result;

        if (r->change == change && isfinite(r->effect))
            text_addf(out, "%.5g %zu %.5g %.5g\n", 100.0 * r->effect, i + 1,
                      100.0 * r->interval.low, 100.0 * r->interval.high);
    }
    text_add(out, "EOD\n");
}

static void add_forest_tics(const struct timing_change *const *order, size_t rows, struct text *out)
{
    const char **all = xcalloc(rows ? rows : 1, sizeof *all);

    for (size_t i = 0; i < rows; i++)
        all[i] = order[i]->base->case_text;
    text_add(out, "set ytics (");
    for (size_t i = 0; i < rows; i++) {
        const struct timing_change *t = order[i];
        struct text label;

        text_init(&label);
        label_case(all, rows, i, 52, &label);
        text_add(out, i ? ", " : "");
        escape_gnuplot(out, label.data);
        text_release(&label);
        text_addf(out, ".\", %s, %u+%u rounds, n=%u+%u\" -%zu",
                  temperature_name(t->base->temperature), t->base_rounds.count,
                  t->next_rounds.count, t->base_rounds.nsamples, t->next_rounds.nsamples, i + 1);
    }
    text_add(out, ") font ',9'\n");
    free(all);
}

static void draw_forest(const struct comparison *c, const struct timing_change *const *order,
                        size_t rows, double margin, struct text *out)
{
    static const enum change shown[] = {CHANGE_SLOWER, CHANGE_FASTER, CHANGE_SAME, CHANGE_UNSURE};
    static const char *const look[] = {
        "pt 9 ps 1.3 lc rgb '#a02010'", "pt 11 ps 1.3 lc rgb '#1b4f8a'",
        "pt 7 ps 0.8 lc rgb '#555555'", "pt 6 ps 1.1 lc rgb '#000000'"};

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        add_effects(order, rows, shown[i], out);
    add_forest_tics(order, rows, out);
    text_addf(out,
              "set xlabel 'change of the median time [%%], right is slower'\n"
              "set yrange [-%zu.8:-0.2]\nset grid noytics\n"
              "set object 1 rectangle from -%.4g,graph 0 to %.4g,graph 1 fc rgb '#dddddd' fs solid "
              "noborder behind\nset arrow from 0,graph 0 to 0,graph 1 nohead ls 5 dt 1 lw 1\n"
              "set key above center horizontal Left reverse\nplot ",
              rows, margin, margin);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        text_addf(out, "%s$%s u 1:(-$2):3:4 w xerrorbars lw 1.5 %s title '%s (%zu)'", i ? ", " : "",
                  change_name(shown[i]), look[i], change_name(shown[i]),
                  comparison_count(c, shown[i]));
    text_add(out, "\n");
}

bool figure_forest(const struct comparison *c, const struct regress_options *opt, unsigned part,
                   struct plot *p)
{
    size_t parts = (c->ntimings + MAX_ROWS - 1) / MAX_ROWS, each, rows;
    const struct timing_change **order;

    if (part >= parts)
        return false;
    each = (c->ntimings + parts - 1) / parts;
    rows = c->ntimings - part * each < each ? c->ntimings - part * each : each;
    order = xcalloc(c->ntimings, sizeof *order);
    comparison_order(c, order);
    plot_init(p, "regression", "Change of the time, new against base, with 95% intervals", 1300,
              MARGIN_PIXELS + ROW_PIXELS * (unsigned)rows);
    plot_part(p, part, (unsigned)parts);
    snprintf(p->note, sizeof p->note,
             "Interval: bootstrap over rounds. Band: the threshold, changes within it are never "
             "called. Rows without a mark are INVALID. Counts: of all parts.");
    draw_forest(c, order + part * each, rows, 100.0 * opt->threshold, &p->script);
    free(order);
    return true;
}
