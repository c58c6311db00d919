/*
 * A golden: for every buffer that a launch may change, what each element must hold afterwards.
 *
 *   KEEP   the bits it had before (an untouched pad, a state with na = 0, every input)
 *   VALUE  a number within a bound of the reference's fp64 value
 *   EXACT  one bit pattern: value rounded to the buffer's type (data movement, flags)
 *   FREE   anything
 *
 * Two bounds per VALUE element, both on |kernel - value| and both derived (reference/bounds.h):
 * `worst` no conforming kernel can exceed; `likely` holds with a stated probability and is what
 * a verdict is judged by (the smaller of the two). An infinite, NaN or missing bound is never a pass.
 */
#ifndef PROBLEM_GOLDEN_H
#define PROBLEM_GOLDEN_H

#include "problem/problem.h"

enum expect { EXPECT_KEEP, EXPECT_VALUE, EXPECT_EXACT, EXPECT_FREE };

struct expectation {
    uint8_t *expect; /* count of enum expect; NULL: all KEEP */
    double *value;   /* count; for VALUE and EXACT */
    float *worst;    /* count; for VALUE, rounded up */
    float *likely;   /* count; for VALUE, rounded up */
};

struct golden {
    unsigned count; /* one expectation per buffer of the problem, same order */
    struct expectation of[PROBLEM_MAX_BUFFERS];
};

void golden_init(struct golden *g,
                 const struct problem *p); /* every buffer: all KEEP; SCRATCH: FREE */
void golden_release(struct golden *g);

/* Allocates the arrays of buffer `id` (all KEEP, NaN value and bounds) and returns the expectation. */
struct expectation *golden_open(struct golden *g, const struct problem *p, int id);
void expect_value(struct expectation *e, size_t i, double value, double worst, double likely);
void expect_exact(struct expectation *e, size_t i, double value);

/* How many VALUE elements there are: the reference chooses its lambda from an upper bound of this. */
size_t golden_values(const struct golden *g, const struct problem *p);

/*
 * The cache: DIR/<key>.golden, where the key hashes the case text, the operator's reference_version and
 * the format. A header (magic, version, counts), the arrays, and a checksum over all of it; written
 * atomically. ERR_INPUT names a truncated or corrupt file. golden_load() returns 1 when it is not there.
 */
int golden_store(const char *dir, const struct problem *p, const struct golden *g, struct err *err);
int golden_load(const char *dir, const struct problem *p, struct golden *g, struct err *err);
/* One .npy each for value, worst and likely of each buffer, for other people's tools. */
int golden_export(const char *dir, const struct problem *p, const struct golden *g,
                  struct err *err);

#endif
