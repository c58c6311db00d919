/* The golden of a problem: from the cache when it is there and sound, else from the reference. */
#ifndef MEASURE_GOLDEN_CACHE_H
#define MEASURE_GOLDEN_CACHE_H

#include <stdbool.h>

#include "problem/golden.h"

struct golden_source {
    const char *dir;  /* NULL: compute, do not store */
    unsigned workers; /* of the reference; 0 = all CPUs */
    /* Store only what takes longer to compute than to read back: most of the cases' time, a part of
     * their bytes. */
    bool only_slow;
    bool read_only; /* store nothing, for golden_cache_writable() said no */
    /* Told of a damaged file (it is computed anew and replaced) and of one that cannot be written;
     * may be NULL. */
    void (*warn)(void *ctx, const char *text);
    void *ctx;
};

/* Initialises and fills `g`. *cached: it came from the cache; *seconds: what the reference took, 0
 * then. */
int golden_obtain(const struct problem *p, const struct golden_source *src, struct golden *g,
                  bool *cached, double *seconds, struct err *err);

/* Can goldens be stored in the folder, which is made when it is not there? False with the reason:
   asked once, it spares a warning a golden. */
bool golden_cache_writable(const char *dir, struct err *why);

/* Monotonic wall clock in seconds. */
double wall_seconds(void);

#endif
