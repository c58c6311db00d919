/*
 * Device sheets: what others stated or measured about a device (cases/devices/<name>.ini). Shown
 * beside what this run measures, never instead of it; only what is computed for GB10 without a
 * GB10 rests on them.
 *
 *     [device]     name, match (text within the device's own name), compute_capability, sm_count
 *     [datasheet]  figures that the vendor states
 *     [published]  figures that somebody measured
 *     [sm]         what one multiprocessor holds: the occupancy of a launch follows from it
 *
 * A figure reads `dram_read = 249 GB/s`, its name that of a ceiling (`dram` where a sheet has one
 * figure for all traffic). `source = ...` holds for the entries below it in its section. ';'
 * starts a comment line.
 */
#ifndef MEASURE_DEVICE_SHEET_H
#define MEASURE_DEVICE_SHEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define SHEET_MAX_FIGURES 24

struct figure {
    char name[32];
    double value;
    char unit[16];
    char source[256];
    bool published; /* measured by somebody; false: a data sheet's */
};

/* Units are what the hardware rounds an allocation up to: registers per warp, bytes per block. */
struct sm_limits {
    uint32_t registers, register_unit;
    uint32_t shared_bytes, shared_reserved,
        shared_unit; /* reserved: taken by the system per block */
    uint32_t threads, blocks;
};

struct device_sheet {
    char name[64], match[64];
    int cc_major, cc_minor;
    uint32_t sm_count;
    struct figure figure[SHEET_MAX_FIGURES];
    unsigned nfigures;
    struct sm_limits sm;
};

/* ERR_INPUT with file, line and what is expected for anything that is not as above. */
int device_sheet_read(const char *path, struct device_sheet *out, struct err *err);

/* The sheet in `dir` whose match text occurs in `device_name`; *found says whether there is one. */
int device_sheet_find(const char *dir, const char *device_name, struct device_sheet *out,
                      bool *found, struct err *err);

/* A published figure, else the data sheet's, else NULL. */
const struct figure *device_sheet_figure(const struct device_sheet *sheet, const char *name);

#endif
