/*
 * One case over time: what each run recorded of it, in order of the runs' start. Runs of
 * different days are shown beside each other, never judged: judging needs interleaved rounds
 * (record/regress.h).
 */
#ifndef REPORT_HISTORY_H
#define REPORT_HISTORY_H

#include "record/store.h"
#include "report/compare_view.h"

struct history_point {
    const struct run_stamp *run;
    const struct bench_record *record;
};

/* One case, temperature and device. */
struct history_series {
    const char *case_text;
    enum temperature temperature;
    const struct device_stamp *device;
    struct history_point *point;
    size_t count;
};

struct history {
    struct history_series *series; /* in order of first appearance */
    size_t count;
};

/* Reads every *.jsonl of the folder into `set`. ERR_INPUT when there is none, or one cannot
   be read. */
int history_read(const char *folder, struct record_set *set, struct err *err);

/* The bench records whose case matches `pattern` (a shell pattern or a part of the text;
   NULL: all). Borrows from `set`. */
void history_make(const struct record_set *set, const char *pattern, struct history *out);
void history_release(struct history *h);

void history_view(enum view view, const struct history *h, struct text *out);

#endif
