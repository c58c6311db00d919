/* Parallel arrays of numbers and radii. */
#include "reference/kda_field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The reference's own roundings obey the same recurrence at u = 2^-53, 2^-29 of fp32's; doubled. */
#define OWN_SHARE 0x1p-28

double *kda_doubles(size_t count)
{
    double *p = calloc(count ? count : 1, sizeof(*p));
    if (!p) {
        fprintf(stderr, "out of memory: %zu doubles\n", count);
        abort();
    }
    return p;
}

void kda_field_init(struct kda_field *f, size_t count)
{
    double *p = kda_doubles(4 * count);
    *f = (struct kda_field){
        .count = count,
        .value = p,
        .worst = p + count,
        .spread = p + 2 * count,
        .fixed = p + 3 * count,
    };
}

void kda_field_release(struct kda_field *f)
{
    free(f->value);
    memset(f, 0, sizeof(*f));
}

struct bounded kda_field_at(const struct kda_field *f, size_t i)
{
    double own = OWN_SHARE * f->worst[i];
    return (struct bounded){
        .value = f->value[i],
        .worst = f->worst[i] + own,
        .spread = f->spread[i],
        .fixed = f->fixed[i] + own,
    };
}

double kda_norm(const double *x, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}
