/*
 * Fibers of one block. A thread that has not started owns no stack; one that ends hands its stack
 * to the next thread not yet started, so a kernel without barriers runs all its threads on one
 * stack and never switches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/cpu/cpu_worker.h"
#include "device/cpu/cpu_yield.h"

#define GUARD_LEAST (64 * 1024)

#if defined(__x86_64__)
#define SAVED_WORDS 6 /* rbp rbx r12-r15 below the return address */
#else
#define SAVED_WORDS 19 /* d8-d15, x19-x29, then x30 */
#endif

__thread struct cpu_thread *cpu_current;
_Thread_local struct cpu_worker *cpu_this_worker;

/* --- stacks ----------------------------------------------------------------------------------- */

/* Whole pages (4 KiB on x86-64; 4, 16 or 64 KiB on aarch64, as its kernel was built), and an odd
   number of them together with the stack: see prepare_stack(). */
size_t cpu_guard_bytes(size_t page)
{
    size_t pages = (GUARD_LEAST + page - 1) / page;

    return (pages + ((pages + CPU_STACK_BYTES / page) % 2 == 0)) * page;
}

static size_t stack_mapping(const struct cpu_worker *w)
{
    return w->guard_bytes + CPU_STACK_BYTES;
}

static unsigned char *map_stack(const struct cpu_worker *w)
{
    size_t size = stack_mapping(w);
    unsigned char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (mprotect(p, w->guard_bytes, PROT_NONE) == 0)
        return p;
    munmap(p, size);
    return NULL;
}

/* A context that enters cpu_fiber_entry when it is resumed. Stacks start 64 to 3,968 bytes below
   their end, each at another cache set (all the same depth into a page would share the few ways of
   one set), and lie an odd number of pages apart, for the sets of the address translation cache. */
static void *prepare_stack(const struct cpu_worker *w, unsigned index)
{
    unsigned char *end = w->stack[index] + stack_mapping(w);
    uint64_t *top = (uint64_t *)(void *)(end - 64 - 64 * (index * 11 % 62));
    uint64_t *sp;

#if defined(__x86_64__)
    top[-1] =
        0; /* cpu_fiber_entry starts with its stack 16-byte aligned: it calls, never returns */
    top[-2] = 0;
    sp = top - 3 - SAVED_WORDS;
#else
    sp = top - 1 - SAVED_WORDS;
#endif
    memset(sp, 0, SAVED_WORDS * sizeof *sp);
    sp[SAVED_WORDS] = (uint64_t)(uintptr_t)cpu_fiber_entry;
    return sp;
}

/* Where threads have stacks of their own, these are mapped before the block starts. */
static bool map_own_stacks(struct cpu_worker *w)
{
    w->nstacks = CPU_STACK_SETS * CPU_MAX_THREADS;
    for (uint32_t i = 0; i < w->threads; i++) {
        unsigned char **own = &w->stack[w->stack_set * CPU_MAX_THREADS + i];

        if (!*own && !(*own = map_stack(w))) {
            cpu_fail_block(w, "no memory for the stack of thread %u", i);
            return false;
        }
    }
    return true;
}

static void free_stack(struct cpu_worker *w, const struct cpu_fiber *f)
{
    if (CPU_STACK_SETS == 1)
        w->free_stack[w->nfree++] = f->stack;
}

static bool assign_stack(struct cpu_worker *w, struct cpu_fiber *f)
{
    if (CPU_STACK_SETS > 1) {
        f->stack = (uint16_t)(w->stack_set * CPU_MAX_THREADS + f->linear);
        f->sp = prepare_stack(w, f->stack);
        return true;
    }
    if (w->nfree == 0) {
        unsigned char *p = map_stack(w);

        if (!p)
            return false;
        w->free_stack[w->nfree++] = (uint16_t)w->nstacks;
        w->stack[w->nstacks++] = p;
    }
    f->stack = w->free_stack[--w->nfree];
    f->sp = prepare_stack(w, f->stack);
    return true;
}

bool cpu_on_fiber_stack(const struct cpu_worker *w, uintptr_t sp)
{
    for (uint32_t i = 0; i < w->nstacks; i++)
        if (sp - (uintptr_t)w->stack[i] < stack_mapping(w))
            return true;
    return false;
}

/* --- the run queue ---------------------------------------------------------------------------- */

uint64_t cpu_random(struct cpu_worker *w)
{
    uint64_t x = w->random; /* xorshift64*: G. Marsaglia 2003, S. Vigna 2016 */

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    w->random = x;
    return x * 0x2545f4914f6cdd1du;
}

void cpu_make_ready(struct cpu_worker *w, struct cpu_fiber *f)
{
    f->state = FIBER_READY;
    w->ready[(w->ready_head + w->ready_count++) % CPU_MAX_THREADS] = f;
}

/* Everyone that waits runs again, in the order of arrival: forward stays forward, reverse reverse.
   All live threads wait, so the run queue is empty and the two lists change places. */
void cpu_release_barrier(struct cpu_worker *w)
{
    struct cpu_fiber **arrived = w->waiting;

    cpu_sanitizer_meet(w, arrived, w->nwaiting);
    w->waiting = w->ready;
    w->ready = arrived;
    w->ready_head = 0;
    w->ready_count = w->nwaiting;
    w->nwaiting = 0;
    w->barrier++;
    w->barrier_where = NULL;
    w->vote_result = w->vote_count;
    w->vote_count = 0;
}

/* One of the runnable, by number: those not started, then the others. ORDER_WARPS stays in the warp
   that ran last while it can, so that it gets as far ahead of the others as the barriers let it.
   Threads that take turns hide a missing barrier behind warp operations: each has read what it
   needs before anybody overwrites it. */
static uint64_t choose(struct cpu_worker *w, uint32_t fresh)
{
    if (w->job->schedule.order == ORDER_WARPS && cpu_current) {
        unsigned warp = cpu_running()->linear / CPU_WARP;

        for (uint32_t i = 0; i < fresh; i++)
            if (w->fresh[w->started + i] / CPU_WARP == warp)
                return i;
        for (uint32_t i = 0; i < w->ready_count; i++)
            if (w->ready[(w->ready_head + i) % CPU_MAX_THREADS]->linear / CPU_WARP == warp)
                return fresh + i;
    }
    return cpu_random(w) % (fresh + w->ready_count);
}

/* Brings the chosen one of the runnable to the place that is taken next. Returns whether that is a
   started one. */
static bool draw(struct cpu_worker *w)
{
    uint32_t fresh = w->threads - w->started;
    uint64_t pick = choose(w, fresh);

    if (pick < fresh) {
        uint16_t *a = &w->fresh[w->started], *b = &w->fresh[w->started + pick], t = *a;

        *a = *b;
        *b = t;
        return false;
    }
    pick -= fresh;
    struct cpu_fiber **a = &w->ready[w->ready_head];
    struct cpu_fiber **b = &w->ready[(w->ready_head + pick) % CPU_MAX_THREADS], *t = *a;

    *a = *b;
    *b = t;
    return true;
}

/* The next fiber to run; NULL when nobody can. One in state FIBER_NEW has no stack yet. */
static struct cpu_fiber *take(struct cpu_worker *w)
{
    bool from_ready = w->started == w->threads;

    if (w->ready_count == 0 && from_ready)
        return NULL;
    if (w->job->schedule.order >= ORDER_RANDOM)
        from_ready = draw(w);
    if (!from_ready)
        return &w->fiber[w->fresh[w->started++]];
    return cpu_take_ready(w);
}

static struct cpu_fiber *take_or_fail(struct cpu_worker *w)
{
    struct cpu_fiber *f = take(w);

    if (!f && cpu_settle_idle(w))
        f = take(w);
    if (!f) {
        cpu_stuck(w);
        cpu_abandon(w);
    }
    return f;
}

static bool start(struct cpu_worker *w, struct cpu_fiber *f)
{
    if (assign_stack(w, f))
        return true;
    cpu_fail_block(w, "no memory for the stack of thread %u: use fewer workers", f->linear);
    return false;
}

void cpu_yield_slow(struct cpu_worker *w, struct cpu_fiber *f)
{
    struct cpu_fiber *next = take_or_fail(w);

    if (next == f)
        return;
    if (next->state == FIBER_NEW && !start(w, next))
        cpu_abandon(w);
    cpu_resume(w, &f->sp, next);
}

/* --- life of a fiber -------------------------------------------------------------------------- */

/* Runs threads on this stack until the next to run has a stack of its own (or is to have one).
   Never returns: at the end it switches to that one, or to the worker. */
void cpu_fiber_main(void)
{
    for (;;) {
        struct cpu_fiber *f = cpu_running(), *next;
        struct cpu_worker *w = f->worker;
        void *unused;

        f->state = FIBER_READY;
        cpu_sanitizer_thread_begins(w);
        w->job->desc->invoke(w->job->params);
        if (CPU_SANITIZED && w->fault.set)
            cpu_abandon(w);
        if (f->copy_first != f->copy_end)
            cpu_copy_drain(f);
        cpu_sanitizer_thread_ends(w);
        f->state = FIBER_DONE;
        w->live--;
        w->warp[f->linear / CPU_WARP].alive &= ~(1u << f->linear % CPU_WARP);
        cpu_settle(w, f);
        if (w->live == 0) {
            free_stack(w, f);
            cpu_switch(&unused, w->main_sp);
        }
        next = take_or_fail(w);
        if (next->state == FIBER_NEW && CPU_STACK_SETS == 1) {
            next->stack = f->stack;
            cpu_current = &next->thread;
            continue;
        }
        if (next->state == FIBER_NEW)
            (void)start(w, next); /* its stack is there */
        free_stack(w, f);
        cpu_resume(w, &unused, next);
    }
}

_Noreturn void cpu_abandon(struct cpu_worker *w)
{
    void *unused;

    cpu_switch(&unused, w->main_sp);
    BUG("an abandoned fiber was resumed");
}

/* --- a block ---------------------------------------------------------------------------------- */

/* Numbers and indices of the threads; they stay while the block's shape does. */
static void shape_threads(struct cpu_worker *w, const struct extent *dim)
{
    for (uint32_t i = 0; i < w->threads; i++) {
        struct cpu_fiber *f = &w->fiber[i];

        f->worker = w;
        f->linear = (uint16_t)i;
        f->thread.index = cpu_pack(i % dim->x, i / dim->x % dim->y, i / dim->x / dim->y);
        f->thread.lane = i % CPU_WARP;
        f->thread.block = &w->block;
    }
}

static void reset_threads(struct cpu_worker *w, enum thread_order order)
{
    uint32_t n = w->threads;

    for (uint32_t i = 0; i < n; i++) {
        struct cpu_fiber *f = &w->fiber[i];

        f->state = FIBER_NEW;
        f->copy_first = f->copy_end = f->copy_groups = 0;
        w->fresh[i] = (uint16_t)(order == ORDER_REVERSE ? n - 1 - i : i);
    }
    for (uint32_t i = 0; i < (n + CPU_WARP - 1) / CPU_WARP; i++) {
        uint32_t lanes = n - i * CPU_WARP;

        w->warp[i].alive = lanes >= CPU_WARP ? UINT32_MAX : (1u << lanes) - 1;
        w->warp[i].waiting = 0;
    }
    w->live = n;
    w->ready = w->queue[0];
    w->waiting = w->queue[1];
    w->started = w->ready_head = w->ready_count = w->nwaiting = 0;
    w->barrier_where = NULL;
    w->vote_count = w->vote_result = 0;
}

/* Every stack is free again, whatever was left on it. */
static void drop_stacks(struct cpu_worker *w)
{
    cpu_sanitizer_block_abandoned(w);
    for (w->nfree = 0; CPU_STACK_SETS == 1 && w->nfree < w->nstacks; w->nfree++)
        w->free_stack[w->nfree] = (uint16_t)w->nfree;
}

void cpu_run_block(struct cpu_worker *w, uint64_t linear)
{
    const struct cpu_job *job = w->job;
    const struct extent *dim = &job->block, *grid = &job->grid;
    struct cpu_fiber *first;

    w->block_linear = linear;
    w->block.index = cpu_pack((uint32_t)(linear % grid->x), (uint32_t)(linear / grid->x % grid->y),
                              (uint32_t)(linear / grid->x / grid->y));
    w->block.grid = cpu_pack(grid->x, grid->y, grid->z);
    if (w->block.dim != cpu_pack(dim->x, dim->y, dim->z)) {
        w->block.dim = cpu_pack(dim->x, dim->y, dim->z);
        w->threads = dim->x * dim->y * dim->z;
        shape_threads(w, dim);
    }
    reset_threads(w, job->schedule.order);
    w->random = (job->schedule.seed + linear * 0x9e3779b97f4a7c15u) | 1;
    cpu_sanitizer_block_begins(w);
    if (CPU_STACK_SETS > 1 && !map_own_stacks(w))
        return;
    cpu_shared_fill(w);
    cpu_sanitizer_block_filled(w);
    first = take(w);
    if (!start(w, first))
        return;
    cpu_resume(w, &w->main_sp, first);
    cpu_sanitizer_enter(w, NULL);
    cpu_current = NULL;
    if (w->fault.set) {
        drop_stacks(w);
        return;
    }
    (void)cpu_shared_intact(w);
}

int cpu_worker_init(struct cpu_worker *w, struct err *err)
{
    memset(w, 0, sizeof *w);
    atomic_store(&w->progress, 1);
    w->guard_bytes = cpu_guard_bytes((size_t)sysconf(_SC_PAGESIZE));
    w->signal_stack = mmap(NULL, CPU_STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->signal_stack == MAP_FAILED)
        return err_set(err, ERR_SYSTEM, "no memory for a worker of the CPU device");
    if (cpu_sanitizer_open(w) < 0) {
        munmap(w->signal_stack, CPU_STACK_BYTES);
        return err_set(err, ERR_SYSTEM, "no memory for a worker of the CPU device");
    }
    return 0;
}

void cpu_worker_release(struct cpu_worker *w)
{
    cpu_sanitizer_close(w);
    for (uint32_t i = 0; i < w->nstacks; i++)
        if (w->stack[i])
            munmap(w->stack[i], stack_mapping(w));
    if (w->window)
        munmap(w->window, w->window_bytes);
    if (w->copies)
        munmap(w->copies, sizeof *w->copies * CPU_MAX_COPIES * CPU_MAX_THREADS);
    munmap(w->signal_stack, CPU_STACK_BYTES);
}
