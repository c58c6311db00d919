/*
 * What a backend provides. device.c forwards the calls of device.h through this table; each
 * backend embeds the structs below FIRST in its own (struct cpu_device { struct device base; ...
 * }), so that a pointer to one is a pointer to the other. The contracts of the functions are
 * those of device.h.
 */
#ifndef DEVICE_DEVICE_OPS_H
#define DEVICE_DEVICE_OPS_H

#include "device/device.h"

struct device_ops {
    void (*close)(struct device *dev);

    int (*alloc)(struct device *dev, size_t bytes, const char *label, dev_ptr *out,
                 struct err *err);
    void (*free)(struct device *dev, dev_ptr ptr); /* never called with 0 */
    int (*upload)(struct device *dev, dev_ptr dst, const void *src, size_t bytes, struct err *err);
    int (*download)(struct device *dev, void *dst, dev_ptr src, size_t bytes, struct err *err);
    int (*copy)(struct device *dev, dev_ptr dst, dev_ptr src, size_t bytes, struct err *err);
    int (*fill32)(struct device *dev, dev_ptr dst, uint32_t word, size_t words, struct err *err);

    int (*module_load)(struct device *dev, const char *path, struct module **out, struct err *err);
    void (*module_unload)(struct module *m);
    int (*module_kernel)(struct module *m, const char *entry, struct kernel **out, struct err *err);
    const char *const *(*module_entries)(struct module *m);

    int (*launch)(struct device *dev, const struct launch *launch, struct err *err);
    int (*sync)(struct device *dev, struct err *err);

    int (*event_create)(struct device *dev, struct event **out, struct err *err);
    void (*event_free)(struct event *e);
    int (*event_record)(struct event *e, struct err *err);
    int (*event_elapsed_ms)(struct event *start, struct event *stop, double *ms, struct err *err);

    int (*graph_begin)(struct device *dev, struct err *err);
    int (*graph_end)(struct device *dev, struct graph **out, struct err *err);
    int (*graph_launch)(struct graph *g, struct err *err);
    void (*graph_free)(struct graph *g);

    bool (*set_schedule)(struct device *dev, const struct schedule *schedule);
};

struct device {
    const struct device_ops *ops;
    struct device_info info;
    const struct launch_watch *watch; /* device.c's: device_watch() */
};

/* The backend fills `device` when it creates one. */
struct module {
    struct device *device;
};
struct event {
    struct device *device;
};
struct graph {
    struct device *device;
};

/* The backends' constructors; *out is closed with device_close(). */
int cpu_device_open(struct device **out, struct err *err);
int cuda_device_open(unsigned ordinal, struct device **out, struct err *err);

/* Describes the CUDA devices without making a context on any; returns how many were filled in.
   0 with the reason in `why` when there is none. */
unsigned cuda_device_enumerate(struct device_info *infos, unsigned max, struct err *why);

#endif
