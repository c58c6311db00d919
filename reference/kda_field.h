/*
 * Numbers with their error radii as parallel arrays, and the arithmetic that the KDA references do
 * on them: struct bounded of bounds.h for loops.
 */
#ifndef REFERENCE_KDA_FIELD_H
#define REFERENCE_KDA_FIELD_H

#include <math.h>
#include <stddef.h>

#include "reference/bounds.h"

struct kda_field {
    size_t count;
    double *value, *worst, *spread, *fixed; /* one allocation, owned */
};

void kda_field_init(struct kda_field *f, size_t count); /* zero; aborts without memory */
void kda_field_release(struct kda_field *f);
/* Element i; the error of the reference's own fp64 arithmetic, far below the fp32 radii, is
   added. */
struct bounded kda_field_at(const struct kda_field *f, size_t i);

/* `count` zeros, for free(); aborts without memory. */
double *kda_doubles(size_t count);

double kda_norm(const double *x, size_t n); /* 2-norm */

static inline double kda_square(double x)
{
    return x * x;
}

/* The smaller; NaN when either is. */
static inline double kda_least(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

#endif
