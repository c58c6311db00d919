/*
 * One self-contained HTML page: tables and figures as inline SVG, no script, no outside resource;
 * readable in black and white and on paper.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "base/text.h"

void page_open(struct text *out, const char *title);
void page_close(struct text *out);
void page_section(struct text *out, const char *title); /* an <h2> */
/* Opens a figure with its caption; the caller appends the SVG and closes it. */
void page_figure_open(struct text *out, const char *caption);
void page_figure_close(struct text *out, const char *note);

#endif
