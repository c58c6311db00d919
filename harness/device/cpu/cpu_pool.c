/*
 * The workers of a device: the thread that launches is the first, pool threads are the others.
 * Blocks are handed out one by one; which worker runs which does not show in the results.
 *
 * A watchdog thread looks every WATCH_MS whether a worker has used more than the limit of processor
 * time on one block (processor time, so a loaded machine raises no alarm), and if so interrupts it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/cpu_worker.h"

#define WATCH_MS 50
/* The longest block of the project's cases takes about a second; under a sanitizer, some ten times
   that. */
#define BLOCK_LIMIT_S (CPU_SANITIZED ? 600.0 : 60.0)

/* --- block order ------------------------------------------------------------------------------ */

/* A keyed permutation of [0, n): mixes within the next power of two, again until the value is below
   n. */
static uint64_t permute(uint64_t i, uint64_t n, uint64_t key)
{
    unsigned bits = 1;
    uint64_t mask;

    while (bits < 63 && (1ull << bits) < n)
        bits++;
    mask = (1ull << bits) - 1;
    do {
        for (unsigned round = 0; round < 3; round++) {
            i = (i + (key >> 20 * round)) & mask;
            i = i * 0x9e3779b97f4a7c15u & mask; /* odd: invertible modulo a power of two */
            i ^= i >> (bits + 1) / 2;
        }
    } while (i >= n);
    return i;
}

static uint64_t block_at(const struct cpu_job *job, uint64_t i)
{
    switch (job->schedule.order) {
    case ORDER_FORWARD:
        return i;
    case ORDER_REVERSE:
        return job->nblocks - 1 - i;
    case ORDER_RANDOM:
    case ORDER_WARPS:
        break;
    }
    return permute(i, job->nblocks, job->schedule.seed * 0xd1342543de82ef95u + 1);
}

/* --- a launch on one worker ------------------------------------------------------------------- */

static void work(struct cpu_worker *w, struct cpu_job *job)
{
    struct err err = ERR_INIT;
    stack_t saved;

    w->job = job;
    w->fault.set = false;
    w->os_thread = pthread_self();
    cpu_signal_stack_enter(w, &saved);
    cpu_this_worker = w;
    if (cpu_shared_prepare(w, job, &err) < 0)
        cpu_fail_block(w, "%s", err.text);
    cpu_sanitizer_launch_begins(w);
    atomic_fetch_add(&w->progress, 1);
    atomic_store(&w->active, true);
    while (!w->fault.set && !atomic_load_explicit(&job->stop, memory_order_relaxed)) {
        uint64_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);

        if (i >= job->nblocks)
            break;
        cpu_run_block(w, block_at(job, i));
        atomic_fetch_add_explicit(&w->progress, 1, memory_order_relaxed);
    }
    atomic_store(&w->active, false);
    cpu_sanitizer_launch_ends(w);
    if (w->fault.set)
        atomic_store(&job->stop, true);
    cpu_this_worker = NULL;
    cpu_signal_stack_leave(&saved);
}

/* --- pool threads ----------------------------------------------------------------------------- */

struct pool_thread {
    struct cpu_device *dev;
    unsigned index;
};

static void *pool_main(void *arg)
{
    struct pool_thread self = *(struct pool_thread *)arg;
    struct cpu_pool *pool = &self.dev->pool;
    uint64_t seen = 0;

    free(arg);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && (pool->generation == seen || self.index >= pool->wanted)) {
            seen = pool->generation;
            pthread_cond_wait(&pool->go, &pool->lock);
        }
        if (pool->quit)
            break;
        seen = pool->generation;
        struct cpu_job *job = pool->job;

        pthread_mutex_unlock(&pool->lock);
        work(self.dev->worker[self.index], job);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* --- the watchdog ----------------------------------------------------------------------------- */

struct watch {
    uint64_t progress;
    double since;
};

static double processor_seconds(pthread_t thread)
{
    struct timespec t;
    clockid_t clock;

    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &t) < 0)
        return 0.0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void watch_worker(struct cpu_device *dev, struct cpu_worker *w, struct watch *seen)
{
    uint64_t progress = atomic_load_explicit(&w->progress, memory_order_relaxed);
    double now;

    if (!atomic_load(&w->active))
        return;
    now = processor_seconds(w->os_thread);
    if (progress != seen->progress || now < seen->since) {
        *seen = (struct watch){progress, now};
        return;
    }
    if (now - seen->since < dev->limit_s)
        return;
    atomic_store(&w->expired, progress);
    pthread_kill(w->os_thread, cpu_watch_signal());
}

static void *watchdog_main(void *arg)
{
    struct cpu_device *dev = arg;
    struct cpu_pool *pool = &dev->pool;
    struct watch seen[CPU_MAX_WORKERS];

    memset(seen, 0, sizeof seen);
    pthread_mutex_lock(&pool->lock);
    while (!pool->quit) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WATCH_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&pool->tick, &pool->lock, &until);
        for (unsigned i = 0; i < CPU_MAX_WORKERS && pool->busy; i++)
            if (dev->worker[i])
                watch_worker(dev, dev->worker[i], &seen[i]);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* --- launches --------------------------------------------------------------------------------- */

static int add_worker(struct cpu_device *dev, unsigned i, struct err *err)
{
    struct cpu_worker *w = aligned_alloc(_Alignof(struct cpu_worker), sizeof *w);

    if (!w)
        return err_set(err, ERR_SYSTEM, "no memory for a worker of the CPU device");
    if (cpu_worker_init(w, err) < 0) {
        free(w);
        return -1;
    }
    dev->worker[i] = w;
    return 0;
}

/* Makes workers 0 .. n-1, the watchdog, and the threads of workers 1 .. n-1. */
static int provide(struct cpu_device *dev, unsigned n, struct err *err)
{
    struct cpu_pool *pool = &dev->pool;

    for (unsigned i = 0; i < n; i++)
        if (!dev->worker[i] && add_worker(dev, i, err) < 0)
            return -1;
    if (!pool->watching) {
        if (pthread_create(&pool->watchdog, NULL, watchdog_main, dev) != 0)
            return err_set(err, ERR_SYSTEM, "cannot start a thread");
        pool->watching = true;
    }
    while (pool->started + 1 < n) {
        struct pool_thread *arg = xcalloc(1, sizeof *arg);

        *arg = (struct pool_thread){dev, pool->started + 1};
        if (pthread_create(&pool->thread[pool->started + 1], NULL, pool_main, arg) != 0) {
            free(arg);
            return err_set(err, ERR_SYSTEM, "cannot start a thread");
        }
        pool->started++;
    }
    return 0;
}

static unsigned worker_count(const struct cpu_job *job)
{
    uint64_t n = job->schedule.workers ? job->schedule.workers : parallel_cpus();

    n = CPU_SANITIZED ? 1 : n < CPU_MAX_WORKERS ? n : CPU_MAX_WORKERS;
    return (unsigned)(n < job->nblocks ? n : job->nblocks);
}

/* Of several workers' faults the one of the lowest block. */
static int collect(struct cpu_device *dev, unsigned n, struct err *err)
{
    const struct cpu_worker *first = NULL;

    for (unsigned i = 0; i < n; i++) {
        const struct cpu_worker *w = dev->worker[i];

        if (w->fault.set && (!first || w->fault.block < first->fault.block))
            first = w;
    }
    if (!first)
        return cpu_check_slack(dev, err);
    cpu_fault_describe(dev, first, err);
    return -1;
}

int cpu_run(struct cpu_device *dev, struct cpu_job *job, struct err *err)
{
    struct cpu_pool *pool = &dev->pool;
    unsigned n = worker_count(job);

    if (provide(dev, n, err) < 0)
        return -1;
    cpu_handlers_install();
    pthread_mutex_lock(&pool->lock);
    pool->job = job;
    pool->wanted = n;
    pool->busy = n; /* the calling thread counts, for the watchdog */
    pool->generation++;
    pthread_mutex_unlock(&pool->lock);
    if (n > 1) /* after the unlock: whoever wakes up needs the lock at once */
        pthread_cond_broadcast(&pool->go);
    work(dev->worker[0], job);
    pthread_mutex_lock(&pool->lock);
    pool->busy--;
    while (pool->busy)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return collect(dev, n, err);
}

void cpu_set_block_limit(struct device *dev, double seconds)
{
    cpu_device_of(dev)->limit_s = seconds;
}

void cpu_pool_open(struct cpu_device *dev)
{
    dev->limit_s = BLOCK_LIMIT_S;
    pthread_mutex_init(&dev->pool.lock, NULL);
    pthread_cond_init(&dev->pool.go, NULL);
    pthread_cond_init(&dev->pool.done, NULL);
    pthread_cond_init(&dev->pool.tick, NULL);
}

void cpu_pool_close(struct cpu_device *dev)
{
    struct cpu_pool *pool = &dev->pool;

    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->go);
    pthread_cond_broadcast(&pool->tick);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 1; i <= pool->started; i++)
        pthread_join(pool->thread[i], NULL);
    if (pool->watching)
        pthread_join(pool->watchdog, NULL);
    for (unsigned i = 0; i < CPU_MAX_WORKERS; i++)
        if (dev->worker[i]) {
            cpu_worker_release(dev->worker[i]);
            free(dev->worker[i]);
        }
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->go);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->tick);
}
