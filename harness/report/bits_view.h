/*
 * Equal output bits on two devices, as text for a terminal, Markdown, or JSON for programs.
 */
#ifndef REPORT_BITS_VIEW_H
#define REPORT_BITS_VIEW_H

#include "record/bits.h"
#include "report/compare_view.h"

/* The devices, the table of operators and buffers, a closing line. */
void bits_view(enum view view, const struct bits_comparison *c, struct text *out);

/* One JSON object and a newline. */
void bits_json(const struct bits_comparison *c, struct text *out);

#endif
