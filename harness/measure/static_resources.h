/*
 * What compiled kernels ask of an architecture: registers, spills, stack, shared memory, from the
 * log of NVIDIA's assembler that scripts/build-cuda-module keeps beside each fatbin
 * (MODULE.ptxas). Needs nvcc at build time and no GPU.
 */
#ifndef MEASURE_STATIC_RESOURCES_H
#define MEASURE_STATIC_RESOURCES_H

#include <stddef.h>

#include "base/err.h"
#include "record/record.h"

struct resources {
    struct resources_record *items; /* one per kernel and architecture; case_text is "" */
    size_t count, capacity;
};

void resources_init(struct resources *r);
void resources_release(struct resources *r);

/* Appends what a log says; `module` and `content` go into the records. ERR_INPUT for a log
   that tells of an entry but not of its registers. */
int resources_parse(struct resources *r, const char *log, const char *module, const char *content,
                    struct err *err);

/* All kernels of a set: NULL is our own, else a folder of .cu files (compiled when they were
   not yet) or of fatbins with their logs. ERR_MISSING when there is no log to read, with what
   to do. */
int resources_collect(struct resources *r, const char *kernels_dir, struct err *err);

/* NULL when there is none. */
const struct resources_record *resources_find(const struct resources *r, const char *entry,
                                              const char *arch);

#endif
