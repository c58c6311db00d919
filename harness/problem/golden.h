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
 * a verdict is judged by (the smaller of the two). An infinite, NaN or missing bound is never a
 * pass.
 */
#ifndef PROBLEM_GOLDEN_H
#define PROBLEM_GOLDEN_H

#include "problem/problem.h"

enum expect { EXPECT_KEEP, EXPECT_VALUE, EXPECT_EXACT, EXPECT_FREE };

struct expectation {
    size_t count;    /* elements of the buffer; 0 until golden_open() or a load gave it arrays */
    uint8_t *expect; /* count of enum expect; NULL: all KEEP */
    double *value;   /* count; for VALUE and EXACT; NULL when there are neither */
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

/* Allocates the arrays of buffer `id` (all KEEP, NaN value and bounds) and returns the expectation.
 */
struct expectation *golden_open(struct golden *g, const struct problem *p, int id);
void expect_value(struct expectation *e, size_t i, double value, double worst, double likely);
void expect_exact(struct expectation *e, size_t i, double value);

/* How many VALUE elements there are: the reference chooses its lambda from an upper bound of this.
 */
size_t golden_values(const struct golden *g, const struct problem *p);

/* What element i must hold; KEEP where the arrays are absent. */
enum expect expectation_at(const struct expectation *e, size_t i);

/*
 * The cache: DIR/<hash of the case text>.golden. A header with a key, the arrays, and a checksum
 * over all of it; written under another name and renamed. The key hashes the case text, the
 * operator's reference_version, the sources of the references (reference_digest), the format and
 * the problem's own inputs: a golden that another reference or another fill made is stale, which is
 * as good as absent, and is replaced. The bytes are the same on every little-endian machine.
 */
#define GOLDEN_FORMAT 1
void golden_path(const char *dir, const struct problem *p, char *out, size_t n);
int golden_store(const char *dir, const struct problem *p, const struct golden *g, struct err *err);
/* 0 and `g` filled; 1 when the file is not there or stale; ERR_INPUT names a truncated, corrupt or
   foreign file and says what to do. `g` must be initialised and untouched; it is so again unless 0
   is returned. */
int golden_load(const char *dir, const struct problem *p, struct golden *g, struct err *err);
/* For other people's tools, in DIR: one .npy for the initial contents of each buffer (<name>.init;
   bf16 as its 16 bits, pointer tables left out) and, where something is compared, for what is
   expected of it
   (<name>.expect, the numbers of enum expect), .value, .worst and .likely. */
int golden_export(const char *dir, const struct problem *p, const struct golden *g,
                  struct err *err);

#endif
