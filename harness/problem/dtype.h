/* Element types of kernel buffers, and the exact conversions between them and double. */
#ifndef PROBLEM_DTYPE_H
#define PROBLEM_DTYPE_H

#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_BF16, /* 1-8-7, round to nearest even, NaN becomes 0x7fff like the device */
    DTYPE_F32,
    DTYPE_U32,
    DTYPE_PTR, /* a device pointer, 8 bytes */
};

size_t dtype_size(enum dtype t);
const char *dtype_name(enum dtype t); /* "bf16", "f32", "u32", "ptr" */

uint16_t bf16_from_float(float x);
float bf16_to_float(uint16_t bits);
uint16_t bf16_from_double(double x); /* one rounding, not two */

/* Element i of an array of type t as a double (exact for all but DTYPE_PTR, which is a BUG). */
double dtype_load(enum dtype t, const void *array, size_t i);
/* Rounds to nearest even into element i. */
void dtype_store(enum dtype t, void *array, size_t i, double value);

#endif
