/* What `deltarig bench` prints: the ceilings, the table of times, the outcome of A/A
   comparisons. */
#ifndef CLI_BENCH_VIEW_H
#define CLI_BENCH_VIEW_H

#include "record/record.h"
#include "record/regress.h"
#include "report/table.h"

/* The table of times; rows in the order in which the records come. */
void bench_table_init(struct table *t);
void bench_table_add(struct table *t, const struct bench_record *r);

void print_ceiling(const struct ceiling_record *r);
void print_table(const struct table *t);

/* The rounds of every record, by comparison, row and side. */
struct aa {
    unsigned repeats, reported, called; /* called: SLOWER or FASTER among those reported */
    size_t rows, capacity;              /* of one comparison: cases times temperatures */
    unsigned count[CHANGE_INVALID + 1]; /* verdicts of those reported */
    char (*name)[600];                  /* per row */
    struct rounds *rounds;              /* [row][repeat][side] */
    double *detectable; /* of each row of each reported repeat, as struct regress_result */
    size_t ndetectable;
};

void aa_init(struct aa *a, unsigned repeats);
void aa_release(struct aa *a);
void aa_add(struct aa *a, unsigned repeat, unsigned side, const struct bench_record *r);

/* Judges a repeat as one suite and prints what was called in it. */
void aa_report(struct aa *a, unsigned repeat);
/* The totals of what was reported. */
void aa_total(const struct aa *a);

#endif
