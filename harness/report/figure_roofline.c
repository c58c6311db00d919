/*
 * The roofline: how much work a case does per byte, how fast it does it, and the measured roofs
 * above. The area is laid out here in pixels, so that labels can be kept apart.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "report/figures.h"
#include "report/labels.h"
#include "report/summary.h"

#define WIDTH  1300 /* of the figure */
#define HEIGHT 900
#define LEFT   0.06 /* the area's edges, as shares of the figure */
#define RIGHT  0.985
#define BOTTOM 0.10
#define TOP    0.94

#define POINT_PIXELS 11 /* a point of size 1.2 */
#define DIGIT_PIXELS 7  /* of a label in 8 point, and a gap of 2 behind the last */
#define LABEL_PIXELS 11
#define ROOF_PIXELS  7  /* of a character of a roof's label, in 9 point */
#define LINE_PIXELS  15 /* gnuplot's unit of height, "character" */

/* A slanted roof in GB/s or a flat one in TFLOP/s. */
struct roof_line {
    const char *ceiling, *label;
    bool slanted;
    const char *look;
    double at; /* of the label, as a share of the area's width */
    bool below;
};

static const struct roof_line roof_lines[] = {
    {"l2_read", "L2 read", true, "dt 3 lc rgb '#2e7d32'", 0.02, false},
    {"dram_read", "DRAM read", true, "dt 1 lc rgb '#1b4f8a'", 0.04, false},
    {"dram_copy", "DRAM copy", true, "dt 2 lc rgb '#c2571a'", 0.42, true},
    {"bf16_mma", "bf16 MMA", false, "dt 4 lc rgb '#6a3d9a'", 0.99, false},
    {"tf32_mma", "tf32 MMA", false, "dt '.-' lc rgb '#00707a'", 0.99, false},
    {"ffma", "fp32 fused multiply-add", false, "dt 5 lc rgb '#000000'", 0.99, false},
    {"fp32_unfused", "fp32 multiply, add", false, "dt '- ' lc rgb '#7a5c00'", 0.99, false},
};

#define ROOFS (sizeof roof_lines / sizeof *roof_lines)

/* How many cases and samples are behind the points of one kind. */
struct shown_points {
    size_t cases, samples;
};

struct range {
    double low, high;
};

/* Axes and what is drawn between them. */
struct area {
    const struct device_group *g;
    struct range x, y;
    struct label_mark *mark; /* points and labels of roofs, in pixels */
    size_t nmarks;
};

static void widen(struct range *r, double v)
{
    if (v < r->low)
        r->low = v;
    if (v > r->high)
        r->high = v;
}

static double intensity(const struct bench_record *r)
{
    return r->flops / (r->read_bytes + r->write_bytes);
}

static double tflops(const struct bench_record *r)
{
    return 1e-6 * r->flops / r->median_us; /* flop/us = 1e-6 TFLOP/s */
}

static bool shown(const struct bench_record *r)
{
    return r->valid && r->flops > 0.0 && r->read_bytes + r->write_bytes > 0.0 && r->median_us > 0.0;
}

/* --- the layout ------------------------------------------------------------------------------- */

static double area_width(void)
{
    return WIDTH * (RIGHT - LEFT);
}

static double area_height(void)
{
    return HEIGHT * (TOP - BOTTOM);
}

/* Both axes are logarithmic. */
static double share_of(const struct range *r, double v)
{
    return log(v / r->low) / log(r->high / r->low);
}

static double value_at(const struct range *r, double share)
{
    return r->low * pow(r->high / r->low, share);
}

static void set_axes(struct area *a)
{
    a->x = a->y = (struct range){INF64, 0.0};
    for (size_t i = 0; i < a->g->nbench; i++)
        if (shown(a->g->bench[i])) {
            widen(&a->x, intensity(a->g->bench[i]));
            widen(&a->y, tflops(a->g->bench[i]));
        }
    for (size_t i = 0; i < ROOFS; i++) {
        const struct ceiling_record *c = group_ceiling(a->g, roof_lines[i].ceiling);

        if (c && !roof_lines[i].slanted && c->value > 0.0 && isfinite(c->value))
            widen(&a->y, c->value);
    }
    a->x = (struct range){a->x.low / 3, a->x.high * 4};
    a->y = (struct range){a->y.low / 2, a->y.high * 2};
}

static void keep_clear(struct area *a, struct label_mark m)
{
    a->mark = xrealloc(a->mark, a->nmarks + 1, sizeof *a->mark);
    a->mark[a->nmarks++] = m;
}

/* --- roofs ------------------------------------------------------------------------------------ */

/* Its label on a slanted roof turns with it; on a flat one it ends at the right edge. */
static void add_roof(struct area *a, const struct roof_line *l, const struct ceiling_record *c,
                     struct text *labels, struct text *lines)
{
    double slope = area_height() / log(a->y.high / a->y.low) * log(a->x.high / a->x.low) /
                   area_width(); /* of a slanted one, in pixels */
    double angle = l->slanted ? atan(slope) : 0.0;
    double x = value_at(&a->x, l->at), y = l->slanted ? 1e-3 * c->value * x : c->value;
    char text[128];
    int n = snprintf(text, sizeof text, "%s %.4g %s", l->label, c->value, c->unit);
    double length = n * (double)ROOF_PIXELS;
    double lift = l->below ? -0.8 : l->slanted ? 0.7 : 0.5; /* off the line, in characters */

    text_addf(lines, ", %s%.6g w l lw 1.5 %s notitle", l->slanted ? "1e-3*x*" : "0*x+", c->value,
              l->look);
    text_addf(labels,
              "set label '%s' at %.6g,%.6g %s rotate by %.1f offset 0,character %g font ',9' "
              "front\n",
              text, x, y, l->slanted ? "left" : "right", angle * 180.0 / acos(-1.0), lift);
    for (int i = 0; i < 12; i++) { /* small boxes along the text */
        double along = length * (i + 0.5) / 12 * (l->slanted ? 1.0 : -1.0);

        keep_clear(a, (struct label_mark){share_of(&a->x, x) * area_width() + along * cos(angle),
                                          share_of(&a->y, y) * area_height() + lift * LINE_PIXELS +
                                              along * sin(angle),
                                          length / 12 + 6, 18});
    }
}

static void add_roofs(struct area *a, struct text *labels, struct text *lines)
{
    for (size_t i = 0; i < ROOFS; i++) {
        const struct ceiling_record *c = group_ceiling(a->g, roof_lines[i].ceiling);

        if (c && c->value > 0.0 && isfinite(c->value))
            add_roof(a, &roof_lines[i], c, labels, lines);
    }
}

/* --- cases ------------------------------------------------------------------------------------ */

/* Two data blocks, cold and hot: intensity, TFLOP/s. */
static void add_points(struct area *a, struct shown_points count[2], struct text *out)
{
    memset(count, 0, 2 * sizeof *count);
    for (int t = BENCH_COLD; t <= BENCH_HOT; t++) {
        text_addf(out, "$%s << EOD\n", temperature_name((enum temperature)t));
        for (size_t i = 0; i < a->g->nbench; i++) {
            const struct bench_record *r = a->g->bench[i];

            if ((int)r->temperature != t || !shown(r))
                continue;
            text_addf(out, "%.6g %.6g\n", intensity(r), tflops(r));
            keep_clear(a, (struct label_mark){share_of(&a->x, intensity(r)) * area_width(),
                                              share_of(&a->y, tflops(r)) * area_height(),
                                              POINT_PIXELS, POINT_PIXELS});
            count[t].cases++;
            count[t].samples += r->nsamples;
        }
        text_add(out, "EOD\n");
    }
}

static bool same_case(const struct bench_record *a, const struct bench_record *b)
{
    return strcmp(a->case_text, b->case_text) == 0;
}

/* A line from the cold to the hot point of each case; records are sorted so. */
static void add_pairs(const struct device_group *g, struct text *out)
{
    text_add(out, "$pair << EOD\n");
    for (size_t i = 1; i < g->nbench; i++) {
        const struct bench_record *a = g->bench[i - 1], *b = g->bench[i];

        if (same_case(a, b) && shown(a) && shown(b))
            text_addf(out, "%.6g %.6g 0 %.6g\n", intensity(a), tflops(a), tflops(b) - tflops(a));
    }
    text_add(out, "EOD\n");
}

static double number_width(unsigned number)
{
    return DIGIT_PIXELS * snprintf(NULL, 0, "%u", number) + 2.0;
}

/* The number of each case once, beside its first point. */
static void add_numbers(const struct area *a, struct text *out)
{
    struct label_spot *spot = xcalloc(a->g->nbench ? a->g->nbench : 1, sizeof *spot);
    const struct bench_record **of = xcalloc(a->g->nbench ? a->g->nbench : 1, sizeof *of);
    size_t n = 0;

    for (size_t i = 0; i < a->g->nbench; i++) {
        const struct bench_record *r = a->g->bench[i];

        if (!shown(r) || (n && same_case(of[n - 1], r)))
            continue;
        of[n] = r;
        spot[n++] = (struct label_spot){.x = share_of(&a->x, intensity(r)) * area_width(),
                                        .y = share_of(&a->y, tflops(r)) * area_height(),
                                        .width = number_width(case_number(a->g, r)),
                                        .height = LABEL_PIXELS};
    }
    label_place(spot, n, a->mark, a->nmarks, area_width(), area_height());
    for (int led = 0; led < 2; led++) {
        text_addf(out, led ? "$leader << EOD\n" : "$number << EOD\n");
        for (size_t i = 0; i < n; i++) {
            double x = value_at(&a->x, spot[i].at_x / area_width());
            double y = value_at(&a->y, spot[i].at_y / area_height());

            if (!led)
                text_addf(out, "%.6g %.6g %u\n", x, y, case_number(a->g, of[i]));
            else if (spot[i].led)
                text_addf(out, "%.6g %.6g %.6g %.6g\n", intensity(of[i]), tflops(of[i]),
                          x - intensity(of[i]), y - tflops(of[i]));
        }
        text_add(out, "EOD\n");
    }
    free(of);
    free(spot);
}

/* --- the figure ------------------------------------------------------------------------------- */

static void draw(struct area *a, struct plot *p)
{
    struct text labels, lines;
    struct shown_points count[2];

    text_init(&labels);
    text_init(&lines);
    add_roofs(a, &labels, &lines);
    add_points(a, count, &p->script);
    add_pairs(a->g, &p->script);
    add_numbers(a, &p->script);
    text_addf(&p->script,
              "set lmargin at screen %g\nset rmargin at screen %g\n"
              "set bmargin at screen %g\nset tmargin at screen %g\n"
              "set logscale xy 10\nset format y '%%g'\nset format x '%%g'\n"
              "set xlabel 'arithmetic intensity [flop/byte of compulsory traffic]'\n"
              "set ylabel 'performance [TFLOP/s]' offset 1,0\n"
              "set xrange [%.6g:%.6g]\nset yrange [%.6g:%.6g]\nset samples 400\n"
              "set key inside bottom right Left reverse box opaque\n",
              LEFT, RIGHT, BOTTOM, TOP, a->x.low, a->x.high, a->y.low, a->y.high);
    text_add_bytes(&p->script, labels.data, labels.len);
    text_addf(&p->script,
              "plot $pair u 1:2:3:4 w vectors nohead lw 1 lc rgb '#888888' notitle, "
              "$leader u 1:2:3:4 w vectors nohead lw 0.6 lc rgb '#888888' notitle, "
              "$cold u 1:2 w p ls 1 ps 1.2 title 'cold L2 (%zu cases, n=%zu)', "
              "$hot u 1:2 w p ls 2 ps 1.2 title 'hot L2 (%zu cases, n=%zu)', "
              "$number u 1:2:3 w labels center font ',8' notitle",
              count[BENCH_COLD].cases, count[BENCH_COLD].samples, count[BENCH_HOT].cases,
              count[BENCH_HOT].samples);
    text_add_bytes(&p->script, lines.data, lines.len);
    text_add(&p->script, "\n");
    text_release(&labels);
    text_release(&lines);
}

bool figure_roofline(const struct device_group *g, unsigned part, struct plot *p)
{
    struct area a = {.g = g};
    bool any = false;
    char name[96];

    for (size_t i = 0; i < g->nbench; i++)
        any = any || shown(g->bench[i]);
    if (part > 0 || g->device->emulated || !any)
        return false;
    snprintf(name, sizeof name, "roofline-%s", g->slug);
    plot_init(p, name,
              "Roofline: performance against arithmetic intensity, ceilings measured in the same "
              "run",
              WIDTH, HEIGHT);
    snprintf(p->note, sizeof p->note,
             "Numbers: the cases of the table of times; a line joins a case's cold and hot point. "
             "n: samples behind the medians.");
    set_axes(&a);
    draw(&a, p);
    free(a.mark);
    return true;
}
