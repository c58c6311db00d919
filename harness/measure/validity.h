/*
 * When a measurement may be believed. Pure: a bench_record with its samples goes in, its numbers
 * and its verdict come out, so every guard can be sprung with made-up samples.
 */
#ifndef MEASURE_VALIDITY_H
#define MEASURE_VALIDITY_H

#include "measure/roof.h"
#include "record/record.h"

#define CLOCK_SHARE 0.9 /* samples below this share of the run's own SM clock are flagged */
#define MIN_TICKS   10  /* a window must span this many ticks of its timer */

/* Median SM clock over all samples of the given records; NAN when no sample has one. */
double run_clock_mhz(const struct bench_record *const *records, unsigned n);

/*
 * Flags samples and fills median_us, low_us, high_us, converged, roof*, reference_clock_mhz,
 * valid and reason. The record arrives with its samples, launches_per_sample, event_tick_us and
 * temperature set, `reason` empty (a reason that is there already, such as a verdict other than
 * PASS, is kept: not valid).
 *
 * Not valid, with the reason: no sample; a sample that is NaN, infinite or not positive; every
 * sample throttled or at a low clock; a window of fewer than MIN_TICKS ticks; the whole interval
 * of the median below floor->least_us (NaN: no floor was measured, nothing is held against it).
 * Valid with a note: the interval did not close to `precision`, some samples were flagged.
 */
void bench_settle(struct bench_record *r, double reference_clock_mhz,
                  const struct roof_floor *floor, double precision);

#endif
