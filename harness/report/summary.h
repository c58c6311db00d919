/*
 * The tables of a report.
 */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include "report/compare_view.h"
#include "report/groups.h"

/* One line: how many cases have which verdict. */
void summary_verdicts(enum view view, const struct device_group *g, struct text *out);
/* Per operator: cases, verdicts, largest error/bound. */
void summary_operators(enum view view, const struct device_group *g, struct text *out);
/* Cases that did not pass, with reason and the command that repeats them; nothing when all
   did. */
void summary_failures(enum view view, const struct device_group *g, struct text *out);
void summary_ceilings(enum view view, const struct device_group *g, struct text *out);
/* Numbered as in the figures. */
void summary_times(enum view view, const struct device_group *g, struct text *out);
/* Static resources of the kernels, and of each launch on GB10. */
void summary_resources(enum view view, const struct record_set *set, struct text *out);
/* Where the group's records come from, one line per run. */
void summary_runs(enum view view, const struct device_group *g, struct text *out);

/* The number that a case bears in the tables and figures of its group: cold and hot share it. */
unsigned case_number(const struct device_group *g, const struct bench_record *r);

#endif
