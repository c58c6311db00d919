/* Inputs and expectations of exact copies. */
#include "kernels/ops/kda_move_common.h"

#include "base/rng.h"

/* What arithmetic on the way would change, where random bits seldom are: -0, the smallest and the
   largest subnormal, the smallest normal and the largest number, infinity. */
static const uint16_t awkward[] = {0x8000, 0x0001, 0x807f, 0x0080, 0x7f7f, 0xff80};

#define AWKWARD_EVERY 16 /* elements; one of them comes from the list */

void fill_any_bf16(struct buffer *b, uint64_t key)
{
    uint16_t *bits = b->init;

    for (size_t i = 0; i < b->count && !b->hollow; i++) {
        uint64_t random = rng_bits(key, i);
        uint16_t drawn = (uint16_t)random;
        if ((random >> 16) % AWKWARD_EVERY == 0)
            drawn = awkward[(random >> 32) % (sizeof(awkward) / sizeof(awkward[0]))];
        float value = bf16_to_float(drawn);

        bits[i] = value == value ? drawn : (uint16_t)(drawn & 0xff80u); /* NaN to infinity */
    }
}

void expect_values(struct expectation *e, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_exact(e, i, (double)values[i]);
}
