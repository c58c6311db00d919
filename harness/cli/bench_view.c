#include "cli/bench_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/stats.h"

/* --- the table -------------------------------------------------------------------------------- */

static const struct column columns[] = {
    {"case", 'l'},
    {"L2", 'l'},
    {"us", 'r'},
    {"+-%", 'r'},
    {"n", 'r'},
    {"x", 'r'},
    {"GB/s", 'r'},
    {"GFLOP/s", 'r'},
    {"% of roof", 'r'},
    {"roof", 'l'},
    {"GB10 floor us", 'r'},
    {"verdict", 'l'},
};

void bench_table_init(struct table *t)
{
    table_init(t, columns, sizeof columns / sizeof columns[0]);
}

/* Four digits, or "-" for what was not measured. */
static void cell_number(struct table *t, double value)
{
    if (isfinite(value))
        table_cell(t, "%.4g", value);
    else
        table_cell(t, "-");
}

static void cell_percent(struct table *t, double value)
{
    if (isfinite(value))
        table_cell(t, "%.1f", value);
    else
        table_cell(t, "-");
}

void bench_table_add(struct table *t, const struct bench_record *r)
{
    double half = fmax(r->high_us - r->median_us, r->median_us - r->low_us);

    table_cell(t, "%s", r->case_text);
    table_cell(t, "%s", r->temperature == BENCH_COLD ? "cold" : "hot");
    cell_number(t, r->median_us);
    cell_percent(t, 100 * half / r->median_us);
    table_cell(t, "%u", r->nsamples);
    table_cell(t, "%u", r->launches_per_sample);
    cell_number(t, 1e-3 * (r->read_bytes + r->write_bytes) / r->median_us);
    cell_number(t, 1e-3 * r->flops / r->median_us);
    cell_percent(t, r->roof_percent);
    table_cell(t, "%s", r->roof);
    cell_number(t, r->gb10_floor_us);
    table_cell(t, "%s%s%s", r->valid ? "ok" : "INVALID", r->reason[0] ? ": " : "", r->reason);
}

void print_ceiling(const struct ceiling_record *r)
{
    printf("  %-13s %9.4g %-8s", r->name, r->value, r->unit);
    if (isfinite(r->low) && isfinite(r->high))
        printf(" (%.4g to %.4g)", r->low, r->high);
    if (isfinite(r->published))
        printf("   stated: %.4g, %s", r->published, r->published_source);
    putchar('\n');
}

void print_table(const struct table *t)
{
    struct text text;

    text_init(&text);
    table_text(t, &text);
    fputs(text.data, stdout);
    text_release(&text);
}

/* --- A/A -------------------------------------------------------------------------------------- */

void aa_init(struct aa *a, unsigned repeats)
{
    memset(a, 0, sizeof *a);
    a->repeats = repeats;
}

void aa_release(struct aa *a)
{
    free(a->name);
    free(a->rounds);
    free(a->detectable);
    memset(a, 0, sizeof *a);
}

static size_t row_of(struct aa *a, const struct bench_record *r)
{
    char name[600];

    snprintf(name, sizeof name, "%s (%s)", r->case_text,
             r->temperature == BENCH_COLD ? "cold" : "hot");
    for (size_t i = 0; i < a->rows; i++)
        if (!strcmp(a->name[i], name))
            return i;
    if (a->rows == a->capacity) {
        a->capacity = a->capacity ? 2 * a->capacity : 32;
        a->name = xrealloc(a->name, a->capacity, sizeof *a->name);
        a->rounds = xrealloc(a->rounds, a->capacity * a->repeats * 2, sizeof *a->rounds);
    }
    memset(&a->rounds[a->rows * a->repeats * 2], 0, a->repeats * 2 * sizeof *a->rounds);
    memcpy(a->name[a->rows], name, sizeof name);
    return a->rows++;
}

void aa_add(struct aa *a, unsigned repeat, unsigned side, const struct bench_record *r)
{
    size_t row = row_of(a, r);

    rounds_collect(&r, 1, &a->rounds[(row * a->repeats + repeat) * 2 + side]);
}

void aa_report(struct aa *a, unsigned repeat)
{
    struct regress_options opt = REGRESS_OPTIONS_INIT;
    struct regress_input *in = xcalloc(a->rows ? a->rows : 1, sizeof *in);
    struct regress_result *out = xcalloc(a->rows ? a->rows : 1, sizeof *out);
    unsigned called = 0, same = 0;

    for (size_t i = 0; i < a->rows; i++) {
        const struct rounds *pair = &a->rounds[(i * a->repeats + repeat) * 2];

        in[i] = (struct regress_input){.base = &pair[0], .next = &pair[1]};
    }
    regress_judge(in, a->rows, &opt, out);
    a->detectable = xrealloc(a->detectable, a->ndetectable + a->rows + 1, sizeof *a->detectable);
    for (size_t i = 0; i < a->rows; i++) {
        if (!isnan(out[i].detectable))
            a->detectable[a->ndetectable++] = out[i].detectable;
        a->count[out[i].change]++;
        same += out[i].change == CHANGE_SAME;
        if (out[i].change != CHANGE_SLOWER && out[i].change != CHANGE_FASTER)
            continue;
        called++;
        printf("A/A %u: %s: %s by %+.2f%% (q %.2g)\n", repeat + 1, a->name[i],
               change_name(out[i].change), 100 * out[i].effect, out[i].q);
    }
    printf("A/A %u of %u: %zu rows, %u SAME, %u called\n", repeat + 1, a->repeats, a->rows, same,
           called);
    fflush(stdout); /* a run that is cut off has said so much */
    a->called += called;
    a->reported++;
    free(in);
    free(out);
}

static void print_slowdown(double share)
{
    if (isinf(share)) /* too few rounds */
        printf("none");
    else
        printf("%.2f%%", 100 * share);
}

void aa_total(const struct aa *a)
{
    printf("A/A: %u comparisons of %zu rows:", a->reported, a->rows);
    for (int c = 0; c <= CHANGE_INVALID; c++)
        printf(" %s %u", change_name((enum change)c), a->count[c]);
    printf("; called although nothing changed: %u of %zu\n", a->called, a->rows * a->reported);
    if (!a->ndetectable)
        return;
    printf("smallest slowdown that a row would have shown: ");
    print_slowdown(stats_quantile(a->detectable, a->ndetectable, 0.5));
    printf(" in half of them, ");
    print_slowdown(stats_quantile(a->detectable, a->ndetectable, 0.9));
    printf(" in nine of ten\n");
}
