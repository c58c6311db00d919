#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "report/escape.h"

void table_init(struct table *t, const struct column *column, size_t columns)
{
    *t = (struct table){.column = column, .columns = columns};
}

void table_release(struct table *t)
{
    for (size_t i = 0; i < t->cells; i++)
        free(t->cell[i]);
    free(t->cell);
    t->cell = NULL;
    t->cells = 0;
}

void table_cell(struct table *t, const char *fmt, ...)
{
    va_list args;
    char *cell = NULL;
    int n;

    va_start(args, fmt);
    n = vasprintf(&cell, fmt, args);
    va_end(args);
    if (n < 0)
        BUG("out of memory: a cell of a table");
    t->cell = xrealloc(t->cell, t->cells + 1, sizeof *t->cell);
    t->cell[t->cells++] = cell;
}

size_t table_rows(const struct table *t)
{
    return t->cells / t->columns;
}

/* --- aligned text ----------------------------------------------------------------------------- */

static size_t width_of(const struct table *t, size_t column)
{
    size_t width = utf8_count(t->column[column].title);

    for (size_t r = 0; r < table_rows(t); r++) {
        size_t n = utf8_count(t->cell[r * t->columns + column]);

        width = n > width ? n : width;
    }
    return width;
}

static void pad(struct text *out, size_t n)
{
    while (n-- > 0)
        text_add(out, " ");
}

/* One row; no blanks at the end of the line. `cells` NULL: the titles. */
static void text_row(const struct table *t, const size_t *width, char *const *cells,
                     struct text *out)
{
    for (size_t c = 0; c < t->columns; c++) {
        const char *s = cells ? cells[c] : t->column[c].title;
        size_t blank = width[c] - utf8_count(s);

        if (c > 0)
            text_add(out, "  ");
        if (t->column[c].align == 'r')
            pad(out, blank);
        escape_line(out, s);
        if (t->column[c].align != 'r' && c + 1 < t->columns)
            pad(out, blank);
    }
    while (out->len > 0 && out->data[out->len - 1] == ' ') /* empty cells at the end of a row */
        out->data[--out->len] = '\0';
    text_add(out, "\n");
}

void table_text(const struct table *t, struct text *out)
{
    size_t *width = xcalloc(t->columns, sizeof *width);

    for (size_t c = 0; c < t->columns; c++)
        width[c] = width_of(t, c);
    text_row(t, width, NULL, out);
    for (size_t r = 0; r < table_rows(t); r++)
        text_row(t, width, t->cell + r * t->columns, out);
    free(width);
}

/* --- Markdown and HTML ------------------------------------------------------------------------ */

void table_markdown(const struct table *t, struct text *out)
{
    for (size_t c = 0; c < t->columns; c++) {
        text_add(out, c ? " | " : "| ");
        escape_markdown(out, t->column[c].title);
    }
    text_add(out, " |\n");
    for (size_t c = 0; c < t->columns; c++)
        text_add(out, t->column[c].align == 'r' ? "|---:" : "|---");
    text_add(out, "|\n");
    for (size_t i = 0; i < table_rows(t) * t->columns; i++) {
        text_add(out, i % t->columns ? " | " : "| ");
        escape_markdown(out, t->cell[i]);
        if ((i + 1) % t->columns == 0)
            text_add(out, " |\n");
    }
}

static void html_cell(const struct table *t, size_t column, const char *tag, const char *s,
                      struct text *out)
{
    text_addf(out, "<%s%s>", tag, t->column[column].align == 'r' ? " class=\"r\"" : "");
    escape_xml(out, s);
    text_addf(out, "</%s>", tag);
}

void table_html(const struct table *t, struct text *out)
{
    text_add(out, "<table>\n<thead><tr>");
    for (size_t c = 0; c < t->columns; c++)
        html_cell(t, c, "th", t->column[c].title, out);
    text_add(out, "</tr></thead>\n<tbody>\n");
    for (size_t r = 0; r < table_rows(t); r++) {
        text_add(out, "<tr>");
        for (size_t c = 0; c < t->columns; c++)
            html_cell(t, c, "td", t->cell[r * t->columns + c], out);
        text_add(out, "</tr>\n");
    }
    text_add(out, "</tbody></table>\n");
}
