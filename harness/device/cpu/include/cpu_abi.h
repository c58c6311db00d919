/*
 * The boundary between a CPU kernel module (a .so made by scripts/build-cpu-module from a .cu) and
 * the runtime inside the executable. C and C++. A change of layout or meaning raises CPU_ABI.
 *
 * A CUDA thread is a fiber of an OS thread (a worker); the fibers of one worker never run at the
 * same time and never move to another, so `cpu_current` needs no lock.
 */
#ifndef DEVICE_CPU_ABI_H
#define DEVICE_CPU_ABI_H

#pragma GCC system_header

#include <stdint.h>

#define CPU_ABI 5

/* The capacity of a block's dynamic shared memory; GB10's limit for static and dynamic together. */
#define CPU_SHARED_MAX (99 * 1024)

/* In the sanitizer builds, the bytes on either side of a static shared variable that nobody may
   touch: the largest alignment that such a variable has a use for. */
enum { CPU_SHARED_FENCE = 1024 };

/* x in the low 32 bits, y and z in 16 each: GB10's limits allow no more. */
static inline uint64_t cpu_pack(uint32_t x, uint32_t y, uint32_t z)
{
    return (uint64_t)z << 48 | (uint64_t)y << 32 | x;
}

static inline uint32_t cpu_axis(uint64_t packed, unsigned axis)
{
    return axis == 0 ? (uint32_t)packed : (uint32_t)(packed >> (16 + 16 * axis)) & 0xffffu;
}

/* What the threads of a block have in common; constant while the block runs. */
struct cpu_block {
    uint64_t index, dim, grid; /* three axes each: cpu_pack() */
    unsigned char *shared;     /* dynamic shared memory: shared_bytes, then an unmapped page */
    uint64_t shared_bytes;
};

/* What kernel code sees of its thread; constant while the thread runs. */
struct cpu_thread {
    uint64_t index; /* cpu_pack() */
    uint32_t lane;
    uint32_t fenced; /* ThreadSanitizer's build: it has executed a __threadfence() */
    const struct cpu_block *block;
};

/* --- what a module exports: one `const struct cpu_module_desc cpu_module` --------------------- */

struct cpu_kernel_desc {
    const char *name;      /* as in the source */
    const char *kinds;     /* one letter per parameter, see struct kernel; '?' by-value struct */
    const uint16_t *sizes; /* bytes per parameter */
    uint32_t nparams;
    uint32_t max_threads;                /* from __launch_bounds__, else 1024 */
    void (*invoke)(void *const *params); /* params[i] points at argument i */
};

/* A symbol of the module, from its symbol table. */
struct cpu_symbol {
    const char *name; /* linkage name: a local variable of function f is _ZZ1f..E... */
    uint64_t bytes;
    void *address; /* of a static shared variable with fences around it, else NULL */
};

struct cpu_module_desc {
    uint32_t abi;
    uint32_t nkernels;
    const struct cpu_kernel_desc *const *kernels;
    const struct cpu_symbol *entries; /* linkage names of the kernels, in the same order */
    const struct cpu_symbol *shared;  /* static shared variables, ends with { NULL } */
    void *(*static_shared)(void);     /* an address in this worker's static shared memory */
    const char *flags;                /* how it was compiled */
    const char *source_hash;          /* of the preprocessed source */
    const char *sanitizer;            /* "address" or "thread"; "" in the ordinary build */
};

/* --- what the runtime offers to kernel code --------------------------------------------------- */

#ifdef __cplusplus
extern "C" {
#endif

extern __thread struct cpu_thread *cpu_current;

/* Of the running thread and its block; in the module itself (cpu_module.inc). Constant while a
   thread runs: the compiler calls them once a kernel and keeps the result over barriers. */
uint64_t cpu_thread_index(void) __attribute__((const));
uint32_t cpu_thread_lane(void) __attribute__((const));
uint64_t cpu_block_index(void) __attribute__((const));
uint64_t cpu_block_dim(void) __attribute__((const));
uint64_t cpu_grid_dim(void) __attribute__((const));
void *cpu_dynamic_shared(void) __attribute__((const));

/* `where` is "file:line" of the call in the kernel's source; behind its NUL a second string tells
   two barriers of one line apart. */
void cpu_barrier(const char *where);

enum cpu_vote { CPU_VOTE_COUNT, CPU_VOTE_AND, CPU_VOTE_OR };
int cpu_barrier_vote(enum cpu_vote op, int predicate, const char *where);

enum cpu_warp_op {
    CPU_WARP_SYNC,
    CPU_WARP_SHUFFLE,
    CPU_WARP_SHUFFLE_UP,
    CPU_WARP_SHUFFLE_DOWN,
    CPU_WARP_SHUFFLE_XOR,
    CPU_WARP_BALLOT,
    CPU_WARP_ACTIVE,
    CPU_WARP_ADD,
    CPU_WARP_MIN,
    CPU_WARP_MAX,
    CPU_WARP_MIN_SIGNED,
    CPU_WARP_MAX_SIGNED,
    CPU_WARP_AND,
    CPU_WARP_OR,
    CPU_WARP_XOR,
    CPU_WARP_MATCH_ANY,
    CPU_WARP_MATCH_ALL,
    CPU_WARP_TOGETHER,
};

/* One lane's part of a warp operation; returns when all lanes of `mask` that have not exited
   arrived. */
uint64_t cpu_warp(enum cpu_warp_op op, uint32_t mask, uint64_t value, int32_t arg, int32_t width,
                  const char *where);

/* All 32 lanes meet, the last one runs compute(mine of each lane): mma, ldmatrix and the like. */
void cpu_warp_together(void (*compute)(void *const mine[32]), void *mine, const char *where);

/* cp.async: `bytes` of `total` are copied, the rest becomes zero. In late mode the copy happens at
   the last wait that allows it. */
void cpu_copy_async(void *shared, const void *global, uint32_t bytes, uint32_t total);
void cpu_copy_commit(void);
void cpu_copy_wait(uint32_t pending); /* all but the latest `pending` groups */
void cpu_copy_wait_all(void);         /* also what has not been committed */

/* The shared window: 32-bit addresses as PTX has them. */
uint32_t cpu_shared_address(const void *generic);
void *cpu_shared_pointer(uint32_t address);

/* ThreadSanitizer's build only: __threadfence(), and an atomic update of the word at p about to
   begin or just done. CUDA's atomics order nothing but themselves, unless a fence stands with
   them. */
void cpu_thread_fence(void);
void cpu_atomic_begin(void *p);
void cpu_atomic_end(void *p);

__attribute__((noreturn)) void cpu_trap(const char *what, const char *where);
__attribute__((noreturn)) void cpu_misaligned(const void *address, uint64_t alignment,
                                              const char *where);

#ifdef __cplusplus
}
#endif

#endif
