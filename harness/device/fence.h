/*
 * Fenced buffers: canary bytes before and after the user's range, on every device, so that a write
 * outside is seen afterwards; on the CPU device the end also abuts a guard page (device_alloc).
 */
#ifndef DEVICE_FENCE_H
#define DEVICE_FENCE_H

#include "device/device.h"

#define FENCE_BYTES 1024 /* on each side where there is room: CUDA both, CPU before; see fence.c */

struct fenced {
    struct device *device;
    dev_ptr base; /* what was allocated */
    dev_ptr ptr;  /* what the kernel gets: 16-byte aligned at least */
    size_t bytes;
    size_t before, after; /* canary bytes on each side */
    char label[64];
};

int fenced_alloc(struct device *dev, size_t bytes, const char *label, struct fenced *out,
                 struct err *err);
void fenced_free(struct fenced *f);
/* Writes the canaries again, whatever became of them. */
int fenced_mend(const struct fenced *f, struct err *err);

/* 0 and *hit = false when the canaries are intact; *hit = true and `err` (ERR_FAULT) says
   which side, at which distance in bytes, and the value found. -1 when the download failed. */
int fenced_check(const struct fenced *f, bool *hit, struct err *err);

#endif
