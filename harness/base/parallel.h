/*
 * A parallel for. Each index runs exactly once, on some thread; results must not depend on which
 * (every caller writes to its own index only), so the outcome is the same for any worker count.
 */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>

/* Number of CPUs this process may run on (affinity respected); at least 1. */
unsigned parallel_cpus(void);

/* Runs body(i, ctx) for i in [0, count) on `workers` threads (0 = parallel_cpus()); returns
   when all are done. */
void parallel_for(size_t count, unsigned workers, void (*body)(size_t i, void *ctx), void *ctx);

#endif
