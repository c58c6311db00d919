/*
 * Data movement of a KDA block: exact, no bound. Widening bf16 to fp32 changes no value, so all
 * values are given as float.
 */
#ifndef REFERENCE_KDA_MOVE_H
#define REFERENCE_KDA_MOVE_H

#include <stddef.h>

/* dst [tokens, 3 * qkv] = q | k | v, each [tokens, qkv]. */
void kda_pack_rows(const float *const part[3], size_t tokens, size_t qkv, float *dst);

/* The inverse: src [tokens, 3 * qkv] into three arrays [tokens, qkv]. */
void kda_split_rows(const float *src, size_t tokens, size_t qkv, float *const part[3]);

void kda_fill_values(float *dst, size_t n, float value);

#endif
