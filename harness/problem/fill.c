#include "problem/fill.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
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

/* --- many elements at once, on all CPUs: each draws by its own index -------------------------- */

#define PART ((size_t)1 << 18) /* elements; fewer are not worth a thread */

struct span {
    struct buffer *b;
    uint64_t key;
    size_t first, count; /* elements, or rows */
    size_t part;         /* of `count`, for one thread */
    double scale, offset;
    size_t stride, dim;
    bool special;
    void (*fill)(const struct span *s, size_t from, size_t to); /* numbers within `count` */
};

static void fill_part(size_t i, void *ctx)
{
    const struct span *s = ctx;
    size_t from = i * s->part;
    s->fill(s, from, s->count - from < s->part ? s->count : from + s->part);
}

static void fill_span(struct span *s)
{
    if (s->b->hollow)
        return;
    s->part = s->part > 0 ? s->part : 1;
    parallel_for((s->count + s->part - 1) / s->part, 0, fill_part, s);
}

/* Of unit-variance coordinates: two independent rows then have an inner product near
   offset^2 / (1 + offset^2) = 0.36 instead of 0. */
#define ROW_OFFSET 0.75

static void unit_row(const struct span *s, size_t first, double norm)
{
    double sum = 0.0;
    for (size_t j = first; j < first + s->dim; j++) {
        double x = ROW_OFFSET + rng_normal(s->key, j);
        sum += x * x;
    }
    for (size_t j = first; j < first + s->dim; j++)
        dtype_store(s->b->dtype, s->b->init, j,
                    norm * (ROW_OFFSET + rng_normal(s->key, j)) / sqrt(sum));
}

static void unit_rows(const struct span *s, size_t from, size_t to)
{
    for (size_t r = from; r < to; r++) {
        double norm = 1.0;
        if (s->special && r % 16 == 5)
            norm = 0.0;
        if (s->special && r % 16 == 11)
            norm = 1e-3;
        unit_row(s, s->first + r * s->stride, norm);
    }
}

void fill_unit_rows(struct buffer *b, uint64_t key, size_t first, size_t rows, size_t stride,
                    size_t dim, bool special)
{
    struct span s = {
        .b = b,
        .key = key,
        .first = first,
        .count = rows,
        .part = PART / (dim > 0 ? dim : 1),
        .stride = stride,
        .dim = dim,
        .special = special,
        .fill = unit_rows,
    };
    for (size_t r = 0; r < rows; r++)
        range_check(b, first + r * stride, dim);
    fill_span(&s);
}

static void normals(const struct span *s, size_t from, size_t to)
{
    for (size_t i = s->first + from; i < s->first + to; i++)
        dtype_store(s->b->dtype, s->b->init, i, s->offset + s->scale * rng_normal(s->key, i));
}

void fill_normal(struct buffer *b, uint64_t key, size_t first, size_t count, double scale,
                 double offset)
{
    struct span s = {.b = b,
                     .key = key,
                     .first = first,
                     .count = count,
                     .part = PART,
                     .scale = scale,
                     .offset = offset,
                     .fill = normals};
    range_check(b, first, count);
    fill_span(&s);
}

static void uniforms(const struct span *s, size_t from, size_t to)
{
    for (size_t i = s->first + from; i < s->first + to; i++)
        dtype_store(s->b->dtype, s->b->init, i, s->offset + s->scale * rng_uniform(s->key, i));
}

void fill_uniform(struct buffer *b, uint64_t key, size_t first, size_t count, double low,
                  double high)
{
    struct span s = {.b = b,
                     .key = key,
                     .first = first,
                     .count = count,
                     .part = PART,
                     .scale = high - low,
                     .offset = low,
                     .fill = uniforms};
    range_check(b, first, count);
    fill_span(&s);
}
