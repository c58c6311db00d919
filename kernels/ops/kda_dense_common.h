/*
 * What the four projection operators share: C[m,n] = sum_k A[m,k] B[n,k] over buffers A, B, C in
 * this order.
 */
#ifndef OPS_KDA_DENSE_COMMON_H
#define OPS_KDA_DENSE_COMMON_H

#include "kernels/ops/kda_dense_launch.h"
#include "problem/operator.h"
#include "reference/bounds.h"

enum { DENSE_A, DENSE_B, DENSE_C };

extern const char *const dense_fills[]; /* choices of the parameter "fill" */
#define DENSE_CONTRACT                                                                             \
    "bf16 operands and result; exact products accumulated in fp32 in any tree of depth <= K, "     \
    "multiply-adds fused or not; one rounding to bf16"

/* Adds and fills A [m,k] and B [n,k]; adds C [m, n + gap]. Reads the parameters n, k and fill:
   unit    rows of norm 1 with a mean offset, zero rows (number % 16 == 5) and of norm 1e-3 (== 11)
   normal  independent elements of unit variance
   cancel  the second half of a row all but cancels the first, so that fp32 roundings reach the bf16
           result: two orders of additions show in the bits, as bitwise contracts need
   scaled  normal, rows of A and B times powers of two from 2^-40 to 2^40: fp16 would not hold them
   integer from -8 to 8: sums are exact in any order, so the result's bits are known, and many a sum
           is halfway between two bf16, where the nearest even one is the result */
int dense_shape(struct problem *p, uint32_t m, uint32_t gap, struct err *err);

/* The arguments of m rows; out_stride is the caller's to set. */
struct kda_dense_args dense_args_of(const struct operator_run *run, uint32_t m);

/* Expects in buffer `out`, row m at m * stride, what `element` makes of a row of A and a row of B:
   sum_k A[m,k] B[n,k] with its bounds. */
void dense_expect(const struct problem *p, const struct reference_env *env,
                  struct bounded (*element)(const float *a, const float *b, size_t k),
                  struct golden *g, int out, uint32_t m, size_t stride);

/* A and B read once, C written once. */
void dense_cost(const struct problem *p, uint32_t m, struct cost *cost);

#endif
