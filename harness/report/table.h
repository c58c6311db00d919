/*
 * Tables: filled cell by cell, written as aligned text, Markdown or HTML.
 *
 *     static const struct column columns[] = {{"case", 'l'}, {"time [us]", 'r'}};
 *     table_init(&t, columns, 2);
 *     table_cell(&t, "%s", name);
 *     table_cell(&t, "%.2f", us);     a row is full after as many cells as there are columns
 *     table_text(&t, &out);
 */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stddef.h>

#include "base/text.h"

struct column {
    const char *title;
    char align; /* 'l' or 'r' */
};

struct table {
    const struct column *column; /* borrowed */
    size_t columns;
    char **cell; /* row by row */
    size_t cells;
};

void table_init(struct table *t, const struct column *column, size_t columns);
void table_release(struct table *t);
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t table_rows(const struct table *t); /* full ones */

void table_text(const struct table *t, struct text *out);
void table_markdown(const struct table *t, struct text *out);
void table_html(const struct table *t, struct text *out);

#endif
