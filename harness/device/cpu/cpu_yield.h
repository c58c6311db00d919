/* Giving the processor to another fiber of the worker: inline, for it is what a barrier costs. */
#ifndef DEVICE_CPU_YIELD_H
#define DEVICE_CPU_YIELD_H

#include "device/cpu/cpu_worker.h"

/* Leaves the context that is saved in *save for the fiber's. */
static inline void cpu_resume(struct cpu_worker *w, void **save, struct cpu_fiber *f)
{
    cpu_current = &f->thread;
    cpu_sanitizer_enter(w, f);
    cpu_switch(save, f->sp);
}

static inline struct cpu_fiber *cpu_take_ready(struct cpu_worker *w)
{
    struct cpu_fiber *f = w->ready[w->ready_head];

    w->ready_head = (w->ready_head + 1) % CPU_MAX_THREADS;
    w->ready_count--;
    if (w->ready_count > 1) { /* the stack of the one after the next: its misses pass meanwhile */
        const char *sp = w->ready[(w->ready_head + 1) % CPU_MAX_THREADS]->sp;

        __builtin_prefetch(sp);
        __builtin_prefetch(sp + 64);
        __builtin_prefetch(sp + 128);
    }
    return f;
}

/* The running fiber waits; returns when somebody has made it ready and its turn has come. */
static inline void cpu_yield(struct cpu_worker *w, struct cpu_fiber *f)
{
    struct cpu_fiber *next;

    if (CPU_SANITIZED && w->fault.set)
        cpu_abandon(w);
    if (w->started != w->threads || w->ready_count == 0 || w->job->schedule.order >= ORDER_RANDOM) {
        cpu_yield_slow(w, f);
        return;
    }
    next = cpu_take_ready(w);
    if (next == f)
        return;
    cpu_resume(w, &f->sp, next);
}

#endif
