/*
 * The CPU device: device_ops on the runtime in cpu/. Launches run to their end before they return;
 * so do copies and fills, and device_sync() has nothing left to wait for. Times are wall times of
 * an emulation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "device/cpu/cpu_device.h"
#include "device/launch.h"

/* --- graphs: a list of what was asked for ----------------------------------------------------- */

enum step_kind { STEP_LAUNCH, STEP_COPY, STEP_FILL };

struct step {
    enum step_kind kind;
    struct launch launch;
    dev_ptr dst, src;
    size_t n; /* bytes, or words of a fill */
    uint32_t word;
};

struct cpu_graph {
    struct graph base;
    struct step *step;
    size_t nsteps, cap;
};

static struct step *add_step(struct cpu_graph *g, enum step_kind kind)
{
    if (g->nsteps == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 16;
        g->step = xrealloc(g->step, g->cap, sizeof *g->step);
    }
    struct step *s = &g->step[g->nsteps++];

    memset(s, 0, sizeof *s);
    s->kind = kind;
    return s;
}

static int not_while_recording(const struct device *dev, const char *what, struct err *err)
{
    const struct cpu_device *cpu = (const struct cpu_device *)(const void *)dev;

    if (!cpu->capture)
        return 0;
    return err_set(err, ERR_REFUSED,
                   "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: %s while a graph is recorded", what);
}

/* --- copies ----------------------------------------------------------------------------------- */

static int upload(struct device *dev, dev_ptr dst, const void *src, size_t bytes, struct err *err)
{
    if (not_while_recording(dev, "upload", err) < 0 ||
        cpu_check_range(cpu_device_of(dev), dst, bytes, "upload", err) < 0)
        return -1;
    if (bytes)
        memcpy((void *)(uintptr_t)dst, src, bytes);
    return 0;
}

static int download(struct device *dev, void *dst, dev_ptr src, size_t bytes, struct err *err)
{
    if (not_while_recording(dev, "download", err) < 0 ||
        cpu_check_range(cpu_device_of(dev), src, bytes, "download", err) < 0)
        return -1;
    if (bytes)
        memcpy(dst, (const void *)(uintptr_t)src, bytes);
    return 0;
}

static int copy(struct device *dev, dev_ptr dst, dev_ptr src, size_t bytes, struct err *err)
{
    struct cpu_device *cpu = cpu_device_of(dev);

    if (cpu_check_range(cpu, dst, bytes, "copy", err) < 0 ||
        cpu_check_range(cpu, src, bytes, "copy", err) < 0)
        return -1;
    if (cpu->capture) {
        struct step *s = add_step(cpu->capture, STEP_COPY);

        s->dst = dst;
        s->src = src;
        s->n = bytes;
    } else if (bytes) {
        memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);
    }
    return 0;
}

static int fill32(struct device *dev, dev_ptr dst, uint32_t word, size_t words, struct err *err)
{
    struct cpu_device *cpu = cpu_device_of(dev);
    size_t bytes;

    if (!size_product(words, sizeof word, &bytes))
        return err_set(err, ERR_INPUT, "fill of %zu words overflows", words);
    if (cpu_check_range(cpu, dst, bytes, "fill", err) < 0)
        return -1;
    if (cpu->capture) {
        struct step *s = add_step(cpu->capture, STEP_FILL);

        s->dst = dst;
        s->word = word;
        s->n = words;
    } else {
        unsigned char *p = (unsigned char *)(uintptr_t)dst;

        for (size_t i = 0; i < words; i++)
            memcpy(p + i * sizeof word, &word, sizeof word);
    }
    return 0;
}

/* --- launches --------------------------------------------------------------------------------- */

static int launch(struct device *dev, const struct launch *l, struct err *err)
{
    struct cpu_device *cpu = cpu_device_of(dev);
    void *params[KERNEL_MAX_PARAMS];
    struct launch args = *l;
    struct cpu_job job = {
        .kernel = l->kernel,
        .module = (const struct cpu_module *)(const void *)l->kernel->module,
        .desc = l->kernel->handle,
        .grid = l->grid,
        .block = l->block,
        .shared = l->shared,
        .nblocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z,
        .params = params,
        .schedule = cpu->schedule,
    };

    if (cpu->capture) {
        add_step(cpu->capture, STEP_LAUNCH)->launch = *l;
        return 0;
    }
    if (l->shared > CPU_SHARED_MAX)
        return err_set(err, ERR_REFUSED,
                       "CUDA_ERROR_INVALID_VALUE: %llu bytes of dynamic shared memory, at most %d",
                       (unsigned long long)l->shared, CPU_SHARED_MAX);
    for (unsigned i = 0; i < l->nargs; i++)
        params[i] = args.arg[i].bytes;
    return cpu_run(cpu, &job, err);
}

static int sync_device(struct device *dev, struct err *err)
{
    return not_while_recording(dev, "synchronise", err);
}

/* --- events ----------------------------------------------------------------------------------- */

struct cpu_event {
    struct event base;
    bool recorded;
    struct timespec at;
};

static int create_event(struct device *dev, struct event **out, struct err *err)
{
    struct cpu_event *e = xcalloc(1, sizeof *e);

    (void)err;
    e->base.device = dev;
    *out = &e->base;
    return 0;
}

static void free_event(struct event *e)
{
    free(e);
}

static int record_event(struct event *base, struct err *err)
{
    struct cpu_event *e = (struct cpu_event *)(void *)base;

    if (not_while_recording(base->device, "event", err) < 0)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &e->at);
    e->recorded = true;
    return 0;
}

static int elapsed(struct event *start, struct event *stop, double *ms, struct err *err)
{
    const struct cpu_event *a = (const struct cpu_event *)(const void *)start;
    const struct cpu_event *b = (const struct cpu_event *)(const void *)stop;

    if (!a->recorded || !b->recorded)
        return err_set(err, ERR_INPUT,
                       "CUDA_ERROR_INVALID_HANDLE: elapsed time of an event never recorded");
    *ms = 1e3 * (double)(b->at.tv_sec - a->at.tv_sec) +
          1e-6 * (double)(b->at.tv_nsec - a->at.tv_nsec);
    return 0;
}

/* --- graphs ----------------------------------------------------------------------------------- */

static void free_graph(struct graph *base)
{
    struct cpu_graph *g = (struct cpu_graph *)(void *)base;

    free(g->step);
    free(g);
}

static int begin_graph(struct device *dev, struct err *err)
{
    struct cpu_graph *g;

    if (not_while_recording(dev, "another recording", err) < 0)
        return -1;
    g = xcalloc(1, sizeof *g);
    g->base.device = dev;
    cpu_device_of(dev)->capture = g;
    return 0;
}

static int end_graph(struct device *dev, struct graph **out, struct err *err)
{
    struct cpu_device *cpu = cpu_device_of(dev);

    if (!cpu->capture)
        return err_set(err, ERR_REFUSED, "CUDA_ERROR_ILLEGAL_STATE: no graph recording was begun");
    *out = &cpu->capture->base;
    cpu->capture = NULL;
    return 0;
}

static int run_step(struct device *dev, const struct step *s, struct err *err)
{
    switch (s->kind) {
    case STEP_LAUNCH:
        if (launch(dev, &s->launch, err) < 0)
            return err_context(err, "kernel %s", s->launch.kernel->entry);
        return 0;
    case STEP_COPY:
        return copy(dev, s->dst, s->src, s->n, err);
    case STEP_FILL:
        break;
    }
    return fill32(dev, s->dst, s->word, s->n, err);
}

static int launch_graph(struct graph *base, struct err *err)
{
    const struct cpu_graph *g = (const struct cpu_graph *)(const void *)base;

    if (not_while_recording(base->device, "graph launch", err) < 0)
        return -1;
    for (size_t i = 0; i < g->nsteps; i++)
        if (run_step(base->device, &g->step[i], err) < 0)
            return -1;
    return 0;
}

/* --- the device ------------------------------------------------------------------------------- */

static bool set_schedule(struct device *dev, const struct schedule *schedule)
{
    cpu_device_of(dev)->schedule = *schedule;
    return true;
}

static void close_device(struct device *dev)
{
    struct cpu_device *cpu = cpu_device_of(dev);

    cpu_pool_close(cpu);
    if (cpu->capture)
        free_graph(&cpu->capture->base);
    cpu_free_all(cpu);
    free(cpu);
}

/* The processor's model as the kernel tells it; the machine's architecture where it does not. */
static void processor_name(char *out, size_t n)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256], name[100] = "";
    struct utsname u;

    while (f && !name[0] && fgets(line, sizeof line, f))
        if (!strncmp(line, "model name", 10) && strchr(line, ':'))
            snprintf(name, sizeof name, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"),
                     strchr(line, ':') + 2);
    if (f)
        fclose(f);
    if (!name[0] && uname(&u) == 0)
        snprintf(name, sizeof name, "%s processor", u.machine);
    snprintf(out, n, "%s (emulated)", name);
}

static void describe(struct device_info *info)
{
    long pages = sysconf(_SC_PHYS_PAGES), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);

    memset(info, 0, sizeof *info);
    info->kind = DEVICE_CPU;
    snprintf(info->spec, sizeof info->spec, "cpu");
    processor_name(info->name, sizeof info->name);
    info->sm_count = parallel_cpus();
    info->memory_bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    info->l2_bytes = l2 > 0 ? (uint64_t)l2 : 0;
    info->limits = gb10_limits;
}

static const struct device_ops cpu_ops = {
    .close = close_device,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = upload,
    .download = download,
    .copy = copy,
    .fill32 = fill32,
    .module_load = cpu_module_load,
    .module_unload = cpu_module_unload,
    .module_kernel = cpu_module_kernel,
    .module_entries = cpu_module_entries,
    .launch = launch,
    .sync = sync_device,
    .event_create = create_event,
    .event_free = free_event,
    .event_record = record_event,
    .event_elapsed_ms = elapsed,
    .graph_begin = begin_graph,
    .graph_end = end_graph,
    .graph_launch = launch_graph,
    .graph_free = free_graph,
    .set_schedule = set_schedule,
};

int cpu_device_open(struct device **out, struct err *err)
{
    struct cpu_device *dev = xcalloc(1, sizeof *dev);

    (void)err;
    dev->base.ops = &cpu_ops;
    describe(&dev->base.info);
    cpu_pool_open(dev);
    *out = &dev->base;
    return 0;
}
