/*
 * How many cases gave the same output bits on two devices. Made for the CPU device beside a GPU
 * whose kernels were compiled without fused multiply-add: where a kernel only adds, multiplies and
 * rounds, both must agree to the last bit; where it calls exp or a matrix unit they may differ. So
 * this counts and judges nothing. Pure, and without a GPU.
 */
#ifndef RECORD_BITS_H
#define RECORD_BITS_H

#include "record/store.h"

/* One buffer of one operator. */
struct bits_row {
    const char *op, *buffer;
    size_t equal, of; /* cases with equal bits, of those that both sides hold bits for */
    /* The first text among the cases whose bits differ, NULL when none does: workers record cases
       in any order, the answer must not depend on it. */
    const char *first_differ;
};

/* Borrows from both sets. */
struct bits_comparison {
    struct bits_row *row; /* by operator, then buffer */
    size_t nrows;
    const struct device_stamp *base, *next; /* NULL for a side without verdicts */
    size_t cases;                           /* of which at least one buffer was compared */
    size_t left_out; /* cases that one side lacks, or in which nothing was to be written */
};

/*
 * Compares the last verify record of each case, buffer by buffer; buffers in which nothing was
 * compared with a golden hold no bits. ERR_INPUT when one side was recorded on two devices; base
 * and new may be different ones.
 */
int bits_compare(const struct record_set *base, const struct record_set *next,
                 struct bits_comparison *out, struct err *err);
void bits_release(struct bits_comparison *c);

/* Over all rows. */
size_t bits_equal(const struct bits_comparison *c);
size_t bits_compared(const struct bits_comparison *c);

#endif
