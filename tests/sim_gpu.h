/*
 * A simulated GPU: work takes simulated time, launches cost the CPU nothing, and the L2 is a flag.
 */
#ifndef TESTS_SIM_GPU_H
#define TESTS_SIM_GPU_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_ops.h"
#include "device/launch.h"

#define L2_BYTES   (24u << 20)
#define READ_US    400.0 /* one pass over the evict buffer */
#define EMPTY_US   1.25  /* an empty kernel in a graph */
#define WINDOW_US  2.5   /* what a window costs beyond its kernels */
#define TICK_US    0.5
#define RESTORE_US 30.0
#define GRAPH_MAX  4096

struct sim {
    struct device base;
    double now_us; /* of the simulated GPU */
    bool l2_empty; /* of the subject's data */
    bool recording;
    const struct kernel *recorded[GRAPH_MAX];
    unsigned nrecorded;
    bool fail_sync;
    /* what was seen */
    unsigned restores, runs, evictions, dirty_windows;
    unsigned since_restore; /* runs since the last restore */
};

struct sim_kernel {
    struct kernel base;
    double cold_us, hot_us;
    bool evicts;
};

struct sim_event {
    struct event base;
    double at_us;
};

struct sim_graph {
    struct graph base;
    const struct kernel *kernel[GRAPH_MAX];
    unsigned count;
};

static inline void run(struct sim *s, const struct kernel *k)
{
    const struct sim_kernel *sk = (const struct sim_kernel *)k;

    if (sk->evicts) {
        s->l2_empty = true;
        s->evictions++;
        s->now_us += READ_US;
        return;
    }
    s->now_us += s->l2_empty ? sk->cold_us : sk->hot_us;
    if (sk->hot_us > EMPTY_US) {
        s->l2_empty = false;
        s->runs++;
        s->since_restore++;
    }
}

static inline int sim_launch(struct device *dev, const struct launch *l, struct err *err)
{
    struct sim *s = (struct sim *)dev;

    (void)err;
    if (!s->recording)
        run(s, l->kernel);
    else
        s->recorded[s->nrecorded++] = l->kernel;
    return 0;
}

static inline int sim_alloc(struct device *dev, size_t bytes, const char *label, dev_ptr *out,
                            struct err *err)
{
    (void)dev, (void)label, (void)err;
    *out = bytes;
    return 0;
}

static inline void sim_free(struct device *dev, dev_ptr ptr)
{
    (void)dev, (void)ptr;
}

static inline int sim_fill32(struct device *dev, dev_ptr dst, uint32_t word, size_t words,
                             struct err *err)
{
    (void)dev, (void)dst, (void)word, (void)words, (void)err;
    return 0;
}

static inline int sim_sync(struct device *dev, struct err *err)
{
    if (((struct sim *)dev)->fail_sync)
        return err_set(err, ERR_FAULT, "simulated fault");
    return 0;
}

static inline int sim_event_create(struct device *dev, struct event **out, struct err *err)
{
    struct sim_event *e = calloc(1, sizeof *e);

    (void)err;
    e->base.device = dev;
    *out = &e->base;
    return 0;
}

static inline void sim_event_free(struct event *e)
{
    free(e);
}

static inline int sim_event_record(struct event *e, struct err *err)
{
    (void)err;
    ((struct sim_event *)e)->at_us = ((struct sim *)e->device)->now_us;
    return 0;
}

/* Each window costs WINDOW_US more than what ran in it, and is a multiple of the tick. */
static inline int sim_elapsed(struct event *start, struct event *stop, double *ms, struct err *err)
{
    double us = ((struct sim_event *)stop)->at_us - ((struct sim_event *)start)->at_us;

    (void)err;
    *ms = 1e-3 * TICK_US * round((us + WINDOW_US) / TICK_US);
    return 0;
}

static inline int sim_graph_begin(struct device *dev, struct err *err)
{
    struct sim *s = (struct sim *)dev;

    (void)err;
    s->recording = true;
    s->nrecorded = 0;
    return 0;
}

static inline int sim_graph_end(struct device *dev, struct graph **out, struct err *err)
{
    struct sim *s = (struct sim *)dev;
    struct sim_graph *g = calloc(1, sizeof *g);

    (void)err;
    s->recording = false;
    g->base.device = dev;
    g->count = s->nrecorded;
    memcpy(g->kernel, s->recorded, s->nrecorded * sizeof *s->recorded);
    *out = &g->base;
    return 0;
}

static inline int sim_graph_launch(struct graph *g, struct err *err)
{
    struct sim_graph *sg = (struct sim_graph *)g;

    (void)err;
    for (unsigned i = 0; i < sg->count; i++)
        run((struct sim *)g->device, sg->kernel[i]);
    return 0;
}

static inline void sim_graph_free(struct graph *g)
{
    free(g);
}

static const struct device_ops sim_ops = {
    .alloc = sim_alloc,
    .free = sim_free,
    .fill32 = sim_fill32,
    .launch = sim_launch,
    .sync = sim_sync,
    .event_create = sim_event_create,
    .event_free = sim_event_free,
    .event_record = sim_event_record,
    .event_elapsed_ms = sim_elapsed,
    .graph_begin = sim_graph_begin,
    .graph_end = sim_graph_end,
    .graph_launch = sim_graph_launch,
    .graph_free = sim_graph_free,
};

#endif
