/*
 * A device for tests: its memory is the host's, its "kernels" are what the test's launcher does to
 * it. It can pose as the CPU device (schedules) or as CUDA (repeats), and can be told to fail.
 */
#ifndef TESTS_HOST_DEVICE_H
#define TESTS_HOST_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include "device/device_ops.h"

struct host_device {
    struct device base;
    struct schedule schedule; /* as set last */
    unsigned allocations;     /* alive */
    unsigned syncs;
    struct err sync_err; /* device_sync() fails with it unless its kind is ERR_NONE */
    bool full;           /* device_alloc() fails */
};

static inline void *host_pointer(dev_ptr p)
{
    return (void *)(uintptr_t)p;
}

static inline int host_alloc(struct device *dev, size_t bytes, const char *label, dev_ptr *out,
                             struct err *err)
{
    struct host_device *h = (struct host_device *)dev;
    if (h->full)
        return err_set(err, ERR_SYSTEM, "no memory for %s", label);
    h->allocations++;
    *out = (dev_ptr)(uintptr_t)calloc(1, bytes > 0 ? bytes : 1);
    return 0;
}

static inline void host_free(struct device *dev, dev_ptr p)
{
    ((struct host_device *)dev)->allocations--;
    free(host_pointer(p));
}

static inline int host_upload(struct device *dev, dev_ptr dst, const void *src, size_t bytes,
                              struct err *err)
{
    (void)dev;
    (void)err;
    memcpy(host_pointer(dst), src, bytes);
    return 0;
}

static inline int host_download(struct device *dev, void *dst, dev_ptr src, size_t bytes,
                                struct err *err)
{
    (void)dev;
    (void)err;
    memcpy(dst, host_pointer(src), bytes);
    return 0;
}

static inline int host_copy(struct device *dev, dev_ptr dst, dev_ptr src, size_t bytes,
                            struct err *err)
{
    return host_upload(dev, dst, host_pointer(src), bytes, err);
}

static inline int host_sync(struct device *dev, struct err *err)
{
    struct host_device *h = (struct host_device *)dev;
    h->syncs++;
    if (h->sync_err.kind == ERR_NONE)
        return 0;
    *err = h->sync_err;
    return -1;
}

static inline bool host_set_schedule(struct device *dev, const struct schedule *s)
{
    ((struct host_device *)dev)->schedule = *s;
    return dev->info.kind == DEVICE_CPU;
}

static inline void host_close(struct device *dev)
{
    (void)dev;
}

static const struct device_ops host_ops = {
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .upload = host_upload,
    .download = host_download,
    .copy = host_copy,
    .sync = host_sync,
    .set_schedule = host_set_schedule,
};

static inline void host_device_init(struct host_device *h, enum device_kind kind)
{
    *h = (struct host_device){
        .base = {.ops = &host_ops,
                 .info = {.kind = kind, .spec = "host", .name = "the test's own", .sm_count = 1}}};
}

#endif
