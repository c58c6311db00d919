/*
 * The roofline: how much work a case does per byte, how fast it does it, and the measured roofs
 * above.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "report/figures.h"
#include "report/summary.h"

/* A slanted roof in GB/s or a flat one in TFLOP/s. */
struct roof_line {
    const char *ceiling, *label;
    bool slanted;
    int style; /* line style of plot_init() */
};

static const struct roof_line roof_lines[] = {
    {"l2_read", "L2 read", true, 3},
    {"dram_read", "DRAM read", true, 1},
    {"dram_copy", "DRAM copy", true, 2},
    {"bf16_mma", "bf16 MMA", false, 4},
    {"tf32_mma", "tf32 MMA", false, 3},
    {"ffma", "fp32 FMA", false, 5},
    {"fp32_unfused", "fp32 mul, add", false, 2},
};

#define ROOFS (sizeof roof_lines / sizeof *roof_lines)

/* How many cases and samples are behind the points of one kind. */
struct shown_points {
    size_t cases, samples;
};

struct range {
    double low, high;
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

/* Two data blocks, cold and hot: intensity, TFLOP/s, number. Returns how many points there
   are. */
static size_t add_points(const struct device_group *g, struct range *x, struct range *y,
                         struct shown_points count[2], struct text *out)
{
    memset(count, 0, 2 * sizeof *count);
    for (int t = BENCH_COLD; t <= BENCH_HOT; t++) {
        text_addf(out, "$%s << EOD\n", temperature_name((enum temperature)t));
        for (size_t i = 0; i < g->nbench; i++) {
            const struct bench_record *r = g->bench[i];

            if ((int)r->temperature != t || !shown(r))
                continue;
            text_addf(out, "%.6g %.6g %u\n", intensity(r), tflops(r), case_number(g, r));
            widen(x, intensity(r));
            widen(y, tflops(r));
            count[t].cases++;
            count[t].samples += r->nsamples;
        }
        text_add(out, "EOD\n");
    }
    return count[BENCH_COLD].cases + count[BENCH_HOT].cases;
}

static void add_roofs(const struct device_group *g, struct range *y, struct text *out)
{
    for (size_t i = 0; i < ROOFS; i++) {
        const struct ceiling_record *c = group_ceiling(g, roof_lines[i].ceiling);

        if (!c || !(c->value > 0.0) || isinf(c->value))
            continue;
        if (!roof_lines[i].slanted)
            widen(y, c->value);
        /* GB/s times flop/byte is GFLOP/s. */
        text_addf(out, ", %s%.6g title \"%s %.4g %s\" w l ls %d",
                  roof_lines[i].slanted ? "1e-3*x*" : "0*x+", c->value, roof_lines[i].label,
                  c->value, c->unit, roof_lines[i].style);
    }
}

bool figure_roofline(const struct device_group *g, struct plot *p)
{
    struct range x = {INF64, 0.0};
    struct range y = {INF64, 0.0};
    struct text points, roofs;
    struct shown_points count[2];
    char name[96];

    if (g->device->emulated)
        return false;
    text_init(&points);
    text_init(&roofs);
    if (add_points(g, &x, &y, count, &points) > 0) {
        snprintf(name, sizeof name, "roofline-%s", g->slug);
        plot_init(
            p, name,
            "Roofline: performance against arithmetic intensity, ceilings measured in the same run",
            1000, 640);
        p->note = "Numbers: the cases of the table of times. n: samples behind the medians.";
        add_roofs(g, &y, &roofs);
        text_add_bytes(&p->script, points.data, points.len);
        text_addf(&p->script,
                  "set logscale xy 10\nset format y '%%g'\nset format x '%%g'\n"
                  "set xlabel 'arithmetic intensity [flop/byte of compulsory traffic]'\n"
                  "set ylabel 'performance [TFLOP/s]'\n"
                  "set xrange [%.3g:%.3g]\nset yrange [%.3g:%.3g]\nset samples 400\n"
                  "set key outside right top Left reverse samplen 3\n",
                  x.low / 3, x.high * 8, y.low / 4, y.high * 3);
        text_addf(&p->script,
                  "plot $cold u 1:2 w p ls 1 ps 1.2 title 'cold L2 (%zu cases, n=%zu)', "
                  "$hot u 1:2 w p ls 2 ps 1.4 title 'hot L2 (%zu cases, n=%zu)', "
                  "$cold u 1:2:3 w labels offset 1,-0.5 font ',8' notitle, "
                  "$hot u 1:2:3 w labels offset 1,0.6 font ',8' notitle",
                  count[BENCH_COLD].cases, count[BENCH_COLD].samples, count[BENCH_HOT].cases,
                  count[BENCH_HOT].samples);
        text_add_bytes(&p->script, roofs.data, roofs.len);
        text_add(&p->script, "\n");
    }
    text_release(&points);
    text_release(&roofs);
    return count[BENCH_COLD].cases + count[BENCH_HOT].cases > 0;
}
