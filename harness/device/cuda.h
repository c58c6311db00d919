/*
 * The CUDA backend's own structures, shared by its files: cuda.c (device, memory, launches),
 * cuda_module.c (modules and kernels), cuda_time.c (events and graphs).
 */
#ifndef DEVICE_CUDA_H
#define DEVICE_CUDA_H

#include "device/cuda_api.h"
#include "device/device_ops.h"

struct cuda_device {
    struct device base;
    struct cuda_api api;
    cu_device ordinal;
    struct cu_context *context;
    struct cu_stream *stream;
    bool capturing;
    char lost[512]; /* the fault that made the context unusable; "" while it works */
};

/* Opens with another driver library than CUDA_LIBRARY (tests). */
int cuda_device_open_with(const char *library, unsigned ordinal, struct device **out,
                          struct err *err);
unsigned cuda_device_enumerate_with(const char *library, struct device_info *infos, unsigned max,
                                    struct err *why);

static inline struct cuda_device *cuda_of(struct device *dev)
{
    return (struct cuda_device *)dev;
}

/* Makes the context current; refuses (ERR_SYSTEM) when an earlier fault has lost it. Every
   operation starts with it. */
int cuda_enter(struct cuda_device *d, struct err *err);

/* cuda_check() that also remembers a fault: the context is lost from then on. */
int cuda_status(struct cuda_device *d, const char *call, int result, struct err *err);

int cuda_module_load(struct device *dev, const char *path, struct module **out, struct err *err);
void cuda_module_unload(struct module *m);
int cuda_module_kernel(struct module *m, const char *entry, struct kernel **out, struct err *err);
const char *const *cuda_module_entries(struct module *m);
int cuda_launch(struct device *dev, const struct launch *launch, struct err *err);

int cuda_event_create(struct device *dev, struct event **out, struct err *err);
void cuda_event_free(struct event *e);
int cuda_event_record(struct event *e, struct err *err);
int cuda_event_elapsed_ms(struct event *start, struct event *stop, double *ms, struct err *err);
int cuda_graph_begin(struct device *dev, struct err *err);
int cuda_graph_end(struct device *dev, struct graph **out, struct err *err);
int cuda_graph_launch(struct graph *g, struct err *err);
void cuda_graph_free(struct graph *g);

#endif
