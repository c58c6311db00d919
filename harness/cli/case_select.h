/* Which cases a command works on: one typed, or those of the case files that match. */
#ifndef CLI_CASE_SELECT_H
#define CLI_CASE_SELECT_H

#include "cli/options.h"
#include "problem/test_case.h"

struct case_selection {
    const char *text;             /* --case: this one alone; NULL: from the files */
    const char *dir;              /* --cases; NULL: the project's own */
    const char *tiers;            /* --tier: "smoke", "full" (smoke too), "perf" or "all" */
    const char *usual;            /* the tiers when --tier is not given: NULL */
    const struct words *patterns; /* a case that matches any of them; none: all */
};

#define TIER_HELP "smoke, full (smoke too; the default), perf, all"

/* In the order of the files' names and lines; a case that is in several of the tiers comes once.
   The list may be empty. ERR_INPUT for a malformed case, file or tier, for a folder without case
   files, and for options that exclude each other. */
int cases_select(const struct case_selection *sel, struct case_list *out, struct err *err);

/* One line that says where no case was found, and EXIT_NOTHING. */
int cases_none(const struct case_selection *sel);

#endif
