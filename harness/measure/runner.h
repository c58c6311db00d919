/*
 * A case made ready on a device: problem, golden, kernels, fenced buffers. `verify` and `bench`
 * both drive it:
 *
 *     runner_open
 *     { runner_restore -> runner_launch -> runner_collect -> runner_judge } ...
 *     runner_close
 */
#ifndef MEASURE_RUNNER_H
#define MEASURE_RUNNER_H

#include "device/device.h"
#include "device/kernel_set.h"
#include "problem/operator.h"
#include "record/record.h"

struct runner; /* opaque */
struct nvtx;

struct runner_options {
    const char *golden_dir; /* cache of goldens; NULL: compute, do not store */
    bool golden_read_only;  /* golden_cache_writable() said no */
    unsigned workers;       /* for the reference and the CPU device's blocks; 0 = all CPUs */
    struct nvtx *nvtx;      /* may be NULL */
    /* Told what costs nothing but time, such as a damaged golden that was computed anew; may be
     * NULL. */
    void (*warn)(void *ctx, const char *text);
    /* Told what is done next, for the supervisor; may be NULL. */
    void (*phase)(void *ctx, const char *what);
    void *ctx;               /* of both */
    const char *kernels_dir; /* for the repro command; NULL: our own set */
    /* A runner of the same case on the same device, closed just before or after this one and not
       used in between: its inputs, golden and buffers are used, so that two kernels are compared on
       the very same memory. NULL: none. */
    const struct runner *like;
};

/* ERR_MISSING when a required kernel is absent from the set (a SKIP), ERR_INPUT for impossible
 * dims. */
int runner_open(struct device *dev, struct kernel_set *set, const struct test_case *tc,
                const struct runner_options *opt, struct runner **out, struct err *err);
void runner_close(struct runner *r);

/* Takes the same kernels from another load of the set, where their code lies elsewhere. ERR_INPUT
   when a module's file is no longer the same. */
int runner_rebind(struct runner *r, struct kernel_set *set, struct err *err);

int runner_restore(struct runner *r,
                   struct err *err); /* initial contents and poison onto the device */
/* The same, and the canaries: nothing of what was done to the buffers is left. */
int runner_mend(struct runner *r, struct err *err);
/* In-stream restore of the INOUT and OUT buffers from a device-side copy: cheap, outside a timed
 * window. */
int runner_restore_fast(struct runner *r, struct err *err);
int runner_launch(struct runner *r, struct err *err);  /* enqueues; does not wait */
int runner_collect(struct runner *r, struct err *err); /* waits, downloads every buffer */

/* Judges what was collected: golden, coverage, keep, inputs, fences, identities. Fills verdict,
   reason, failed_check, outputs, checks_run, kernels. A verdict is data: 0 whatever it is, -1 for a
   harness error. */
int runner_judge(struct runner *r, struct verify_record *rec, struct err *err);

const struct problem *runner_problem(const struct runner *r);
void runner_kernels(const struct runner *r, struct kernel_stamp *stamp,
                    unsigned *n); /* with first-launch geometry */

/* The whole verify protocol of one case: repeats, schedules, judge. Fills `rec` whatever happens:
   -1 is an ERROR verdict whose cause is in `err` too. A missing kernel is SKIP, a refused or
   faulting launch FAIL. */
int verify_case(struct device *dev, struct kernel_set *set, const struct test_case *tc,
                const struct runner_options *opt, struct verify_record *rec, struct err *err);

#endif
