/*
 * Projections: C[m,n] = sum_k A[m,k] B[n,k], operands and result bf16.
 *
 * Declared computation: products of two bf16 are exact in fp32 (8 + 8 significant bits),
 * accumulated in fp32 by additions in any tree no deeper than K, fused or not, then one rounding
 * to bf16. It covers gemm, gemv and the batched gemv alike.
 */
#ifndef REFERENCE_KDA_DENSE_H
#define REFERENCE_KDA_DENSE_H

#include <stddef.h>

#include "reference/bounds.h"

/* The element C[m,n] from row m of A and row n of B, each k bf16 values widened to float. */
struct bounded kda_dense_element(const float *a, const float *b, size_t k);

#endif
