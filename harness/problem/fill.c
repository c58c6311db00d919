#include "problem/fill.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "reference/detmath.h"

const char *const gate_regimes[] = {"model", "lazy",  "strong", "zero",
                                    "one",   "mixed", "lower",  NULL};

/* The independent draws that a regime combines, each a stream of its own below the caller's key. */
enum draw { DRAW_A = 1, DRAW_DT, DRAW_RAW, DRAW_LAZY, DRAW_ULP, DRAW_PICK };

static uint64_t substream(uint64_t key, enum draw what)
{
    return rng_bits(key, UINT64_MAX - (uint64_t)what);
}

/* log(low) + u (log(high) - log(low)), exponentiated. */
static double log_uniform(double u, double low, double high)
{
    double from = det_log(low);
    return det_exp(from + u * (det_log(high) - from));
}

/*
 * log decay = -A softplus(raw + dt_bias), with the per-head A and dt that an initialised model
 * draws: dt log-uniform in 1e-3..0.1 and dt_bias its inverse softplus, dt + log(1 - exp(-dt))
 * (Mamba-2 and flash-linear-attention's gated delta net initialise so). `raw` stands for the
 * projection's output.
 */
static double decay_of_head(uint64_t key, uint64_t i, uint64_t head, double a, double raw_scale)
{
    double dt = log_uniform(rng_uniform(substream(key, DRAW_DT), head), 1e-3, 0.1);
    double dt_bias = dt + det_log(-det_expm1(-dt));
    double raw = raw_scale * rng_normal(substream(key, DRAW_RAW), i);
    return -a * det_softplus(raw + dt_bias);
}

static double model_decay(uint64_t key, uint64_t i, uint64_t head)
{
    return decay_of_head(key, i, head, 16.0 * rng_uniform(substream(key, DRAW_A), head), 1.0);
}

/* Trained models reach exp(A_log) = 201 (FAULTS of this family: unbounded exponents); raw gates
   twice as wide reach log decays of some hundreds, where exp() underflows in fp32. */
static double strong_decay(uint64_t key, uint64_t i, uint64_t head)
{
    double a = log_uniform(rng_uniform(substream(key, DRAW_A), head), 16.0, 201.0);
    return decay_of_head(key, i, head, a, 2.0);
}

/* The float `steps` representable numbers closer to zero than x. */
static double towards_zero(double x, uint32_t steps)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    if ((bits & 0x7fffffffu) >= steps)
        bits -= steps;
    memcpy(&f, &bits, sizeof(f));
    return (double)f;
}

static double draw(enum gate_regime regime, uint64_t key, uint64_t i, uint64_t head, double lower)
{
    switch (regime) {
    case GATE_MODEL:
        return model_decay(key, i, head);
    case GATE_LAZY:
        return -0.2 + (0.2 - 0.001) * rng_uniform(substream(key, DRAW_LAZY), i);
    case GATE_STRONG:
        return strong_decay(key, i, head);
    case GATE_ZERO:
        return lower;
    case GATE_ONE:
        return 0.0;
    case GATE_LOWER:
        return towards_zero(lower, (uint32_t)(rng_bits(substream(key, DRAW_ULP), i) & 1u));
    case GATE_MIXED:
        break;
    }
    uint64_t pick = rng_below(substream(key, DRAW_PICK), i, GATE_ONE + 1);
    return draw((enum gate_regime)pick, key, i, head, lower);
}

double fill_log_decay(enum gate_regime regime, uint64_t key, uint64_t i, uint64_t head,
                      double lower)
{
    double x = draw(regime, key, i, head, lower);
    return x < lower ? lower : x;
}

static void range_check(const struct buffer *b, size_t first, size_t count)
{
    if (first > b->count || count > b->count - first)
        BUG("buffer %s: fill of [%zu, +%zu) of %zu", b->name, first, count, b->count);
}

/* Of unit-variance coordinates: two independent rows then have an inner product near
   offset^2 / (1 + offset^2) = 0.36 instead of 0. */
#define ROW_OFFSET 0.75

static void unit_row(struct buffer *b, uint64_t key, size_t first, size_t dim, double norm)
{
    if (b->hollow)
        return;
    double sum = 0.0;
    for (size_t j = first; j < first + dim; j++) {
        double x = ROW_OFFSET + rng_normal(key, j);
        sum += x * x;
    }
    for (size_t j = first; j < first + dim; j++)
        dtype_store(b->dtype, b->init, j, norm * (ROW_OFFSET + rng_normal(key, j)) / sqrt(sum));
}

void fill_unit_rows(struct buffer *b, uint64_t key, size_t first, size_t rows, size_t stride,
                    size_t dim, bool special)
{
    for (size_t r = 0; r < rows; r++) {
        double norm = 1.0;
        if (special && r % 16 == 5)
            norm = 0.0;
        if (special && r % 16 == 11)
            norm = 1e-3;
        range_check(b, first + r * stride, dim);
        unit_row(b, key, first + r * stride, dim, norm);
    }
}

void fill_normal(struct buffer *b, uint64_t key, size_t first, size_t count, double scale,
                 double offset)
{
    range_check(b, first, count);
    for (size_t i = first; i < first + count && !b->hollow; i++)
        dtype_store(b->dtype, b->init, i, offset + scale * rng_normal(key, i));
}

void fill_uniform(struct buffer *b, uint64_t key, size_t first, size_t count, double low,
                  double high)
{
    range_check(b, first, count);
    for (size_t i = first; i < first + count && !b->hollow; i++)
        dtype_store(b->dtype, b->init, i, low + (high - low) * rng_uniform(key, i));
}
