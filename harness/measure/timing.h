/*
 * The timing engine. It does no I/O and knows neither cases nor operators: it times a `struct
 * timing_subject` and returns samples.
 *
 * A sample is one window between two events:
 *
 *   cold   restore, read a buffer of EVICT_FACTOR times the L2, START, one run, STOP
 *   hot    restore, read that buffer, one run, START, a graph of n runs, STOP; us = window / n
 *
 * The buffer is read before the start event, never in the window. It also keeps the GPU busy
 * while the CPU enqueues what follows: else a window would hold the CPU's launch latency. `n`
 * makes a hot window at least params.window_us long, so that event ticks and the cost of a window
 * vanish in it. In-place state is restored before each sample; within a hot graph it runs on from
 * run to run.
 *
 * A window costs something even around nothing. The rig measures that once, around an empty
 * kernel, and takes from every window what it costs beyond the empty kernel's own duration. That
 * duration cannot be seen through events: back to back in a graph, empty kernels overlap in part,
 * and their period (launch_overhead_us) is shorter. A device sheet may state it as a profiler
 * measured it (timing_rig_empty_kernel()); cold times are then on the profiler's scale. Without
 * it the period stands in, and cold times read about a microsecond less than a profiler's.
 *
 * The CPU device has no cache to empty and no queue to keep busy: a sample is the wall time of
 * one run.
 */
#ifndef MEASURE_TIMING_H
#define MEASURE_TIMING_H

#include <stdbool.h>

#include "device/device.h"
#include "measure/clocks.h"
#include "record/record.h"
#include "record/stats.h"

/* Times the L2: what LRU-like policies keep of the old contents is then negligible. */
#define EVICT_FACTOR 3

/* What is timed. Both functions enqueue on the device and do not wait. */
struct timing_subject {
    int (*launch)(void *ctx, struct err *err);
    int (*restore)(void *ctx, struct err *err); /* NULL: nothing to put back */
    void *ctx;
};

struct timing_params {
    enum temperature temperature;
    unsigned rounds; /* the budget is divided among them */
    double budget_s; /* wall seconds over all rounds; at least min_per_round samples are taken
                        in each round whatever they cost, of a long run one */
    unsigned min_per_round;
    double long_run_us;
    unsigned max_per_round;
    double precision;      /* the goal: timing_interval() this close to the median */
    double window_us;      /* least length of a hot window */
    unsigned max_launches; /* most runs of a hot graph */
};

/* The defaults of `deltarig bench` on a GPU and on the CPU device. */
struct timing_params timing_params_default(const struct device_info *info, enum temperature t);

/* What all subjects of a device share. */
struct timing_rig {
    struct device *device;
    struct clocks *clocks; /* borrowed; NULL: no readings */
    struct event *start, *stop;
    const struct kernel *read, *empty;
    dev_ptr evict, sink;
    size_t evict_bytes; /* 0 on the CPU device */
    double evict_us;    /* time of one pass over it */
    /* Measured by timing_rig_open(): */
    double launch_overhead_us; /* an empty kernel in a graph of many: the least a launch costs */
    double empty_window_us;    /* a window around one empty kernel */
    double window_cost_us;     /* what it costs beyond the kernel; subtracted from every window */
    double event_tick_us; /* smallest step seen between two windows' lengths; NAN if none was */
    struct clock_reading reading; /* the last one, and when it was taken (monotonic seconds) */
    double reading_at_s;
};

/* `read` and `empty` are bench_read and bench_empty of kernels/bench; the CPU device needs
   only `empty`. Warms the device up first. */
int timing_rig_open(struct device *dev, const struct kernel *read, const struct kernel *empty,
                    struct clocks *clocks, struct timing_rig *rig, struct err *err);
/* Tells the rig what one empty kernel takes by itself, as a profiler measured it. */
void timing_rig_empty_kernel(struct timing_rig *rig, double us);
void timing_rig_close(struct timing_rig *rig);

/* The samples of one subject, over all rounds. */
struct timing {
    struct timing_params params;
    struct timing_subject subject;
    struct graph *one, *many; /* NULL on the CPU device; `many` is `one` when launches is 1 */
    unsigned launches;        /* runs per sample */
    unsigned fillers;         /* passes over the evict buffer before a window */
    double first_launch_us;   /* wall time of the very first run, waiting included */
    double estimate_us;       /* of one run, from the warm-up */
    double spent_s;
    struct bench_sample *sample; /* owned */
    unsigned nsamples, capacity;
};

/* Runs the subject a few times (first launch, warm-up, estimate) and records the graphs. */
int timing_begin(struct timing_rig *rig, const struct timing_subject *subject,
                 const struct timing_params *params, struct timing *t, struct err *err);
/* Records the graphs anew, because what the subject launches has changed; runs each once, outside
   any window. */
int timing_renew(struct timing_rig *rig, struct timing *t, struct err *err);
/* True when more samples of the same round would tell nothing new: the interval of the median that
   takes all samples as alike is within the precision. */
bool timing_round_has_enough(const struct timing *t);
/* True while the interval is open and the budget not spent: another round is worth its time. */
bool timing_wants_more(const struct timing *t);
/* Takes the samples of one round. */
int timing_round(struct timing_rig *rig, struct timing *t, unsigned round, struct err *err);
/* Runs once more what was timed, outside any window, so that its outputs can be judged: the
   graph of many, or with `single` that of one run (when runs build on one another). Does not
   restore and does not wait. */
int timing_replay(const struct timing *t, bool single, struct err *err);
void timing_end(struct timing *t); /* frees graphs and samples; safe to call twice */

/* The 95% interval of the samples' median, their rounds drawn whole. */
struct interval timing_interval(const struct bench_sample *sample, unsigned n);
/* True when an interval is within `precision` of the median on either side. NaN never is. */
bool timing_is_close(struct interval i, double median, double precision);
/* The two together, for these samples. */
bool timing_converged(const struct bench_sample *sample, unsigned n, double precision);

double timing_now_s(void); /* monotonic */

#endif
