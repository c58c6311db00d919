#include "report/report_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/figures.h"
#include "report/junit.h"
#include "report/page.h"
#include "report/summary.h"

struct writing {
    const struct report *report;
    const char *folder;
    struct groups groups;
    char *note;
    size_t note_bytes;
    bool no_gnuplot;
    struct text page;
};

static void device_title(const struct device_group *g, char *out, size_t n)
{
    snprintf(out, n, "%s%s", g->device->name,
             g->device->emulated ? " (CPU device, emulation)" : "");
}

/* --- text and Markdown ------------------------------------------------------------------------ */

static void add_group(enum view view, const struct device_group *g, struct text *out)
{
    summary_verdicts(view, g, out);
    summary_failures(view, g, out);
    summary_operators(view, g, out);
    summary_ceilings(view, g, out);
    summary_times(view, g, out);
    summary_runs(view, g, out);
}

static void add_all(enum view view, const struct report *r, struct text *out)
{
    struct groups groups;
    char title[200];

    groups_make(r->set, &groups);
    for (size_t i = 0; i < groups.count; i++) {
        device_title(&groups.group[i], title, sizeof title);
        view_heading(view, title, out);
        add_group(view, &groups.group[i], out);
    }
    summary_resources(view, r->set, out);
    if (r->comparison) {
        view_heading(view, "Comparison with the base", out);
        comparison_view(view, r->comparison, r->regress, out);
    }
    if (r->history)
        history_view(view, r->history, out);
    groups_release(&groups);
}

void report_text(const struct report *r, struct text *out)
{
    text_addf(out, "%s\n", r->title);
    add_all(VIEW_TEXT, r, out);
}

static int write_file(const struct writing *w, const char *name, const struct text *t,
                      struct err *err)
{
    struct text path;
    int rc;

    text_init(&path);
    text_addf(&path, "%s/%s", w->folder, name);
    rc = file_replace(path.data, t->data, t->len, err);
    text_release(&path);
    return rc;
}

static int write_texts(const struct writing *w, struct err *err)
{
    struct text t;
    int rc;

    text_init(&t);
    report_text(w->report, &t);
    rc = write_file(w, "report.txt", &t, err);
    text_clear(&t);
    text_addf(&t, "## %s\n", w->report->title);
    add_all(VIEW_MARKDOWN, w->report, &t);
    if (rc == 0)
        rc = write_file(w, "report.md", &t, err);
    text_release(&t);
    return rc;
}

static int write_junit(const struct writing *w, struct err *err)
{
    const struct record_set *set = w->report->set;
    const struct verify_record **last = xcalloc(set->nverify, sizeof *last);
    struct text t;
    size_t n = 0;
    int rc = 0;

    text_init(&t);
    for (size_t i = 0; i < w->groups.count; i++)
        for (size_t k = 0; k < w->groups.group[i].nverify; k++)
            last[n++] = w->groups.group[i].verify[k];
    if (n > 0) {
        junit_write(&t, "deltarig", set->run[0].prov.started, last, n);
        rc = write_file(w, "junit.xml", &t, err);
    }
    text_release(&t);
    free(last);
    return rc;
}

/* --- figures ---------------------------------------------------------------------------------- */

/* Draws the figure into the folder and the page, and releases it. Without gnuplot: a note,
   once. */
static int put_figure(struct writing *w, struct plot *p, struct err *err)
{
    int rc = 0;

    if (!w->no_gnuplot)
        rc = plot_draw(p, w->folder, err);
    if (rc < 0 && err->kind == ERR_MISSING) {
        w->no_gnuplot = true;
        snprintf(
            w->note, w->note_bytes,
            "gnuplot is not installed: the figures are left out (apt-get install gnuplot-nox)");
        rc = 0;
    }
    if (rc == 0 && !w->no_gnuplot) {
        page_figure_open(&w->page, p->title);
        rc = plot_inline(w->folder, p->name, &w->page, err);
        page_figure_close(&w->page, p->note);
    }
    plot_release(p);
    return rc;
}

static int put_group_figures(struct writing *w, const struct device_group *g, struct err *err)
{
    static bool (*const figures[])(const struct device_group *, unsigned, struct plot *) = {
        figure_roofline, figure_bandwidth, figure_emulated, figure_samples};
    struct plot p;

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        for (unsigned part = 0; figures[i](g, part, &p); part++)
            if (put_figure(w, &p, err) < 0)
                return -1;
    return 0;
}

/* --- the page --------------------------------------------------------------------------------- */

static int add_group_section(struct writing *w, const struct device_group *g, struct err *err)
{
    char title[200];

    device_title(g, title, sizeof title);
    page_section(&w->page, title);
    summary_verdicts(VIEW_HTML, g, &w->page);
    summary_failures(VIEW_HTML, g, &w->page);
    summary_operators(VIEW_HTML, g, &w->page);
    summary_ceilings(VIEW_HTML, g, &w->page);
    if (put_group_figures(w, g, err) < 0)
        return -1;
    summary_times(VIEW_HTML, g, &w->page);
    summary_runs(VIEW_HTML, g, &w->page);
    return 0;
}

static int add_comparison(struct writing *w, struct err *err)
{
    const struct report *r = w->report;
    struct plot p;

    if (!r->comparison)
        return 0;
    page_section(&w->page, "Comparison with the base");
    for (unsigned part = 0; figure_forest(r->comparison, r->regress, part, &p); part++)
        if (put_figure(w, &p, err) < 0)
            return -1;
    comparison_view(VIEW_HTML, r->comparison, r->regress, &w->page);
    return 0;
}

static int add_history(struct writing *w, struct err *err)
{
    struct plot p;

    if (!w->report->history || w->report->history->count == 0)
        return 0;
    page_section(&w->page, "History");
    if (figure_history(w->report->history, &p) && put_figure(w, &p, err) < 0)
        return -1;
    history_view(VIEW_HTML, w->report->history, &w->page);
    return 0;
}

static int write_page(struct writing *w, struct err *err)
{
    page_open(&w->page, w->report->title);
    for (size_t i = 0; i < w->groups.count; i++)
        if (add_group_section(w, &w->groups.group[i], err) < 0)
            return -1;
    if (w->report->set->nresources) {
        page_section(&w->page, "Resources");
        summary_resources(VIEW_HTML, w->report->set, &w->page);
    }
    if (add_comparison(w, err) < 0 || add_history(w, err) < 0)
        return -1;
    page_close(&w->page);
    return write_file(w, "report.html", &w->page, err);
}

int report_write(const struct report *r, const char *folder, char *note, size_t n, struct err *err)
{
    struct writing w = {.report = r, .folder = folder, .note = note, .note_bytes = n};
    int rc = -1;

    note[0] = '\0';
    text_init(&w.page);
    groups_make(r->set, &w.groups);
    if (write_texts(&w, err) == 0 && write_junit(&w, err) == 0 && write_page(&w, err) == 0)
        rc = 0;
    groups_release(&w.groups);
    text_release(&w.page);
    return rc;
}

int report_check(const char *folder, struct err *err)
{
    static const char *const names[] = {"report.txt", "report.md", "junit.xml", "report.html"};
    int rc = dir_writable(folder, err);

    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
        struct text path;

        text_init(&path);
        text_addf(&path, "%s/%s", folder, names[i]);
        rc = file_writable(path.data, err);
        text_release(&path);
    }
    return rc;
}
