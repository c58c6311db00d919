#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

unsigned parallel_cpus(void)
{
    cpu_set_t set;
    long online;

    /* cpu_set_t holds 1,024 CPUs; a larger machine makes the call fail, and the fallback
       counts. */
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

struct work {
    atomic_size_t next;
    size_t count;
    void (*body)(size_t i, void *ctx);
    void *ctx;
};

/* Indices are handed out one by one, so that a few long ones do not leave other threads idle. */
static void *drain(void *arg)
{
    struct work *w = arg;

    for (;;) {
        size_t i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);

        if (i >= w->count)
            return NULL;
        w->body(i, w->ctx);
    }
}

void parallel_for(size_t count, unsigned workers, void (*body)(size_t i, void *ctx), void *ctx)
{
    struct work work = {.count = count, .body = body, .ctx = ctx};
    pthread_t *thread;
    size_t started = 0;

    if (workers == 0)
        workers = parallel_cpus();
    if (workers > count)
        workers = (unsigned)count;
    if (workers <= 1) {
        for (size_t i = 0; i < count; i++)
            body(i, ctx);
        return;
    }
    /* The calling thread is one of the workers. A thread that cannot be started is only a worker
       less: the others take its indices. */
    thread = xcalloc(workers - 1, sizeof *thread);
    atomic_init(&work.next, 0);
    while (started < workers - 1 && pthread_create(&thread[started], NULL, drain, &work) == 0)
        started++;
    drain(&work);
    while (started > 0)
        pthread_join(thread[--started], NULL);
    free(thread);
}
