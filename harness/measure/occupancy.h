/*
 * How many blocks of a launch one multiprocessor holds at a time, by the rules of NVIDIA's
 * occupancy calculation (CUDA C++ Programming Guide, "Hardware Multithreading"): registers are
 * handed out per warp in units, to four sub-partitions alike; shared memory per block in units,
 * with what the system takes; warps and blocks have their own limits.
 */
#ifndef MEASURE_OCCUPANCY_H
#define MEASURE_OCCUPANCY_H

#include "measure/device_sheet.h"
#include "record/record.h"

/* From registers, static_shared, dynamic_shared, block and grid: fills blocks_per_sm,
   occupancy, waves and limiter. All 0 and "" when not one block fits. Registers of 0 are not
   known and limit nothing. */
void occupancy_fill(struct resources_record *r, const struct device_sheet *sheet);

/* The most threads a block of this many registers a thread can have, a multiple of the warp,
   at most 1024. */
uint32_t occupancy_max_threads(uint32_t registers, const struct sm_limits *sm);

#endif
