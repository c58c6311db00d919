/* Inputs and expectations of exact copies. */
#include "kernels/ops/kda_move_common.h"

#include "base/rng.h"

void fill_any_bf16(struct buffer *b, uint64_t key)
{
    uint16_t *bits = b->init;

    for (size_t i = 0; i < b->count; i++) {
        uint16_t drawn = (uint16_t)rng_bits(key, i);
        float value = bf16_to_float(drawn);

        bits[i] = value == value ? drawn : (uint16_t)(drawn & 0xff80u); /* NaN to infinity */
    }
}

void expect_values(struct expectation *e, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_exact(e, i, (double)values[i]);
}
