/*
 * The verdict, from numbers.
 *
 * FAIL: any check that ran found something. The first in this order is the reason, because the
 * earlier ones explain the later: launch, fence, inputs, coverage, keep, golden, repeat, schedule,
 * identity.
 *
 * MISTRUST: nothing is proven wrong, but a broken kernel could have passed:
 *
 *   unbounded  A golden value or its bound is NaN, infinite or missing.
 *
 *   blind      The bounds of a buffer are, together (in the 2-norm), larger than what they are to
 *              prove, or fewer than 5% of the values exceed their own bound (so that one large
 *              value would hide the others): a kernel that writes zeros would pass, or nearly. Some
 *              bounds larger than their values are no defect: an error that was derived per column
 *              holds for its small elements too. Proven zeros take no part, and where 5% or less of
 *              a buffer is anything else this rule is silent.
 *
 *   zero       More than 95% of a buffer's values are zero, and the case does not say so: a kernel
 *              that writes zeros would pass. Zeros that are data, not arithmetic, are EXACT and do
 *              not count; how a case says so: case_declares_zero().
 *
 *   idle       Something was to be written into a buffer, and all of it was there before the
 *              launch already: a kernel that leaves this buffer alone would pass.
 *
 *   empty      Every element of every buffer that the kernel may write is FREE.
 *
 * A case in which everything is to be kept (no accepted row) is none of these: doing nothing is its
 * contract, and doing something is what KEEP catches.
 *
 * A PASS needs none of the above, and the golden check must have run.
 */
#ifndef MEASURE_JUDGE_H
#define MEASURE_JUDGE_H

#include "measure/comparison.h"
#include "problem/problem.h"
#include "record/record.h"

#define JUDGE_MOSTLY 0.95 /* "mostly zero"; its complement is "a few" */

struct evidence {
    uint32_t checks_run;              /* bits 1 << enum check */
    const struct buffer_stats *stats; /* one per buffer; NULL when nothing was collected */
    const char *found[CHECK_COUNT];   /* what launch, fence, repeat, schedule, identity found; NULL:
                                         nothing */
};

/* Fills verdict, reason, failed_check, checks_run of `rec`. */
void judge(const struct problem *p, const struct evidence *ev, struct verify_record *rec);

/* The numbers of one buffer for the record; `bits` is left empty. */
void judge_output(const struct buffer *b, const struct buffer_stats *s, struct output_stat *out);

#endif
