#include "report/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

unsigned case_number(const struct device_group *g, const struct bench_record *r)
{
    unsigned number = 0;

    for (size_t i = 0; i < g->nbench; i++) {
        if (i == 0 || strcmp(g->bench[i]->case_text, g->bench[i - 1]->case_text) != 0)
            number++;
        if (strcmp(g->bench[i]->case_text, r->case_text) == 0)
            break;
    }
    return number;
}

/* A number with `digits` significant ones, "-" when it was not measured. */
static void number_cell(struct table *t, int digits, double value)
{
    if (isnan(value))
        table_cell(t, "-");
    else
        table_cell(t, "%.*g", digits, value);
}

/* --- verdicts --------------------------------------------------------------------------------- */

/* Microseconds with four digits; from a millisecond on without decimals. */
static void time_cell(struct table *t, double us)
{
    if (isnan(us))
        table_cell(t, "-");
    else
        table_cell(t, us < 1000.0 ? "%.4g" : "%.0f", us);
}

struct tally {
    unsigned verdict[VERDICT_ERROR + 1];
    double likely, worst;
};

/* A ratio that is not a number must show, not vanish in a maximum. */
static double larger(double a, double b)
{
    return isnan(b) ? INF64 : fmax(a, b);
}

static void tally_add(struct tally *t, const struct verify_record *r)
{
    t->verdict[r->verdict]++;
    for (unsigned i = 0; i < r->noutputs; i++) {
        t->likely = larger(t->likely, r->output[i].ratio_likely);
        t->worst = larger(t->worst, r->output[i].ratio_worst);
    }
}

void summary_verdicts(enum view view, const struct device_group *g, struct text *out)
{
    struct tally t = {.likely = 0.0};
    char line[300];

    if (g->nverify == 0)
        return;
    for (size_t i = 0; i < g->nverify; i++)
        tally_add(&t, g->verify[i]);
    snprintf(line, sizeof line,
             "%zu case%s verified: %u PASS, %u FAIL, %u MISTRUST, %u SKIP, %u ERROR", g->nverify,
             plural(g->nverify), t.verdict[VERDICT_PASS], t.verdict[VERDICT_FAIL],
             t.verdict[VERDICT_MISTRUST], t.verdict[VERDICT_SKIP], t.verdict[VERDICT_ERROR]);
    view_line(view, line, out);
}

static bool first_of_operator(const struct device_group *g, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(g->verify[k]->op, g->verify[i]->op) == 0)
            return false;
    return true;
}

void summary_operators(enum view view, const struct device_group *g, struct text *out)
{
    static const struct column columns[] = {
        {"operator", 'l'},          {"cases", 'r'}, {"PASS", 'r'},  {"FAIL", 'r'},
        {"MISTRUST", 'r'},          {"SKIP", 'r'},  {"ERROR", 'r'}, {"error/likely bound", 'r'},
        {"error/worst bound", 'r'},
    };
    struct table table;

    if (g->nverify == 0)
        return;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < g->nverify; i++) {
        struct tally t = {.likely = 0.0};
        unsigned cases = 0;

        if (!first_of_operator(g, i))
            continue;
        for (size_t k = i; k < g->nverify; k++)
            if (strcmp(g->verify[k]->op, g->verify[i]->op) == 0) {
                tally_add(&t, g->verify[k]);
                cases++;
            }
        table_cell(&table, "%s", g->verify[i]->op);
        table_cell(&table, "%u", cases);
        table_cell(&table, "%u", t.verdict[VERDICT_PASS]);
        table_cell(&table, "%u", t.verdict[VERDICT_FAIL]);
        table_cell(&table, "%u", t.verdict[VERDICT_MISTRUST]);
        table_cell(&table, "%u", t.verdict[VERDICT_SKIP]);
        table_cell(&table, "%u", t.verdict[VERDICT_ERROR]);
        number_cell(&table, 5, t.likely);
        number_cell(&table, 5, t.worst);
    }
    view_heading(view, "Largest error over bound, per operator", out);
    view_table(view, &table, out);
    table_release(&table);
}

void summary_failures(enum view view, const struct device_group *g, struct text *out)
{
    static const struct column columns[] = {
        {"verdict", 'l'}, {"check", 'l'}, {"case", 'l'}, {"reason", 'l'}, {"again", 'l'}};
    struct table t;

    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < g->nverify; i++) {
        const struct verify_record *r = g->verify[i];

        if (r->verdict == VERDICT_PASS)
            continue;
        table_cell(&t, "%s", verdict_name(r->verdict));
        table_cell(&t, "%s", r->failed_check);
        table_cell(&t, "%s", r->case_text);
        table_cell(&t, "%s", r->reason);
        table_cell(&t, "%s", r->repro);
    }
    if (table_rows(&t) > 0) {
        view_heading(view, "Cases that did not pass", out);
        view_table(view, &t, out);
    }
    table_release(&t);
}

/* --- measurements ----------------------------------------------------------------------------- */

void summary_ceilings(enum view view, const struct device_group *g, struct text *out)
{
    static const struct column columns[] = {{"ceiling", 'l'}, {"measured", 'r'}, {"interval", 'r'},
                                            {"unit", 'l'},    {"samples", 'r'},  {"published", 'r'},
                                            {"source", 'l'}};
    struct table t;

    if (g->nceilings == 0)
        return;
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < g->nceilings; i++) {
        const struct ceiling_record *c = g->ceiling[i];

        table_cell(&t, "%s", c->name);
        number_cell(&t, 5, c->value);
        if (isfinite(c->low) && isfinite(c->high))
            table_cell(&t, "%.5g .. %.5g", c->low, c->high);
        else
            table_cell(&t, "-");
        table_cell(&t, "%s", c->unit);
        table_cell(&t, "%u", c->nsamples);
        number_cell(&t, 5, c->published);
        table_cell(&t, "%s", c->published_source);
    }
    view_heading(view, "Ceilings, measured in the same run", out);
    view_table(view, &t, out);
    table_release(&t);
}

static void time_row(struct table *t, const struct device_group *g, const struct bench_record *r)
{
    double us = r->valid ? r->median_us : NAN64;

    table_cell(t, "%u", case_number(g, r));
    table_cell(t, "%s", r->case_text);
    table_cell(t, "%s", temperature_name(r->temperature));
    time_cell(t, us);
    if (r->valid && isfinite(r->low_us) && isfinite(r->high_us))
        table_cell(t, us < 1000.0 ? "%.4g .. %.4g" : "%.0f .. %.0f", r->low_us, r->high_us);
    else
        table_cell(t, "-");
    table_cell(t, "%u", r->nsamples);
    if (g->device->emulated) {
        table_cell(t, "%s%s", r->valid ? "" : "INVALID: ", r->reason);
        return;
    }
    number_cell(t, 4, 1e-3 * (r->read_bytes + r->write_bytes) / us); /* bytes/us = MB/s */
    number_cell(t, 4, 1e-6 * r->flops / us);
    number_cell(t, 3, r->valid ? r->roof_percent : us);
    table_cell(t, "%s", r->roof);
    time_cell(t, r->gb10_floor_us);
    table_cell(t, "%s%s", r->valid ? "" : "INVALID: ", r->reason);
}

void summary_times(enum view view, const struct device_group *g, struct text *out)
{
    static const struct column columns[] = {
        {"#", 'r'},
        {"case", 'l'},
        {"", 'l'},
        {"time [us]", 'r'},
        {"95% interval", 'r'},
        {"samples", 'r'},
        {"GB/s", 'r'},
        {"TFLOP/s", 'r'},
        {"% of roof", 'r'},
        {"roof", 'l'},
        {"floor on GB10, computed [us]", 'r'},
        {"note", 'l'},
    };
    /* An emulation has no bandwidth worth a column. */
    static const struct column emulated[] = {
        {"#", 'r'},
        {"case", 'l'},
        {"", 'l'},
        {"emulated wall time [us]", 'r'},
        {"95% interval", 'r'},
        {"samples", 'r'},
        {"note", 'l'},
    };
    struct table t;

    if (g->nbench == 0)
        return;
    if (g->device->emulated)
        table_init(&t, emulated, sizeof emulated / sizeof *emulated);
    else
        table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < g->nbench; i++)
        time_row(&t, g, g->bench[i]);
    view_heading(
        view, g->device->emulated ? "Emulated wall times (they say nothing about a GPU)" : "Times",
        out);
    view_table(view, &t, out);
    table_release(&t);
}

/* --- resources and runs ----------------------------------------------------------------------- */

static void resource_row(struct table *t, const struct resources_record *r)
{
    bool launch = r->case_text[0] != '\0';

    table_cell(t, "%s", r->entry);
    table_cell(t, "%s", r->arch);
    table_cell(t, "%u", r->registers);
    table_cell(t, "%u/%u", r->spill_store_bytes, r->spill_load_bytes);
    table_cell(t, "%u", r->stack_bytes);
    table_cell(t, "%llu", (unsigned long long)r->static_shared + r->dynamic_shared);
    table_cell(t, "%s", r->case_text);
    if (launch) {
        table_cell(t, "%u", r->blocks_per_sm);
        table_cell(t, "%.0f%%", 100.0 * r->occupancy);
        table_cell(t, "%.2f", r->waves);
        table_cell(t, "%s", r->refused[0] ? r->refused : r->limiter);
    } else {
        for (int i = 0; i < 4; i++)
            table_cell(t, "-");
    }
}

void summary_resources(enum view view, const struct record_set *set, struct text *out)
{
    static const struct column columns[] = {
        {"kernel", 'l'},         {"arch", 'l'},       {"registers", 'r'}, {"spills [B]", 'r'},
        {"stack [B]", 'r'},      {"shared [B]", 'r'}, {"case", 'l'},      {"blocks/SM", 'r'},
        {"occupancy GB10", 'r'}, {"waves", 'r'},      {"limit", 'l'},
    };
    struct table t;

    if (set->nresources == 0)
        return;
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < set->nresources; i++)
        resource_row(&t, &set->resources[i]);
    view_heading(view, "Kernel resources (static)", out);
    view_table(view, &t, out);
    table_release(&t);
}

void summary_runs(enum view view, const struct device_group *g, struct text *out)
{
    static const struct column columns[] = {{"started", 'l'},  {"commit", 'l'}, {"driver", 'l'},
                                            {"compiler", 'l'}, {"host", 'l'},   {"command", 'l'}};
    struct table t;

    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < g->nruns; i++) {
        const struct provenance *p = &g->run[i]->prov;

        table_cell(&t, "%s", p->started);
        table_cell(&t, "%.10s%s", p->git_commit[0] ? p->git_commit : "-", p->git_dirty ? "+" : "");
        table_cell(&t, "%s", g->run[i]->device.driver[0] ? g->run[i]->device.driver : "-");
        table_cell(&t, "%s", p->compiler);
        table_cell(&t, "%s, %s", p->host_cpu, p->os);
        table_cell(&t, "%s", p->argv);
    }
    view_heading(view, "Runs (+: uncommitted changes)", out);
    view_table(view, &t, out);
    table_release(&t);
}
