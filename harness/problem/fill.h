/*
 * Input regimes. Everything is a pure function of (seed, name of what is drawn, index), the same
 * bits on every machine. Sources of the regimes: the public faults that milder inputs hid.
 */
#ifndef PROBLEM_FILL_H
#define PROBLEM_FILL_H

#include "problem/problem.h"

/* Names for `struct param.choices`, in this order; ends with NULL. */
extern const char *const gate_regimes[];
enum gate_regime {
    GATE_MODEL,  /* "model": from A_log, dt_bias and a raw gate, as an initialised model: A uniform
                    0..16, dt log-uniform 1e-3..0.1 */
    GATE_LAZY,   /* "lazy": log decay uniform in -0.2..-0.001 */
    GATE_STRONG, /* "strong": exp(A_log) up to 201, decays down to underflow */
    GATE_ZERO,   /* "zero": the decay is exactly 0 (log decay: the lower bound itself, -inf is not
                    drawn) */
    GATE_ONE,    /* "one": the decay is exactly 1 (log decay 0) */
    GATE_MIXED,  /* "mixed": head by head and token by token one of the above */
    GATE_LOWER,  /* "lower": every log decay at or within an ulp of the lower bound */
};

/* A log decay (<= 0) of the regime for element i; `lower` is the most negative value allowed (KDA's
   lower bound; use -1e30 for none). Exact and portable (reference/detmath.h). */
double fill_log_decay(enum gate_regime regime, uint64_t key, uint64_t i, uint64_t head,
                      double lower);

/* Fills `rows` rows of `dim` elements, row r at first + r*stride, with unit L2 norm (before
   rounding to the buffer's type) and a mean offset, so that k k^T is far from diagonal. When
   `special`, row 5 of every 16 is zero and row 11 has norm 1e-3. */
void fill_unit_rows(struct buffer *b, uint64_t key, size_t first, size_t rows, size_t stride,
                    size_t dim, bool special);

/* scale * normal + offset into [first, first+count). */
void fill_normal(struct buffer *b, uint64_t key, size_t first, size_t count, double scale,
                 double offset);
void fill_uniform(struct buffer *b, uint64_t key, size_t first, size_t count, double low,
                  double high);

#endif
