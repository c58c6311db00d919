/* What a runner holds: for runner.c, runner_judge.c and verify.c only. */
#ifndef MEASURE_RUNNER_STATE_H
#define MEASURE_RUNNER_STATE_H

#include "device/fence.h"
#include "measure/runner.h"

struct runner {
    struct device *device;
    struct runner_options opt;
    bool borrows; /* problem, golden and all buffers are another runner's */
    struct problem problem;
    struct golden golden;
    const struct kernel *kernel[OPERATOR_MAX_ENTRIES];

    unsigned nbuffers; /* of the arrays below, as far as they were made */
    struct fenced fenced[PROBLEM_MAX_BUFFERS];
    dev_ptr ptr[PROBLEM_MAX_BUFFERS];  /* what the kernels get */
    void *image[PROBLEM_MAX_BUFFERS];  /* contents before a launch; pointer tables resolved */
    void *after[PROBLEM_MAX_BUFFERS];  /* contents after the last collected launch */
    dev_ptr copy[PROBLEM_MAX_BUFFERS]; /* device-side image for the fast restore; 0 until used */
    struct fenced poison;              /* where poisoned pointers point, on the CPU device */

    struct launch_watch watch;
    unsigned nseen; /* kernels that were launched */
    const struct kernel *seen[RECORD_MAX_KERNELS];
    struct kernel_stamp stamp[RECORD_MAX_KERNELS];

    double reference_s, device_s;
    bool golden_cached;
};

void runner_phase(const struct runner *r, const char *what);

/* Names the case, the device and the command that repeats it in an otherwise empty record. */
void runner_record_init(struct verify_record *rec, const struct test_case *tc,
                        const char *device_spec, const char *kernels_dir);

#endif
