#include "problem/dtype.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

size_t dtype_size(enum dtype t)
{
    switch (t) {
    case DTYPE_BF16:
        return 2;
    case DTYPE_F32:
    case DTYPE_U32:
        return 4;
    case DTYPE_PTR:
        return 8;
    }
    BUG("dtype %d", (int)t);
}

const char *dtype_name(enum dtype t)
{
    switch (t) {
    case DTYPE_BF16:
        return "bf16";
    case DTYPE_F32:
        return "f32";
    case DTYPE_U32:
        return "u32";
    case DTYPE_PTR:
        return "ptr";
    }
    BUG("dtype %d", (int)t);
}

static uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Adding half of the dropped part, less one when the kept part is even, carries exactly when
   round-to-nearest-even rounds up; the carry runs into the exponent, and from the largest finite
   number into infinity, as it should. */
static uint16_t round_upper_half(uint32_t bits)
{
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

uint16_t bf16_from_float(float x)
{
    if (isnan(x))
        return 0x7fff;
    return round_upper_half(float_bits(x));
}

float bf16_to_float(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}

/*
 * Rounding a double to float and the float to bf16 would round twice. Rounding the first step "to
 * odd" (truncate, and set the last bit when anything was lost) keeps the lost part visible to the
 * second, which is then the only one that rounds; float's 24 bits are more than the 8 + 2 this
 * needs.
 */
uint16_t bf16_from_double(double x)
{
    if (isnan(x))
        return 0x7fff;
    float f = (float)x;
    uint32_t bits = float_bits(f);
    if ((double)f != x && !isinf(x)) {
        if (fabs((double)f) > fabs(x))
            bits--; /* one float towards zero: sign and magnitude makes that a decrement */
        bits |= 1u;
    }
    return round_upper_half(bits);
}

double dtype_load(enum dtype t, const void *array, size_t i)
{
    switch (t) {
    case DTYPE_BF16:
        return (double)bf16_to_float(((const uint16_t *)array)[i]);
    case DTYPE_F32:
        return (double)((const float *)array)[i];
    case DTYPE_U32:
        return (double)((const uint32_t *)array)[i];
    case DTYPE_PTR:
        break;
    }
    BUG("dtype_load of %s", dtype_name(t));
}

/* Nearest even, saturating: a value outside the type's range cannot be what the caller meant, but
   the conversion must not be undefined. */
static uint32_t u32_from_double(double value)
{
    if (!(value > 0.0))
        return 0;
    if (value >= (double)UINT32_MAX)
        return UINT32_MAX;
    double below = floor(value), rest = value - below;
    uint32_t n = (uint32_t)below;
    return n + (rest > 0.5 || (rest == 0.5 && (n & 1u)));
}

void dtype_store(enum dtype t, void *array, size_t i, double value)
{
    switch (t) {
    case DTYPE_BF16:
        ((uint16_t *)array)[i] = bf16_from_double(value);
        return;
    case DTYPE_F32:
        ((float *)array)[i] = (float)value;
        return;
    case DTYPE_U32:
        ((uint32_t *)array)[i] = u32_from_double(value);
        return;
    case DTYPE_PTR:
        break;
    }
    BUG("dtype_store of %s", dtype_name(t));
}
