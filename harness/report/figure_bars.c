/*
 * Bars per case: achieved bandwidth of a GPU, wall time of the emulation.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/figures.h"
#include "report/labels.h"
#include "report/summary.h"

#define MAX_ROWS      40 /* of one part */
#define ROW_PIXELS    36 /* two bars and their labels */
#define MARGIN_PIXELS 150
#define LABEL_SHARE   1.75 /* of the longest bar: it and its label */

struct bars {
    const struct device_group *g;
    double (*length)(const struct bench_record *r); /* NAN: no bar */
    const char *unit;
    unsigned parts, first, last; /* case numbers of this part */
    double longest;              /* of all parts, so that they can be compared */
};

static double gigabytes_per_second(const struct bench_record *r)
{
    return 1e-3 * (r->read_bytes + r->write_bytes) / r->median_us; /* byte/us = 1e-3 GB/s */
}

static double milliseconds(const struct bench_record *r)
{
    return 1e-3 * r->median_us;
}

static bool has_bar(const struct bars *b, const struct bench_record *r)
{
    double v = r->valid ? b->length(r) : 0.0;

    return v > 0.0 && isfinite(v);
}

/* Divides the cases evenly; false when there is no such part or nothing to draw at all. */
static bool choose_rows(struct bars *b, unsigned part)
{
    unsigned cases = b->g->nbench ? case_number(b->g, b->g->bench[b->g->nbench - 1]) : 0;
    unsigned rows;

    for (size_t i = 0; i < b->g->nbench; i++)
        if (has_bar(b, b->g->bench[i]))
            b->longest = fmax(b->longest, b->length(b->g->bench[i]));
    b->parts = (cases + MAX_ROWS - 1) / MAX_ROWS;
    if (!(b->longest > 0.0) || part >= b->parts)
        return false;
    rows = (cases + b->parts - 1) / b->parts;
    b->first = part * rows + 1;
    b->last = b->first + rows - 1 < cases ? b->first + rows - 1 : cases;
    return true;
}

static void add_bar(const struct bars *b, const struct bench_record *r, struct text *out)
{
    unsigned row = case_number(b->g, r) - b->first + 1;

    if (!has_bar(b, r)) {
        text_addf(out, "%u 0 \"%s\"\n", row, r->valid ? "no compulsory traffic" : "INVALID");
        return;
    }
    text_addf(out, "%u %.6g \"%.4g %s", row, b->length(r), b->length(r), b->unit);
    if (!b->g->device->emulated)
        text_addf(out, r->median_us < 1000.0 ? ", %.4g us" : ", %.0f us", r->median_us);
    if (r->roof_percent < 0.05)
        text_addf(out, ", under 0.1%% of the %s roof", r->roof);
    else if (isfinite(r->roof_percent))
        text_addf(out, ", %.1f%% of the %s roof", r->roof_percent, r->roof);
    text_addf(out, ", n=%u\"\n", r->nsamples);
}

/* One data block per temperature: row, length, label; rows are drawn from the top. */
static void add_blocks(const struct bars *b, struct text *out)
{
    for (int t = BENCH_COLD; t <= BENCH_HOT; t++) {
        text_addf(out, "$%s << EOD\n", temperature_name((enum temperature)t));
        for (size_t i = 0; i < b->g->nbench; i++) {
            unsigned number = case_number(b->g, b->g->bench[i]);

            if ((int)b->g->bench[i]->temperature == t && number >= b->first && number <= b->last)
                add_bar(b, b->g->bench[i], out);
        }
        text_add(out, "EOD\n");
    }
}

/* Number and text of each case beside its row. */
static void add_tics(const struct bars *b, struct text *out)
{
    unsigned last = 0;

    text_add(out, "set ytics (");
    for (size_t i = 0; i < b->g->nbench; i++) {
        unsigned number = case_number(b->g, b->g->bench[i]);

        if (number == last || number < b->first || number > b->last)
            continue;
        text_addf(out, "%s\"%u  \".", last ? ", " : "", number);
        label_bench(b->g, b->g->bench[i], 60, out);
        text_addf(out, " -%u", number - b->first + 1);
        last = number;
    }
    text_add(out, ") font ',9'\n");
}

/* Measured ceilings as lines behind the bars, named in the key. */
static void add_ceilings(const struct bars *b, struct text *lines, struct text *keys)
{
    static const char *const names[] = {"dram_read", "dram_write", "dram_copy", "l2_read"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct ceiling_record *c = group_ceiling(b->g, names[i]);

        /* One far to the right of all bars would only squeeze them. */
        if (!c || !(c->value > 0.0) || c->value > LABEL_SHARE * b->longest)
            continue;
        text_addf(lines, "set arrow from %.6g,graph 0 to %.6g,graph 1 nohead ls %zu back\n",
                  c->value, c->value, i + 2);
        text_addf(keys, ", keyentry w l ls %zu title '%s %.4g %s'", i + 2, names[i], c->value,
                  c->unit);
    }
}

static bool make(struct bars *b, const char *name, const char *title, const char *axis,
                 unsigned part, struct plot *p)
{
    const char *l2 = b->g->device->emulated ? "" : " L2";
    struct text keys;
    unsigned rows;
    char file[96];

    if (!choose_rows(b, part))
        return false;
    rows = b->last - b->first + 1;
    text_init(&keys);
    snprintf(file, sizeof file, "%s-%s", name, b->g->slug);
    plot_init(p, file, title, 1300, MARGIN_PIXELS + ROW_PIXELS * rows);
    plot_part(p, part, b->parts);
    add_blocks(b, &p->script);
    add_tics(b, &p->script);
    if (!b->g->device->emulated)
        add_ceilings(b, &p->script, &keys);
    text_addf(&p->script,
              "set xlabel '%s'\nset yrange [-%u.8:-0.2]\nset xrange [0:%.6g]\n"
              "set style fill solid 0.7 border lc rgb '#000000'\n"
              "set style textbox opaque noborder margins 0.5,0.2\n"
              "set key above center horizontal Left reverse maxcols 3\nset grid noytics\n",
              axis, rows, b->longest * LABEL_SHARE);
    text_addf(&p->script,
              "plot $cold u (0):(-$1):(0):2:(-$1):(-$1+0.38) w boxxyerror lc rgb '#1b4f8a' "
              "title 'cold%s', "
              "$hot u (0):(-$1):(0):2:(-$1-0.38):(-$1) w boxxyerror fs pattern 4 lc rgb "
              "'#c2571a' title 'hot%s'%s, "
              "$cold u 2:(-$1+0.19):3 w labels left boxed offset 0.8,0 font ',8' notitle, "
              "$hot u 2:(-$1-0.19):3 w labels left boxed offset 0.8,0 font ',8' notitle\n",
              l2, l2, keys.data);
    text_release(&keys);
    return true;
}

bool figure_bandwidth(const struct device_group *g, unsigned part, struct plot *p)
{
    struct bars b = {.g = g, .length = gigabytes_per_second, .unit = "GB/s"};

    if (g->device->emulated ||
        !make(&b, "bandwidth", "Achieved bandwidth: compulsory bytes / median time",
              "achieved bandwidth [GB/s]", part, p))
        return false;
    snprintf(p->note, sizeof p->note,
             "n: samples of the median. Lines: ceilings measured in the same run. A hot case may "
             "find its data in the L2.");
    return true;
}

bool figure_emulated(const struct device_group *g, unsigned part, struct plot *p)
{
    struct bars b = {.g = g, .length = milliseconds, .unit = "ms"};

    if (!g->device->emulated ||
        !make(&b, "emulated", "Wall time of the CPU device's EMULATION (says nothing about a GPU)",
              "emulated wall time [ms]", part, p))
        return false;
    snprintf(p->note, sizeof p->note,
             "n: samples of the median. The CPU device has no cache to empty: cold and hot differ "
             "by the state of the host's caches only.");
    return true;
}
