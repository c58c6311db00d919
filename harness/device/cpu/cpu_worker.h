/*
 * A worker: one OS thread that runs blocks, one after another, each as up to 1,024 fibers.
 *
 *     cpu_fiber.c   stacks, the run queue, starting, finishing and abandoning fibers, one block
 *     cpu_sync.c    barriers and warp operations, called from kernel code
 *     cpu_copy.c    cp.async and the shared window, called from kernel code
 *     cpu_fault.c   signals and the texts of faults; cpu_place.c the names of addresses in them
 *     cpu_pool.c    the workers of a device, launches, the watchdog
 *     cpu_asan.c, cpu_tsan.c    the sanitizer builds, see cpu_sanitizer.h
 *
 * All state of a block is thrown away when it fails, so a fault may strike between any two
 * instructions of a fiber: the worker's own context (main_sp) is intact then.
 */
#ifndef DEVICE_CPU_WORKER_H
#define DEVICE_CPU_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/cpu/cpu_sanitizer.h"
#include "device/cpu/include/cpu_abi.h"
#include "device/device.h"

#define CPU_WARP        32
#define CPU_MAX_THREADS 1024
#define CPU_STACK_BYTES (256 * 1024)
#define CPU_MAX_COPIES  256 /* outstanding cp.async a thread in late mode; the oldest lands early */
#define CPU_CANARY      1024 /* bytes below the dynamic shared memory that are checked */

enum fiber_state { FIBER_NEW, FIBER_READY, FIBER_BARRIER, FIBER_WARP, FIBER_DONE };

struct cpu_worker;
struct cpu_module;

/* The first cache line is what a switch at a barrier touches. */
struct cpu_fiber {
    _Alignas(64) struct cpu_thread thread; /* first: cpu_current points at it */
    struct cpu_worker *worker;
    void *sp; /* where to resume; valid while not running */
    enum fiber_state state;
    uint16_t linear, stack; /* thread number in the block; index of its stack */
    const char *where;      /* it waits there */
    uint32_t barrier;       /* of FIBER_BARRIER, which counts only while this is the worker's */
    /* the warp operation it waits in */
    enum cpu_warp_op op;
    uint32_t mask;
    int32_t arg, width;
    uint64_t value, result;
    void (*compute)(void *const mine[32]);
    /* cp.async: copies [copy_first, copy_end) are outstanding, groups count commits */
    uint32_t copy_first, copy_end, copy_groups;
};

struct cpu_copy {
    void *to;
    const void *from;
    uint32_t bytes, total, group;
};

struct cpu_warp_state {
    uint32_t alive, waiting;
};

/* What a worker could not finish. `text` is complete for faults that the runtime found; a signal
   only leaves what follows, and cpu_fault_describe() makes the text afterwards. */
struct cpu_fault {
    bool set;
    int signal; /* 0: text is set */
    int code;
    uintptr_t address, pc;
    int access;     /* 0 read, 1 write, -1 unknown */
    uint64_t block; /* linear index */
    uint16_t thread;
    char text[896];
};

struct cpu_job {
    const struct kernel *kernel;
    const struct cpu_module *module; /* of cpu_device.h */
    const struct cpu_kernel_desc *desc;
    struct extent grid, block;
    uint64_t shared, nblocks;
    void *const *params;
    struct schedule schedule;
    atomic_uint_fast64_t next;
    atomic_bool stop;
};

struct cpu_worker {
    struct cpu_fiber fiber[CPU_MAX_THREADS];
    struct cpu_warp_state warp[CPU_MAX_THREADS / CPU_WARP];
    struct cpu_block block;
    const struct cpu_job *job;
    uint64_t block_linear;
    uint32_t threads, live;

    /* the run queue: a ring of fibers that may run, then those not started yet */
    struct cpu_fiber *queue[2][CPU_MAX_THREADS], **ready, **waiting; /* the two change places */
    uint32_t ready_head, ready_count, nwaiting, barrier, started;
    uint16_t fresh[CPU_MAX_THREADS]; /* order in which threads start */
    const char *barrier_where;
    int vote_count, vote_result;
    uint64_t random;

    void *main_sp;
    unsigned char *stack[CPU_STACK_SETS * CPU_MAX_THREADS]; /* each mapping: guard, then stack */
    uint16_t free_stack[CPU_MAX_THREADS];                   /* unless there are sets of them */
    uint32_t nstacks, nfree, stack_set;
    size_t guard_bytes; /* below each stack */
    void *sanitizer;    /* what the sanitizer's build keeps of the worker */

    unsigned char *window; /* guard, shared memory that ends at a guard, guard */
    size_t window_bytes;
    unsigned char *static_shared;
    size_t static_bytes;
    uint64_t static_owner;   /* id of the module that the two above belong to; 0 none */
    struct cpu_copy *copies; /* CPU_MAX_COPIES a thread, mapped on first use */

    struct cpu_fault fault;
    void *signal_stack;
    pthread_t os_thread;
    atomic_uint_fast64_t progress; /* blocks finished and launches begun, ever; starts at 1 */
    atomic_uint_fast64_t expired;  /* the progress at which the watchdog lost patience; 0 never */
    atomic_bool active;
};

/* The worker of this OS thread while it runs a launch; NULL otherwise. */
extern _Thread_local struct cpu_worker *cpu_this_worker;

static inline struct cpu_fiber *cpu_running(void)
{
    return (struct cpu_fiber *)(void *)cpu_current;
}

/* cpu_fiber.c */
int cpu_worker_init(struct cpu_worker *w, struct err *err);
void cpu_worker_release(struct cpu_worker *w);
size_t cpu_guard_bytes(size_t page); /* the guard below a stack where pages have so many bytes */
void cpu_run_block(struct cpu_worker *w, uint64_t linear); /* w->fault.set afterwards: it failed */
void cpu_yield_slow(struct cpu_worker *w, struct cpu_fiber *f);
void cpu_make_ready(struct cpu_worker *w, struct cpu_fiber *f);
void cpu_release_barrier(struct cpu_worker *w);
bool cpu_on_fiber_stack(const struct cpu_worker *w, uintptr_t sp);
uint64_t cpu_random(struct cpu_worker *w);
void cpu_switch(void **save, void *resume);
extern const char cpu_switch_resume[], cpu_fiber_entry[];
void cpu_fiber_main(void);

_Noreturn void cpu_abandon(struct cpu_worker *w); /* to the worker's own context */

/* cpu_sync.c */
void cpu_settle(struct cpu_worker *w, struct cpu_fiber *f); /* f is gone: what completes now? */
bool cpu_settle_idle(struct cpu_worker *w); /* nobody can run: does anything complete? */

/* cpu_copy.c */
int cpu_shared_prepare(struct cpu_worker *w, const struct cpu_job *job, struct err *err);
void cpu_shared_fill(struct cpu_worker *w);
bool cpu_shared_intact(struct cpu_worker *w); /* else a fault is set */
void cpu_copy_drain(struct cpu_fiber *f);     /* the thread ends: all its copies land */

/* cpu_fault.c: sets the fault of the running fiber and gives the block up */
_Noreturn void cpu_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for the block as a whole; returns. */
void cpu_fail_block(struct cpu_worker *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void cpu_stuck(struct cpu_worker *w); /* describes a block in which nobody can run */

#endif
