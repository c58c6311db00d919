/*
 * What the data-movement operators share.
 */
#ifndef OPS_KDA_MOVE_COMMON_H
#define OPS_KDA_MOVE_COMMON_H

#include "problem/golden.h"
#include "problem/problem.h"

/* Any bf16 bits but NaN, whose payload the comparison of values does not see: infinities,
   subnormals and zeros of both signs included. */
void fill_any_bf16(struct buffer *b, uint64_t key);

/* Elements [0, n) of a buffer hold exactly `values`. */
void expect_values(struct expectation *e, const float *values, size_t n);

#endif
