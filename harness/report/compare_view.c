#include "report/compare_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/escape.h"

/* --- the three forms -------------------------------------------------------------------------- */

void view_table(enum view view, const struct table *t, struct text *out)
{
    switch (view) {
    case VIEW_TEXT:
        table_text(t, out);
        break;
    case VIEW_MARKDOWN:
        table_markdown(t, out);
        break;
    case VIEW_HTML:
        table_html(t, out);
        break;
    }
}

void view_heading(enum view view, const char *title, struct text *out)
{
    switch (view) {
    case VIEW_TEXT:
        text_add(out, "\n");
        escape_line(out, title);
        text_add(out, "\n");
        break;
    case VIEW_MARKDOWN:
        text_add(out, "\n### ");
        escape_markdown(out, title);
        text_add(out, "\n\n");
        break;
    case VIEW_HTML:
        text_add(out, "<h3>");
        escape_xml(out, title);
        text_add(out, "</h3>\n");
        break;
    }
}

void view_line(enum view view, const char *line, struct text *out)
{
    switch (view) {
    case VIEW_TEXT:
        escape_line(out, line);
        text_add(out, "\n");
        break;
    case VIEW_MARKDOWN:
        escape_markdown(out, line);
        text_add(out, "\n\n");
        break;
    case VIEW_HTML:
        text_add(out, "<p>");
        escape_xml(out, line);
        text_add(out, "</p>\n");
        break;
    }
}

/* --- times ------------------------------------------------------------------------------------ */

static int urgency(enum change c)
{
    switch (c) {
    case CHANGE_SLOWER:
        return 0;
    case CHANGE_INVALID:
        return 1;
    case CHANGE_UNSURE:
        return 2;
    case CHANGE_FASTER:
        return 3;
    case CHANGE_SAME:
        return 4;
    }
    return 5;
}

static int by_urgency(const void *a, const void *b)
{
    const struct timing_change *x = *(const struct timing_change *const *)a;
    const struct timing_change *y = *(const struct timing_change *const *)b;
    int u = urgency(x->result.change) - urgency(y->result.change);
    double ex = fabs(x->result.effect);
    double ey = fabs(y->result.effect);

    if (u != 0)
        return u;
    if (ex != ey && !isnan(ex) && !isnan(ey))
        return ex > ey ? -1 : 1;
    return x < y ? -1 : x > y; /* as they came */
}

void comparison_order(const struct comparison *c, const struct timing_change **order)
{
    for (size_t i = 0; i < c->ntimings; i++)
        order[i] = &c->timing[i];
    if (c->ntimings > 1)
        qsort(order, c->ntimings, sizeof *order, by_urgency);
}

/* "+3.02%", "none" for an infinite one, "-" for none at all. */
static void percent_cell(struct table *t, double share, bool sign)
{
    if (isnan(share))
        table_cell(t, "-");
    else if (isinf(share))
        table_cell(t, "none");
    else
        table_cell(t, sign ? "%+.2f%%" : "%.2f%%", 100.0 * share);
}

static void time_cell(struct table *t, double us)
{
    if (isnan(us))
        table_cell(t, "-");
    else
        table_cell(t, "%.3f", us);
}

static void timing_row(struct table *t, const struct timing_change *c)
{
    const struct regress_result *r = &c->result;
    bool called = r->change == CHANGE_SLOWER || r->change == CHANGE_FASTER;

    table_cell(t, "%s", change_name(r->change));
    table_cell(t, "%s", c->base->case_text);
    table_cell(t, "%s", temperature_name(c->base->temperature));
    time_cell(t, r->base_us);
    time_cell(t, r->next_us);
    percent_cell(t, r->effect, true);
    if (isnan(r->interval.low))
        table_cell(t, "-");
    else
        table_cell(t, "%+.2f .. %+.2f%%", 100.0 * r->interval.low, 100.0 * r->interval.high);
    if (isnan(r->q))
        table_cell(t, "-");
    else
        table_cell(t, "%.2g", r->q);
    percent_cell(t, r->detectable, false);
    table_cell(t, "%u/%u", c->base_rounds.count, c->next_rounds.count);
    table_cell(t, "%u/%u", c->base_rounds.nsamples, c->next_rounds.nsamples);
    table_cell(t, "%s%s", r->reason,
               called && c->same_kernels ? "the kernels' files are the same on both sides" : "");
}

void comparison_times(enum view view, const struct comparison *c, struct text *out)
{
    static const struct column columns[] = {
        {"change", 'l'},     {"case", 'l'},   {"", 'l'},         {"base [us]", 'r'},
        {"new [us]", 'r'},   {"effect", 'r'}, {"interval", 'r'}, {"q", 'r'},
        {"detectable", 'r'}, {"rounds", 'r'}, {"samples", 'r'},  {"note", 'l'},
    };
    const struct timing_change **order = xcalloc(c->ntimings, sizeof *order);
    struct table t;

    comparison_order(c, order);
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->ntimings; i++)
        timing_row(&t, order[i]);
    view_table(view, &t, out);
    table_release(&t);
    free(order);
}

static void view_timings(enum view view, const struct comparison *c,
                         const struct regress_options *opt, struct text *out)
{
    char title[200];

    if (c->ntimings + c->npresences == 0)
        return;
    snprintf(
        title, sizeof title,
        "Times (threshold %.4g%%, false discovery rate %.4g%%, %.0f%% intervals by bootstrap over "
        "rounds)",
        100.0 * opt->threshold, 100.0 * opt->fdr, 100.0 * opt->bootstrap.confidence);
    view_heading(view, title, out);
    if (c->ntimings)
        comparison_times(view, c, out);
    for (size_t i = 0; i < c->npresences; i++) {
        const struct timing_presence *p = &c->presence[i];
        char line[1200];

        snprintf(
            line, sizeof line, "%s%s: %s (%s)%s%.480s", p->worse ? "WORSE: " : "",
            p->vanished ? "timed in the base only" : "timed in the new only", p->record->case_text,
            temperature_name(p->record->temperature),
            p->record->valid ? "" : ": not valid: ", p->record->valid ? "" : p->record->reason);
        view_line(view, line, out);
    }
}

/* --- verdicts, outputs, resources ------------------------------------------------------------- */

static void view_verdicts(enum view view, const struct comparison *c, struct text *out)
{
    static const struct column columns[] = {
        {"", 'l'}, {"case", 'l'}, {"base", 'l'}, {"new", 'l'}, {"reason", 'l'}};
    struct table t;

    if (c->nverdicts == 0)
        return;
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->nverdicts; i++) {
        const struct verdict_change *v = &c->verdict[i];

        table_cell(&t, "%s", v->worse ? "WORSE" : v->base ? "better" : "added");
        table_cell(&t, "%s", v->base ? v->base->case_text : v->next->case_text);
        table_cell(&t, "%s", v->base ? verdict_name(v->base->verdict) : "-");
        table_cell(&t, "%s", v->next ? verdict_name(v->next->verdict) : "vanished");
        table_cell(&t, "%s%s", v->less[0] ? "proves less: " : "",
                   v->less[0] ? v->less
                   : v->next  ? v->next->reason
                              : "the new records lack this case");
    }
    view_heading(view, "Verdicts that changed", out);
    view_table(view, &t, out);
    table_release(&t);
}

static void view_outputs(enum view view, const struct comparison *c, struct text *out)
{
    static const struct column columns[] = {{"", 'l'},
                                            {"case", 'l'},
                                            {"buffer", 'l'},
                                            {"error/bound base", 'r'},
                                            {"error/bound new", 'r'},
                                            {"bits", 'l'}};
    struct table t;

    if (c->noutputs == 0)
        return;
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->noutputs; i++) {
        const struct output_change *o = &c->output[i];

        table_cell(&t, "%s", o->worse ? "WORSE" : "");
        table_cell(&t, "%s", o->case_text);
        table_cell(&t, "%s", o->base->buffer);
        table_cell(&t, "%.5g", o->base->ratio_likely);
        table_cell(&t, "%.5g", o->next->ratio_likely);
        table_cell(&t, "%s", o->bits ? "changed" : "same");
    }
    view_heading(view, "Outputs whose error ratio or bits changed", out);
    view_table(view, &t, out);
    table_release(&t);
}

static void view_resources(enum view view, const struct comparison *c, struct text *out)
{
    static const struct column columns[] = {{"", 'l'},      {"kernel", 'l'},    {"arch", 'l'},
                                            {"what", 'l'},  {"base", 'r'},      {"new", 'r'},
                                            {"cases", 'r'}, {"first case", 'l'}};
    struct table t;

    if (c->nresources == 0)
        return;
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->nresources; i++) {
        const struct resource_change *r = &c->resource[i];

        table_cell(&t, "%s", r->worse ? "WORSE" : "");
        table_cell(&t, "%s", r->entry);
        table_cell(&t, "%s", r->arch[0] ? r->arch : "device");
        table_cell(&t, "%s", r->what);
        table_cell(&t, "%s", r->base_text[0] ? r->base_text : "-");
        table_cell(&t, "%s", r->next_text[0] ? r->next_text : "-");
        table_cell(&t, "%u", r->cases);
        table_cell(&t, "%s", r->case_text[0] ? r->case_text : "(the kernel itself)");
    }
    view_heading(view, "Kernel resources that changed", out);
    view_table(view, &t, out);
    table_release(&t);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void view_summary(enum view view, const struct comparison *c, struct text *out)
{
    size_t worse = comparison_worse(c);
    char line[400];

    snprintf(
        line, sizeof line,
        "%s: %zu timed (%zu SLOWER, %zu FASTER, %zu SAME, %zu UNSURE, %zu INVALID), %zu verified, "
        "%zu verdict%s changed, %zu output%s changed, %zu resource%s changed",
        worse                 ? "WORSE"
        : comparison_empty(c) ? "NOTHING TO COMPARE"
                              : "OK",
        c->ntimings, comparison_count(c, CHANGE_SLOWER), comparison_count(c, CHANGE_FASTER),
        comparison_count(c, CHANGE_SAME), comparison_count(c, CHANGE_UNSURE),
        comparison_count(c, CHANGE_INVALID), c->cases_compared, c->nverdicts, plural(c->nverdicts),
        c->noutputs, plural(c->noutputs), c->nresources, plural(c->nresources));
    view_line(view, line, out);
    if (comparison_count(c, CHANGE_FASTER) && !worse)
        view_line(view, "Some cases are FASTER: renew the baseline when that is meant to stay.",
                  out);
}

static void view_warnings(enum view view, const struct comparison *c, struct text *out)
{
    const char *p = c->warnings.data;

    while (*p) {
        const char *end = p;
        struct text line;

        while (*end && *end != '\n')
            end++;
        text_init(&line);
        text_add(&line, "warning: ");
        text_add_bytes(&line, p, (size_t)(end - p));
        view_line(view, line.data, out);
        text_release(&line);
        p = *end ? end + 1 : end;
    }
}

void comparison_view(enum view view, const struct comparison *c, const struct regress_options *opt,
                     struct text *out)
{
    view_summary(view, c, out);
    view_warnings(view, c, out);
    view_timings(view, c, opt, out);
    view_verdicts(view, c, out);
    view_outputs(view, c, out);
    view_resources(view, c, out);
}
