/*
 * A comparison as text for a terminal, Markdown for a CI summary, or JSON for programs.
 */
#ifndef REPORT_COMPARE_VIEW_H
#define REPORT_COMPARE_VIEW_H

#include "base/text.h"
#include "record/changes.h"
#include "report/table.h"

enum view { VIEW_TEXT, VIEW_MARKDOWN, VIEW_HTML };

/* A table in one of the three forms. */
void view_table(enum view view, const struct table *t, struct text *out);
/* A heading and a paragraph in one of the three forms. */
void view_heading(enum view view, const char *title, struct text *out);
void view_line(enum view view, const char *line, struct text *out);

/* The whole: summary, warnings, times, verdicts, outputs, resources. */
void comparison_view(enum view view, const struct comparison *c, const struct regress_options *opt,
                     struct text *out);
/* The times alone, worst first: the table under a forest plot. */
void comparison_times(enum view view, const struct comparison *c, struct text *out);

/* One JSON object and a newline. */
void comparison_json(const struct comparison *c, struct text *out);

/* The order in which timings are shown: SLOWER, INVALID, UNSURE, FASTER, SAME, larger
   effects first. `order` has room for c->ntimings pointers. */
void comparison_order(const struct comparison *c, const struct timing_change **order);

#endif
