/*
 * Bars per case: achieved bandwidth of a GPU, wall time of the emulation.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/figures.h"
#include "report/summary.h"

/* Rows that stay readable on one figure; the table has all. */
#define MAX_ROWS 80

#define ROW_PIXELS    34 /* two bars and their labels */
#define MARGIN_PIXELS 150

struct bars {
    const struct device_group *g;
    double (*length)(const struct bench_record *r); /* NAN: no bar */
    const char *unit;
    unsigned rows; /* cases with a bar */
    double longest;
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

/* One data block per temperature: row, length, label; rows are numbered by case and drawn
   from the top. */
static void add_blocks(struct bars *b, struct text *out)
{
    for (int t = BENCH_COLD; t <= BENCH_HOT; t++) {
        text_addf(out, "$%s << EOD\n", temperature_name((enum temperature)t));
        for (size_t i = 0; i < b->g->nbench; i++) {
            const struct bench_record *r = b->g->bench[i];
            unsigned row = case_number(b->g, r);

            if ((int)r->temperature != t || !has_bar(b, r) || row > MAX_ROWS)
                continue;
            text_addf(out, "%u %.6g \"%.4g %s", row, b->length(r), b->length(r), b->unit);
            if (!b->g->device->emulated)
                text_addf(out, ", %.4g us", r->median_us);
            text_addf(out, ", n=%u\"\n", r->nsamples);
            b->rows = row > b->rows ? row : b->rows;
            b->longest = fmax(b->longest, b->length(r));
        }
        text_add(out, "EOD\n");
    }
}

/* Number and text of each case beside its row; one without a valid time says so. */
static void add_tics(const struct bars *b, struct text *out)
{
    unsigned last = 0;

    text_add(out, "set ytics (");
    for (size_t i = 0; i < b->g->nbench; i++) {
        unsigned row = case_number(b->g, b->g->bench[i]);

        if (row == last || row > b->rows)
            continue;
        text_addf(out, "%s\"%u  \".", last ? ", " : "", row);
        plot_case_label(out, b->g->bench[i]->case_text, 64);
        text_addf(out, " -%u", row);
        last = row;
    }
    text_add(out, ") font ',8'\n");
}

/* Measured ceilings as lines behind the bars, named in the key. */
static void add_ceilings(const struct bars *b, struct text *lines, struct text *keys)
{
    static const char *const names[] = {"dram_read", "dram_write", "dram_copy", "l2_read"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct ceiling_record *c = group_ceiling(b->g, names[i]);

        /* One far to the right of all bars would only squeeze them. */
        if (!c || !(c->value > 0.0) || c->value > 2.0 * b->longest)
            continue;
        text_addf(lines, "set arrow from %.6g,graph 0 to %.6g,graph 1 nohead ls %zu back\n",
                  c->value, c->value, i + 2);
        text_addf(keys, ", keyentry w l ls %zu title '%s %.4g %s'", i + 2, names[i], c->value,
                  c->unit);
    }
}

static bool make(struct bars *b, const char *name, const char *title, const char *axis,
                 struct plot *p)
{
    const char *l2 = b->g->device->emulated ? "" : " L2";
    struct text blocks, keys;
    char file[96];

    text_init(&blocks);
    text_init(&keys);
    add_blocks(b, &blocks);
    if (b->rows > 0) {
        snprintf(file, sizeof file, "%s-%s", name, b->g->slug);
        plot_init(p, file, title, 1400, MARGIN_PIXELS + ROW_PIXELS * b->rows);
        text_add_bytes(&p->script, blocks.data, blocks.len);
        add_tics(b, &p->script);
        if (!b->g->device->emulated)
            add_ceilings(b, &p->script, &keys);
        text_addf(&p->script,
                  "set xlabel '%s'\nset yrange [-%u.8:-0.2]\nset xrange [0:%.6g]\n"
                  "set style fill solid 0.7 border lc rgb '#000000'\n"
                  "set style textbox opaque noborder margins 0.5,0.2\n"
                  "set key outside right top vertical Left reverse\nset grid noytics\n",
                  axis, b->rows, b->longest * 1.45);
        text_addf(&p->script,
                  "plot $cold u (0):(-$1):(0):2:(-$1):(-$1+0.38) w boxxyerror lc rgb '#1b4f8a' "
                  "title 'cold%s', "
                  "$hot u (0):(-$1):(0):2:(-$1-0.38):(-$1) w boxxyerror fs pattern 4 lc rgb "
                  "'#c2571a' title 'hot%s', "
                  "$cold u 2:(-$1+0.19):3 w labels left boxed offset 0.8,0 font ',8' notitle, "
                  "$hot u 2:(-$1-0.19):3 w labels left boxed offset 0.8,0 font ',8' notitle%s\n",
                  l2, l2, keys.data);
    }
    text_release(&keys);
    text_release(&blocks);
    return b->rows > 0;
}

bool figure_bandwidth(const struct device_group *g, struct plot *p)
{
    struct bars b = {.g = g, .length = gigabytes_per_second, .unit = "GB/s"};

    if (g->device->emulated ||
        !make(&b, "bandwidth", "Achieved bandwidth: compulsory bytes / median time", "GB/s", p))
        return false;
    p->note =
        "n: samples of the median. Lines: ceilings measured in the same run (those within twice "
        "the longest bar).";
    return true;
}

bool figure_emulated(const struct device_group *g, struct plot *p)
{
    struct bars b = {.g = g, .length = milliseconds, .unit = "ms"};

    if (!g->device->emulated ||
        !make(&b, "emulated", "Wall time of the CPU device's EMULATION (says nothing about a GPU)",
              "emulated wall time [ms]", p))
        return false;
    p->note = "n: samples of the median. The CPU device has no cache to empty: cold and hot differ "
              "by the state of the host's caches only.";
    return true;
}
