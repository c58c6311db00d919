/*
 * Figures of scatter: all samples of each case; the effects of a comparison with their intervals.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/figures.h"
#include "report/summary.h"

#define MAX_ROWS      100
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

static unsigned add_strips(const struct device_group *g, bool flagged, struct text *out)
{
    unsigned row = 0;

    text_addf(out, "$%s << EOD\n", flagged ? "flagged" : "used");
    for (size_t i = 0; i < g->nbench && row < MAX_ROWS; i++)
        if (has_samples(g->bench[i]))
            add_samples(g->bench[i], ++row, flagged, out);
    text_add(out, "EOD\n");
    return row;
}

/* The 95% interval of the median as a box behind the samples. */
static void add_intervals(const struct device_group *g, struct text *out)
{
    unsigned row = 0;

    text_add(out, "$interval << EOD\n");
    for (size_t i = 0; i < g->nbench && row < MAX_ROWS; i++) {
        const struct bench_record *r = g->bench[i];

        if (!has_samples(r))
            continue;
        row++;
        if (isfinite(r->low_us) && isfinite(r->high_us))
            text_addf(out, "%.5g %.5g %u\n", 100.0 * (r->low_us / r->median_us - 1.0),
                      100.0 * (r->high_us / r->median_us - 1.0), row);
    }
    text_add(out, "EOD\n");
}

static void add_strip_tics(const struct device_group *g, struct text *out)
{
    unsigned row = 0;

    text_add(out, "set ytics (");
    for (size_t i = 0; i < g->nbench && row < MAX_ROWS; i++) {
        const struct bench_record *r = g->bench[i];
        char label[700];

        if (!has_samples(r))
            continue;
        text_addf(out, "%s\"%u  \".", row ? ", " : "", case_number(g, r));
        row++;
        snprintf(label, sizeof label, "%.500s", r->case_text);
        plot_case_label(out, label, 56);
        /* plot_case_label closes its quotes; gnuplot joins with the dot. */
        text_addf(out, ".\", %s, n=%u\" -%u", temperature_name(r->temperature), r->nsamples, row);
    }
    text_add(out, ") font ',8'\n");
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

bool figure_samples(const struct device_group *g, struct plot *p)
{
    struct text blocks;
    unsigned rows;
    char name[96];

    text_init(&blocks);
    rows = add_strips(g, false, &blocks);
    add_strips(g, true, &blocks);
    add_intervals(g, &blocks);
    if (rows > 0) {
        struct interval axis = axis_of(g);

        snprintf(name, sizeof name, "samples-%s", g->slug);
        plot_init(p, name,
                  g->device->emulated
                      ? "Every sample (emulated wall time), as deviation from the median"
                      : "Every sample, as deviation from the median of its case",
                  1400, MARGIN_PIXELS + ROW_PIXELS * rows);
        p->note =
            "n: samples. Within a strip time runs downwards. Box: 95% interval of the median. "
            "Crosses: flagged samples (throttled or at a low clock), not used. Points at the edge "
            "lie "
            "beyond it.";
        text_add_bytes(&p->script, blocks.data, blocks.len);
        add_strip_tics(g, &p->script);
        text_addf(&p->script,
                  "set xlabel 'deviation from the median [%%]'\nset yrange [-%u.8:-0.2]\n"
                  "set xrange [%.4g:%.4g]\nset grid noytics\nset style fill solid 0.25 noborder\n"
                  "clip(v) = v > %.4g ? %.4g : v < %.4g ? %.4g : v\n"
                  "set key outside right top vertical Left reverse\n",
                  rows, axis.low, axis.high, axis.high, axis.high, axis.low, axis.low);
        text_add(&p->script,
                 "plot $interval u 1:(-$3):1:2:(-$3-0.42):(-$3+0.42) w boxxyerror lc rgb '#888888' "
                 "title '95% interval of the median', "
                 "$used u (clip($1)):2 w p pt 7 ps 0.35 lc rgb '#1b4f8a' title 'sample', "
                 "$flagged u (clip($1)):2 w p pt 2 ps 0.7 lc rgb '#c2571a' title 'flagged'\n");
    }
    text_release(&blocks);
    return rows > 0;
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
    text_add(out, "set ytics (");
    for (size_t i = 0; i < rows; i++) {
        const struct timing_change *t = order[i];

        text_add(out, i ? ", " : "");
        plot_case_label(out, t->base->case_text, 52);
        text_addf(out, ".\", %s, %u+%u rounds, n=%u+%u\" -%zu",
                  temperature_name(t->base->temperature), t->base_rounds.count,
                  t->next_rounds.count, t->base_rounds.nsamples, t->next_rounds.nsamples, i + 1);
    }
    text_add(out, ") font ',8'\n");
}

bool figure_forest(const struct comparison *c, const struct regress_options *opt, struct plot *p)
{
    static const enum change shown[] = {CHANGE_SLOWER, CHANGE_FASTER, CHANGE_SAME, CHANGE_UNSURE};
    static const char *const look[] = {
        "pt 9 ps 1.3 lc rgb '#a02010'", "pt 11 ps 1.3 lc rgb '#1b4f8a'",
        "pt 7 ps 0.8 lc rgb '#555555'", "pt 6 ps 1.1 lc rgb '#000000'"};
    const struct timing_change **order = xcalloc(c->ntimings, sizeof *order);
    size_t rows = c->ntimings < MAX_ROWS ? c->ntimings : MAX_ROWS;
    double margin = 100.0 * opt->threshold;

    if (rows == 0) {
        free(order);
        return false;
    }
    comparison_order(c, order);
    plot_init(p, "regression", "Change of the time, new against base, with 95% intervals", 1400,
              MARGIN_PIXELS + ROW_PIXELS * (unsigned)rows);
    p->note =
        "Interval: bootstrap over rounds. Band: the threshold, changes within it are never called. "
        "Rows without a mark are INVALID.";
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        add_effects(order, rows, shown[i], &p->script);
    add_forest_tics(order, rows, &p->script);
    text_addf(&p->script,
              "set xlabel 'change of the median time [%%], right is slower'\n"
              "set yrange [-%zu.8:-0.2]\nset grid noytics\n"
              "set object 1 rectangle from -%.4g,graph 0 to %.4g,graph 1 fc rgb '#dddddd' fs solid "
              "noborder behind\nset arrow from 0,graph 0 to 0,graph 1 nohead ls 5 dt 1 lw 1\n"
              "set key outside right top vertical Left reverse\nplot ",
              rows, margin, margin);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        text_addf(&p->script, "%s$%s u 1:(-$2):3:4 w xerrorbars lw 1.5 %s title '%s (%zu)'",
                  i ? ", " : "", change_name(shown[i]), look[i], change_name(shown[i]),
                  comparison_count(c, shown[i]));
    text_add(&p->script, "\n");
    free(order);
    return true;
}
