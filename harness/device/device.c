/* Chooses the backend of a device and forwards every call to it. */
#include "device/device.h"

#include <stdio.h>
#include <string.h>

#include "device/device_ops.h"

#define ORDINAL_MAX                                                                                \
    1023 /* more digits than any machine has GPUs; keeps the parse free of overflow */

static int parse_ordinal(const char *spec, const char *digits, unsigned *out, struct err *err)
{
    unsigned value = 0;
    const char *p = digits;

    while (*p >= '0' && *p <= '9' && value <= ORDINAL_MAX)
        value = 10 * value + (unsigned)(*p++ - '0');
    if (p == digits || *p || value > ORDINAL_MAX)
        return err_set(err, ERR_INPUT, "device \"%s\": expected a device number after \"cuda:\"",
                       spec);
    *out = value;
    return 0;
}

/* The first GPU; the CPU device only where there is no driver or no GPU. A driver that is there and
   fails is reported: emulating silently on a GPU machine would hide it. */
static int open_default(struct device **out, struct err *err)
{
    struct err why = ERR_INIT;

    if (!cuda_device_open(0, out, &why))
        return 0;
    if (why.kind == ERR_MISSING)
        return cpu_device_open(out, err);
    *err = why;
    return err_context(err, "device \"default\" (\"cpu\" works without a GPU)");
}

int device_open(const char *spec, struct device **out, struct err *err)
{
    unsigned ordinal = 0;

    *out = NULL;
    if (!strcmp(spec, "default"))
        return open_default(out, err);
    if (!strcmp(spec, "cpu"))
        return cpu_device_open(out, err);
    if (!strncmp(spec, "cuda:", 5)) {
        if (parse_ordinal(spec, spec + 5, &ordinal, err) < 0)
            return -1;
    } else if (strcmp(spec, "cuda")) {
        return err_set(err, ERR_INPUT,
                       "unknown device \"%s\": use cpu, cuda, cuda:N or default (the first GPU, "
                       "else cpu)",
                       spec);
    }
    if (cuda_device_open(ordinal, out, err) < 0)
        return err_context(err, "device \"%s\"", spec);
    return 0;
}

void device_close(struct device *dev)
{
    if (dev)
        dev->ops->close(dev);
}

const struct device_info *device_info(const struct device *dev)
{
    return &dev->info;
}

unsigned device_enumerate(struct device_info *infos, unsigned max, char *why_no_cuda, size_t n)
{
    struct err err = ERR_INIT;
    struct device *cpu = NULL;
    unsigned count = 0, gpus;

    if (count < max && !cpu_device_open(&cpu, &err)) {
        infos[count++] = cpu->info;
        device_close(cpu);
    }
    err = (struct err)ERR_INIT;
    gpus = cuda_device_enumerate(infos + count, max - count, &err);
    if (why_no_cuda && n)
        snprintf(why_no_cuda, n, "%s", gpus ? "" : err.text);
    return count + gpus;
}

int device_alloc(struct device *dev, size_t bytes, const char *label, dev_ptr *out, struct err *err)
{
    return dev->ops->alloc(dev, bytes, label, out, err);
}

void device_free(struct device *dev, dev_ptr ptr)
{
    if (ptr)
        dev->ops->free(dev, ptr);
}

int device_upload(struct device *dev, dev_ptr dst, const void *src, size_t bytes, struct err *err)
{
    return dev->ops->upload(dev, dst, src, bytes, err);
}

int device_download(struct device *dev, void *dst, dev_ptr src, size_t bytes, struct err *err)
{
    return dev->ops->download(dev, dst, src, bytes, err);
}

int device_copy(struct device *dev, dev_ptr dst, dev_ptr src, size_t bytes, struct err *err)
{
    return dev->ops->copy(dev, dst, src, bytes, err);
}

int device_fill32(struct device *dev, dev_ptr dst, uint32_t word, size_t words, struct err *err)
{
    return dev->ops->fill32(dev, dst, word, words, err);
}

int module_load(struct device *dev, const char *path, struct module **out, struct err *err)
{
    return dev->ops->module_load(dev, path, out, err);
}

void module_unload(struct module *m)
{
    if (m)
        m->device->ops->module_unload(m);
}

int module_kernel(struct module *m, const char *entry, struct kernel **out, struct err *err)
{
    return m->device->ops->module_kernel(m, entry, out, err);
}

const char *const *module_entries(struct module *m)
{
    return m->device->ops->module_entries(m);
}

void device_watch(struct device *dev, const struct launch_watch *watch)
{
    dev->watch = watch;
}

int device_launch(struct device *dev, const struct launch *launch, struct err *err)
{
    if (dev->watch)
        dev->watch->seen(dev->watch->ctx, launch);
    return dev->ops->launch(dev, launch, err);
}

int device_sync(struct device *dev, struct err *err)
{
    return dev->ops->sync(dev, err);
}

int event_create(struct device *dev, struct event **out, struct err *err)
{
    return dev->ops->event_create(dev, out, err);
}

void event_free(struct event *e)
{
    if (e)
        e->device->ops->event_free(e);
}

int event_record(struct event *e, struct err *err)
{
    return e->device->ops->event_record(e, err);
}

int event_elapsed_ms(struct event *start, struct event *stop, double *ms, struct err *err)
{
    return start->device->ops->event_elapsed_ms(start, stop, ms, err);
}

int graph_begin(struct device *dev, struct err *err)
{
    return dev->ops->graph_begin(dev, err);
}

int graph_end(struct device *dev, struct graph **out, struct err *err)
{
    return dev->ops->graph_end(dev, out, err);
}

int graph_launch(struct graph *g, struct err *err)
{
    return g->device->ops->graph_launch(g, err);
}

void graph_free(struct graph *g)
{
    if (g)
        g->device->ops->graph_free(g);
}

bool device_set_schedule(struct device *dev, const struct schedule *schedule)
{
    return dev->ops->set_schedule && dev->ops->set_schedule(dev, schedule);
}
