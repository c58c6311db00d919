/*
 * The verdict, from numbers.
 *
 * FAIL: any check that ran found something. The first in this order is the reason, because the
 * earlier ones explain the later: launch, fence, inputs, coverage, keep, golden, repeat, schedule,
 * identity.
 *
 * MISTRUST: nothing is proven wrong, but a broken kernel could have passed:
 *
 *   unbounded  a golden value or its bound is NaN, infinite or missing;
 *   blind      more than half of a buffer's values that are not proven zeros lie within their bound
 *              of zero, so the bounds say nothing (and they are more than 5% of the buffer: three
 *              elements at the edge of underflow among thousands of zeros are no defect);
 *   zero       more than 95% of a buffer's values are zero, and the case does not say so: a kernel
 *              that writes zeros would pass. Zeros that are data, not arithmetic, are EXACT and do
 *              not count; a case means its zeros when a choice of the name "zero" is made
 *              (case_declares_zero());
 *   idle       something was to be written, and all of it was there before the launch already: a
 *              kernel that does nothing would pass;
 *   empty      every element of every buffer that the kernel may write is FREE.
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

#define JUDGE_MOSTLY_ZERO  0.95
#define JUDGE_MOSTLY_BLIND 0.5

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
