/*
 * Roofs: the least time that a run can take on a device, from the work that it cannot avoid and
 * the best rates that the device showed. A measured time below it is not fast but wrong.
 *
 * The floor must hold for every correct kernel, so it takes the caches at their best:
 *   cold   everything read comes from DRAM (the L2 was emptied); what is written may stay in the
 *          L2, as far as it is large enough.
 *   hot    as many bytes as the L2 holds may come from and stay in it; the rest crosses DRAM.
 * DRAM's rate is the best of read, write and copy; the L2's is that of reads.
 *
 * Flops have two roofs. The operator's unit is what a kernel is held against in percent. But the
 * same flops may be done by any unit (fp32 products split over tf32 matrix instructions, say), so
 * only a time below the fastest unit's is impossible.
 */
#ifndef MEASURE_ROOF_H
#define MEASURE_ROOF_H

#include "measure/device_sheet.h"
#include "problem/operator.h"
#include "record/record.h"

/* Rates in bytes and flops per microsecond; NAN where nobody measured. */
struct roofs {
    double dram_read, dram_write, dram_copy, l2_read;
    double ffma, bf16_mma, tf32_mma;
    double l2_bytes;
};

struct roof_floor {
    double us;        /* NAN when a rate that it needs is not there */
    const char *roof; /* "memory" or "compute": the binding one */
    double least_us;  /* with the flops on the fastest unit: below it a time is impossible */
};

void roofs_init(struct roofs *r); /* all NAN */
struct roof_floor roof_floor(const struct cost *cost, const struct roofs *r, enum temperature t);

/* "Floor on <sheet's device>, computed": bytes read and written over the published rates of
   each, flops over the published rate; data in DRAM (the cold case). NAN when the sheet lacks
   a figure that it needs. */
double roof_from_sheet(const struct cost *cost, const struct device_sheet *sheet);

#endif
