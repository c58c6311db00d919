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
 *   blind      the bounds of a buffer say too little: together (in the 2-norm) they are larger than
 *              half of what they are to prove, so that a kernel wrong by half would pass; or fewer
 *              than 5% of the values exceed their bound, so that one large value would hide it.
 * Some bounds larger than their values are no defect: an error that was derived per column holds
 * for its small elements too. Proven zeros take no part, and a buffer that has 5% or less of
 * anything else is none of this rule's business; zero       more than 95% of a buffer's values are
 * zero, and the case does not say so: a kernel that writes zeros would pass. Zeros that are data,
 * not arithmetic, are EXACT and do not count; a case means its zeros when a choice of the name
 * "zero" is made (case_declares_zero()); idle       something was to be written, and all of it was
 * there before the launch already: a kernel that does nothing would pass; empty      every element
 * of every buffer that the kernel may write is FREE.
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

#define JUDGE_MOSTLY   0.95 /* "mostly zero"; its complement is "a few" */
#define JUDGE_WRONG_BY 0.5  /* of the golden's norm: what bounds must not let pass */

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
