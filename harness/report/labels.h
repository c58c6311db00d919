/*
 * Labels of figures: cases by what tells them apart, numbers beside crowded points.
 */
#ifndef REPORT_LABELS_H
#define REPORT_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "report/groups.h"

/* The operator of `all[i]` and those of its parameters in which it differs from some other case
   of the same operator among `all`; a lone case keeps them all. At most `n` characters. */
void label_case(const char *const *all, size_t count, size_t i, size_t n, struct text *out);

/* The same for a case of a group, quoted for gnuplot. */
void label_bench(const struct device_group *g, const struct bench_record *r, size_t n,
                 struct text *out);

/* A point that wants a label of `width` by `height` beside it, in pixels. */
struct label_spot {
    double x, y;          /* the point */
    double width, height; /* of the label */
    double at_x, at_y;    /* out: the label's centre */
    bool led;             /* out: so far off that it needs a line to its point */
};

/* An area that labels keep out of, by its centre. */
struct label_mark {
    double x, y, width, height;
};

/* Finds a place for every label within (0, 0) to (width, height) where it covers neither a mark nor
   another label, near its point if it can be; where there is none on the page it stays beside its
   point. */
void label_place(struct label_spot *spot, size_t spots, const struct label_mark *mark, size_t marks,
                 double width, double height);

#endif
