/*
 * A case's launches without a launch: its launcher runs against a device that only writes down
 * what it is asked. So every launch of every case is held against GB10's limits on any machine,
 * with the registers and the shared memory that the kernels really take there.
 */
#ifndef MEASURE_DRY_RUN_H
#define MEASURE_DRY_RUN_H

#include "device/kernel_set.h"
#include "measure/device_sheet.h"
#include "measure/static_resources.h"
#include "problem/test_case.h"

#define DRY_RUN_ARCH "sm_121"

struct dry_run {
    struct kernel_set *set;            /* of the CPU device: the kernels' signatures */
    const struct resources *resources; /* may be empty: then geometry alone is judged */
    const struct device_sheet *sheet;  /* GB10's */
};

/* Calls `seen` for each launch of the case, once a kernel and geometry, with occupancy filled
   in; for a launch that GB10 or the launcher refuses once with `refused` set, and no launch
   after it. Stops with -1 when `seen` does. ERR_MISSING when the set lacks a required kernel. */
int dry_run_case(const struct dry_run *d, const struct test_case *tc,
                 int (*seen)(void *ctx, const struct resources_record *r, struct err *err),
                 void *ctx, struct err *err);

#endif
