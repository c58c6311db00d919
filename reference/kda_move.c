/* Exact copies. */
#include "reference/kda_move.h"

#include <string.h>

void kda_pack_rows(const float *const part[3], size_t tokens, size_t qkv, float *dst)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < 3; i++)
            memcpy(dst + (3 * t + i) * qkv, part[i] + t * qkv, qkv * sizeof(*dst));
}

void kda_split_rows(const float *src, size_t tokens, size_t qkv, float *const part[3])
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < 3; i++)
            memcpy(part[i] + t * qkv, src + (3 * t + i) * qkv, qkv * sizeof(*src));
}

void kda_fill_values(float *dst, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = value;
}
