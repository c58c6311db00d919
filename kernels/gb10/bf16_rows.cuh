/* Rows of bf16 read eight at a time: 16-byte loads, so rows and their bases are 16-byte aligned. */
#ifndef BF16_ROWS_CUH
#define BF16_ROWS_CUH

#include <cuda_bf16.h>

#define BF16_VECTOR 8 /* elements of a 16-byte load */

/* The two bf16 of a word, exactly; the element at the lower address is the low half. */
__device__ __forceinline__ float bf16_low(unsigned word)
{
    return __uint_as_float(word << 16);
}

__device__ __forceinline__ float bf16_high(unsigned word)
{
    return __uint_as_float(word & 0xffff0000u);
}

/* Vector `i` of a row. The operand is not written by the kernel that calls this. */
__device__ __forceinline__ uint4 bf16_vector(const __nv_bfloat16 *row, size_t i)
{
    return __ldg(reinterpret_cast<const uint4 *>(row) + i);
}

#endif
