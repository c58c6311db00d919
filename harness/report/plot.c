#include "report/plot.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/shell.h"
#include "report/escape.h"

#define MAX_SVG_BYTES ((size_t)64 << 20)

void plot_init(struct plot *p, const char *name, const char *title, unsigned width, unsigned height)
{
    *p = (struct plot){.width = width, .height = height};
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->title, sizeof p->title, "%s", title);
    text_init(&p->script);
    /* Dark enough to tell apart in grey; shapes, dashes and patterns differ besides. */
    text_add(&p->script, "set encoding utf8\n"
                         "set style line 1 lc rgb '#1b4f8a' lw 2 pt 7 ps 0.9 dt 1\n"
                         "set style line 2 lc rgb '#c2571a' lw 2 pt 4 ps 0.9 dt 2\n"
                         "set style line 3 lc rgb '#2e7d32' lw 2 pt 9 ps 0.9 dt 3\n"
                         "set style line 4 lc rgb '#6a3d9a' lw 2 pt 13 ps 0.9 dt 4\n"
                         "set style line 5 lc rgb '#000000' lw 2 pt 2 ps 0.9 dt 5\n"
                         "set style line 9 lc rgb '#bbbbbb' lw 1 dt 1\n"
                         "set grid back ls 9\nset border lw 1\nset tics nomirror\n");
}

void plot_part(struct plot *p, unsigned part, unsigned parts)
{
    size_t title = strlen(p->title);
    size_t name = strlen(p->name);

    if (parts > 1)
        snprintf(p->title + title, sizeof p->title - title, " (%u of %u)", part + 1, parts);
    if (part > 0)
        snprintf(p->name + name, sizeof p->name - name, "-%u", part + 1);
}

void plot_release(struct plot *p)
{
    text_release(&p->script);
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void add_terminal(const struct plot *p, const char *terminal, const char *suffix,
                         struct text *out)
{
    text_addf(out,
              "set terminal %s size %u,%u font 'DejaVu Sans,10' noenhanced background '#ffffff'\n",
              terminal, p->width, p->height);
    text_addf(out, "set output '%s.%s'\n", p->name, suffix);
}

/* The whole script: the figure once for each terminal. The plot command is the last of the
   script, so what stands before it is set only once. */
static void make_script(const struct plot *p, struct text *out)
{
    text_addf(out, "# %s\n# Drawn by deltarig report; again with: gnuplot %s.gp\n", p->title,
              p->name);
    add_terminal(p, "pngcairo", "png", out);
    text_add(out, "set title ");
    escape_gnuplot(out, p->title);
    text_add(out, "\n");
    if (p->note[0]) {
        text_add(out, "set label 99 ");
        escape_gnuplot(out, p->note);
        text_add(out, " at screen 0.01, character 0.7 left font ',8'\nset bmargin 5\n");
    }
    text_add_bytes(out, p->script.data, p->script.len);
    add_terminal(p, "svg", "svg", out);
    text_add(out, "replot\nunset output\n");
}

static int run_gnuplot(const struct plot *p, const char *folder, struct err *err)
{
    char program[] = "gnuplot", plain[] = "-d";
    char script[sizeof p->name + 4];
    struct shell_run how = {.dir = folder, .limit = 4096, .with_stderr = 1};
    struct text said;
    int status = 0;
    int rc;

    snprintf(script, sizeof script, "%s.gp", p->name);
    text_init(&said);
    rc = shell_capture((char *[]){program, plain, script, NULL}, &how, &said, &status, err);
    if (rc == 0 && status != 0) {
        const char *text = said.data + strspn(said.data, "\n ");

        rc = err_set(err, ERR_SYSTEM, "gnuplot failed on %s (exit %d): %.300s", script, status,
                     text);
    }
    text_release(&said);
    return rc;
}

int plot_draw(const struct plot *p, const char *folder, struct err *err)
{
    struct text script, path;
    int rc;

    text_init(&script);
    text_init(&path);
    make_script(p, &script);
    text_addf(&path, "%s/%s.gp", folder, p->name);
    rc = file_replace(path.data, script.data, script.len, err);
    if (rc == 0)
        rc = run_gnuplot(p, folder, err);
    text_release(&script);
    text_release(&path);
    return rc;
}

/* --- in a page -------------------------------------------------------------------------------- */

/* The ids that gnuplot gives its point shapes and patterns are the same in every file; in
   one page they must not be. */
static void add_unique(struct text *out, const char *svg, const char *name)
{
    static const char *const ids[] = {"gpDot",        "gpPt",    "gpPat",  "gnuplot_canvas",
                                      "gnuplot_plot", "greybox", "textbox"};
    const char *p = svg;

    while (*p) {
        /* An id stands behind a quote, a reference to it behind '#'; words of a label do not. */
        bool may = p > svg && strchr("'\"#", p[-1]) != NULL;
        size_t matched = 0;

        for (size_t i = 0; may && i < sizeof ids / sizeof *ids && !matched; i++)
            if (strncmp(p, ids[i], strlen(ids[i])) == 0)
                matched = strlen(ids[i]);
        if (matched)
            text_addf(out, "%s-", name);
        text_add_bytes(out, p, matched ? matched : 1);
        p += matched ? matched : 1;
    }
}

/* The opening tag with its fixed size replaced, so that the page scales the figure. */
static const char *add_svg_tag(struct text *out, const char *svg)
{
    const char *box = strstr(svg, "viewBox=");
    const char *end = strchr(svg, '>');

    text_add(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:xlink=\"http://www.w3.org/1999/xlink\" role=\"img\" ");
    if (box && end && box < end)
        text_add_bytes(out, box, strcspn(box + 9, "\"'") + 10);
    text_add(out, ">");
    return end ? end + 1 : svg + strlen(svg);
}

int plot_inline(const char *folder, const char *name, struct text *out, struct err *err)
{
    struct text svg, path;
    const char *start;
    int rc;

    text_init(&svg);
    text_init(&path);
    text_addf(&path, "%s/%s.svg", folder, name);
    rc = file_read(path.data, MAX_SVG_BYTES, &svg, err);
    start = rc == 0 ? strstr(svg.data, "<svg") : NULL;
    if (start)
        add_unique(out, add_svg_tag(out, start), name);
    else if (rc == 0)
        rc = err_set(err, ERR_SYSTEM, "%s: gnuplot wrote no SVG", path.data);
    text_release(&svg);
    text_release(&path);
    return rc;
}
