/*
 * What `verify` shows: a table in the order of the cases whatever the order they finish in, what
 * did not pass with its reason and the command that repeats it, and a summary.
 */
#ifndef CLI_VERIFY_TABLE_H
#define CLI_VERIFY_TABLE_H

#include <stdio.h>

#include "cli/progress.h"
#include "cli/verify_worker.h"

#define VERDICT_COUNT (VERDICT_ERROR + 1)

struct verify_table {
    struct progress *progress;  /* borrowed */
    size_t count;               /* cases */
    bool quiet;                 /* no table, no summary: the output is something else (--json) */
    bool keep_all;              /* rows that passed are kept too (--junit) */
    struct verify_result **row; /* count; NULL until there, and again when printed and passed */
    bool *arrived;              /* count */
    size_t done, printed;
    size_t verdicts[VERDICT_COUNT];
    size_t resumed;     /* of done: read from an earlier run's file */
    size_t bad_input;   /* ERROR verdicts that are the user's to mend */
    double worst_ratio; /* the largest error/bound of a passed case */
    char worst_case[CASE_MAX_TEXT];
};

void verify_table_init(struct verify_table *t, size_t count, bool quiet, struct progress *p);
void verify_table_release(struct verify_table *t);

/* What the rows below are about; before the first of them. */
void verify_table_head(const struct verify_table *t, const struct device_info *device,
                       const char *kernels_dir);

void verify_table_add(struct verify_table *t, size_t index, const struct verify_result *result,
                      bool resumed);

/* The reasons, the summary line, the exit code. */
int verify_table_finish(struct verify_table *t, double seconds, const char *results_path);

#endif
