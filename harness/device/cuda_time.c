/* Events and graphs of the CUDA device. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"
#include "device/cuda.h"

struct cuda_event {
    struct event base;
    struct cu_event *handle;
};

struct cuda_graph {
    struct graph base;
    struct cu_graph_exec *exec;
};

/* --- events ----------------------------------------------------------------------------------- */

int cuda_event_create(struct device *dev, struct event **out, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);
    struct cuda_event *e;

    *out = NULL;
    if (cuda_enter(d, err) < 0)
        return -1;
    e = xcalloc(1, sizeof *e);
    e->base.device = dev;
    if (cuda_status(d, "cuEventCreate", d->api.event_create(&e->handle, CU_EVENT_TIMED), err) < 0) {
        free(e);
        return -1;
    }
    *out = &e->base;
    return 0;
}

void cuda_event_free(struct event *e)
{
    struct cuda_event *ce = (struct cuda_event *)e;
    struct cuda_device *d = cuda_of(e->device);
    struct err ignored = ERR_INIT; /* a lost context has freed it already */

    if (!cuda_enter(d, &ignored))
        cuda_status(d, "cuEventDestroy", d->api.event_destroy(ce->handle), &ignored);
    free(ce);
}

int cuda_event_record(struct event *e, struct err *err)
{
    struct cuda_event *ce = (struct cuda_event *)e;
    struct cuda_device *d = cuda_of(e->device);

    if (cuda_enter(d, err) < 0)
        return -1;
    return cuda_status(d, "cuEventRecord", d->api.event_record(ce->handle, d->stream), err);
}

int cuda_event_elapsed_ms(struct event *start, struct event *stop, double *ms, struct err *err)
{
    struct cuda_event *a = (struct cuda_event *)start, *b = (struct cuda_event *)stop;
    struct cuda_device *d = cuda_of(start->device);
    float value = 0;

    *ms = NAN64;
    if (cuda_enter(d, err) < 0 ||
        cuda_status(d, "cuEventSynchronize", d->api.event_synchronize(b->handle), err) < 0 ||
        cuda_status(d, "cuEventElapsedTime",
                    d->api.event_elapsed_time(&value, a->handle, b->handle), err) < 0)
        return -1;
    *ms = (double)value;
    return 0;
}

/* --- graphs ----------------------------------------------------------------------------------- */

int cuda_graph_begin(struct device *dev, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);

    if (cuda_enter(d, err) < 0)
        return -1;
    if (d->capturing)
        return err_set(err, ERR_SYSTEM, "a graph is already being recorded");
    if (cuda_status(d, "cuStreamBeginCapture",
                    d->api.stream_begin_capture(d->stream, CU_CAPTURE_RELAXED), err) < 0)
        return -1;
    d->capturing = true;
    return 0;
}

int cuda_graph_end(struct device *dev, struct graph **out, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);
    struct cu_graph *captured = NULL;
    struct cuda_graph *g;
    int rc;

    *out = NULL;
    if (!d->capturing)
        return err_set(err, ERR_SYSTEM, "no graph is being recorded");
    d->capturing = false;
    if (cuda_enter(d, err) < 0 ||
        cuda_status(d, "cuStreamEndCapture", d->api.stream_end_capture(d->stream, &captured), err) <
            0)
        return -1;
    g = xcalloc(1, sizeof *g);
    g->base.device = dev;
    rc = cuda_status(d, "cuGraphInstantiate", d->api.graph_instantiate(&g->exec, captured, 0), err);
    d->api.graph_destroy(captured); /* the executable holds its own copy */
    if (rc < 0) {
        free(g);
        return -1;
    }
    *out = &g->base;
    return 0;
}

int cuda_graph_launch(struct graph *g, struct err *err)
{
    struct cuda_graph *cg = (struct cuda_graph *)g;
    struct cuda_device *d = cuda_of(g->device);

    if (cuda_enter(d, err) < 0)
        return -1;
    return cuda_status(d, "cuGraphLaunch", d->api.graph_launch(cg->exec, d->stream), err);
}

void cuda_graph_free(struct graph *g)
{
    struct cuda_graph *cg = (struct cuda_graph *)g;
    struct cuda_device *d = cuda_of(g->device);
    struct err ignored = ERR_INIT;

    if (!cuda_enter(d, &ignored))
        cuda_status(d, "cuGraphExecDestroy", d->api.graph_exec_destroy(cg->exec), &ignored);
    free(cg);
}
