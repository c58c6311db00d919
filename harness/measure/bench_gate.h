/*
 * Correctness gates timing: every item is verified first, in worker processes
 * (measure/supervisor.h), so that a kernel that crashes, hangs or loses the GPU's context costs
 * its own row and not the run. Must come before this process opens a GPU: a forked process cannot
 * use a driver that its parent has started.
 */
#ifndef MEASURE_BENCH_GATE_H
#define MEASURE_BENCH_GATE_H

#include "measure/bench_item.h"
#include "measure/benchmark.h"

/* Sets rejected, skipped and reason of the items that are not to be timed, and notes each. */
int bench_gate(const struct benchmark_options *opt, const struct benchmark_sink *sink,
               struct bench_item *item, size_t count, struct err *err);

#endif
