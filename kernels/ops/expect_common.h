/*
 * What operators share between a reference's `struct bounded` and a golden's expectation.
 */
#ifndef OPS_EXPECT_COMMON_H
#define OPS_EXPECT_COMMON_H

#include "problem/golden.h"
#include "problem/problem.h"
#include "reference/bounds.h"

/* The likelihood factor of a verdict that compares `values` values. */
double verdict_lambda(size_t values);

/* Element i is within the bounds of b. */
void expect_bounded(struct expectation *e, size_t i, struct bounded b, double lambda);

/* A copy of the initial contents of a float-typed buffer, widened; free() it. */
float *buffer_floats(const struct buffer *b);

/* A copy of buffer `from`'s initial contents into buffer `to`, of the same type and count. */
void buffer_copy(struct buffer *to, const struct buffer *from);

/* Elements [first, first + count), whole rows of `channels` value channels. Neither values nor
   errors pass from one value channel to another, so each may have a size of its own: one in 16 is
   2^20, beyond fp16's largest number, and one 2^-20, below its smallest normal one. A detour by
   fp16 shows. */
void scale_value_channels(struct buffer *b, size_t channels, size_t first, size_t count);

/* Adds a buffer of one or two dims; the last pair may be { NULL, 0 }. */
int add_rows(struct problem *p, const char *name, enum dtype dtype, enum role role,
             struct dim outer, struct dim inner, struct err *err);

#endif
