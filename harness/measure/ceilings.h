/*
 * Ceilings: what this device reaches in this run, by our own kernels (kernels/bench), and the
 * sentinel that tells whether it still does. GPU only: an emulation has no ceilings.
 *
 *   dram_read    cold, so that the L2 holds none of it
 *   dram_write   hot on a buffer far larger than the L2: a window then drains as many dirty
 *   dram_copy    lines of the run before as it leaves behind
 *   l2_read      hot on half of the L2
 *   ffma fp32_unfused bf16_mma tf32_mma   from registers
 *   launch       an empty kernel in a graph of many
 *
 * Each is measured with several grids; the fastest counts. Rates count bytes read plus bytes
 * written.
 */
#ifndef MEASURE_CEILINGS_H
#define MEASURE_CEILINGS_H

#include "device/kernel_set.h"
#include "measure/device_sheet.h"
#include "measure/roof.h"
#include "measure/timing.h"

#define CEILING_COUNT 9

/* A read as a decode's GEMV does it and a plain copy, in GB/s. */
struct sentinel {
    double gemv_gbs, copy_gbs;
};

struct ceilings {
    struct timing_rig *rig; /* borrowed */
    struct kernel_set *set; /* borrowed; our own */
    dev_ptr src, dst, sink;
    size_t bytes;        /* of src and of dst */
    uint32_t rows, cols; /* the sentinel's matrix, within src */
    struct ceiling_record record[CEILING_COUNT];
    struct roofs roofs; /* from the best sample of each: no kernel may beat them */
};

int ceilings_open(struct timing_rig *rig, struct kernel_set *set, struct ceilings *c,
                  struct err *err);
void ceilings_close(struct ceilings *c);

/* Fills `record` and `roofs`; `sheet` (may be NULL) supplies the published figures beside them. */
int ceilings_measure(struct ceilings *c, const struct device_sheet *sheet, struct err *err);

int ceilings_sentinel(struct ceilings *c, struct sentinel *out, struct err *err);

/*
 * GB10's hidden slow state: GEMV-like reads run 3.3 times slower while copies and everything that
 * nvidia-smi shows stay as they were (model-serving-minefield issue 55). Healthy, the two rates
 * are about equal; slow, reads have a third of the copies'. True with the numbers in `why` when
 * reads are below SENTINEL_RATIO of the copies, the geometric middle of the two states.
 */
#define SENTINEL_RATIO 0.55 /* 1 / sqrt(3.3) */
bool sentinel_slow(const struct sentinel *now, char *why, size_t n);

/* True when either rate is more than a tenth away from `first`: drift, told in a note. */
bool sentinel_drifted(const struct sentinel *first, const struct sentinel *now, char *why,
                      size_t n);

#endif
