/*
 * Comparison: numbers about one buffer after a run, no opinion (measure/judge.h has those).
 *
 * An element's error is |kernel - golden|, its bound the smaller of `likely` and `worst`. NaN
 * counts as an infinite error, and no comparison here is of the kind that NaN slips through.
 */
#ifndef MEASURE_COMPARISON_H
#define MEASURE_COMPARISON_H

#include <stdbool.h>

#include "problem/golden.h"

/* Up to 2^26 terms, each flushed to zero below fp32's normal range (2^-126): a bound no larger than
   this says "zero", whatever the format. */
#define ZERO_BOUND 0x1p-100

/* How many elements have some property, and the first that has. */
struct tally {
    size_t count, first;
};

struct buffer_stats {
    size_t values, exacts, keeps,
        frees; /* the expectations; they add up to the buffer's elements */

    struct tally unwritten; /* VALUE or EXACT, still poison (OUT only) */
    struct tally kept_bad;  /* KEEP, but the bits changed */
    struct tally exact_bad; /* EXACT, but other bits */
    struct tally value_bad; /* VALUE with !(error <= bound) */
    struct tally nans;      /* of value_bad: the kernel's value is NaN */
    struct tally
        unbounded; /* VALUE whose golden or bound is NaN or infinite, or whose bound is < 0 */

    /* What a VALUE proves; the rest of them are sharp: a kernel that writes 0 would be caught
     * there. */
    size_t exact_zeros; /* golden is exactly 0 */
    size_t zeros;       /* |golden| <= bound <= ZERO_BOUND: a proven zero */
    size_t blind;       /* |golden| <= bound, and the bound is larger than that */
    size_t sharp;       /* |golden| > bound: a kernel that writes 0 would be caught here */
    double golden_norm2, bound_norm2; /* sums of squares over the blind and the sharp ones */
    size_t idle; /* VALUE and EXACT that the contents before the launch satisfy already */

    double max_error;    /* infinite when NaN was met */
    double ratio_likely; /* max error/likely; 0/0 is 0, x/0 is infinite; infinite with exact_bad */
    double ratio_worst;
    size_t at;                        /* the VALUE element with the largest error/bound */
    double value, golden, bound;      /* of that element */
    double exact_value, exact_golden; /* of exact_bad.first */
};

/* `before` and `after` are the buffer's contents around the run. */
void compare_buffer(const struct buffer *b, const struct expectation *e, const void *before,
                    const void *after, struct buffer_stats *out);

/* Two runs of the same problem: true when all bits that are not FREE agree; else *first is the
   first element that differs. */
bool compare_runs(const struct buffer *b, const struct expectation *e, const void *one,
                  const void *other, size_t *first);

#endif
