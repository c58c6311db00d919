/*
 * The sanitizer builds of the CPU device (make asan, make tsan): what the runtime tells the
 * sanitizer, so that it takes each fiber for a thread. In the ordinary build all of it is empty.
 *
 * Compiled with -DCPU_ASAN or -DCPU_TSAN, which stand for instrumented kernel modules; the runtime
 * itself is not instrumented: its own bookkeeping is no business of a kernel's threads. One worker
 * runs all blocks.
 *
 * AddressSanitizer: device buffers and dynamic shared memory end at the byte; static shared
 * variables have fences (cuda-prepass --fenced). What it reports becomes the fault of the running
 * thread, with file and line, and ends the block at the thread's next call of the runtime.
 *
 * ThreadSanitizer: each CUDA thread is a context of its own, and what orders two of them is
 *     - __syncthreads and its kin, among all threads of the block; one that has exited counts as
 *       arrived;
 *     - __syncwarp, among the lanes of its mask (CUDA C++ Programming Guide, "Synchronization
 *       Functions": it "guarantees memory ordering among threads participating in the barrier");
 *     - a launch: it sees all of the launches and copies before it, and they see all of it;
 *     - an atomic by a thread that has executed a __threadfence(), as release and acquire.
 * Not the other warp operations (shuffles, votes, match, reduce: "do not imply a memory barrier",
 * same guide), not mma or ldmatrix, and not atomics without a fence, which are relaxed. Blocks of
 * one launch are not ordered: they take turns with two sets of contexts, so that a block is held
 * against every second one that ran before it; the other schedules pair other blocks.
 */
#ifndef DEVICE_CPU_SANITIZER_H
#define DEVICE_CPU_SANITIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(CPU_ASAN)
#define CPU_SANITIZER "address"
#elif defined(CPU_TSAN)
#define CPU_SANITIZER "thread"
#else
#define CPU_SANITIZER ""
#endif
#if defined(CPU_ASAN) || defined(CPU_TSAN)
#define CPU_SANITIZED 1
#else
#define CPU_SANITIZED 0
#endif

/* Each thread of a block has a stack of its own, which another set of threads does not share:
   ThreadSanitizer would take the second for the first. */
#if defined(CPU_TSAN)
#define CPU_STACK_SETS 2
#else
#define CPU_STACK_SETS 1
#endif

struct cpu_worker;
struct cpu_fiber;

/* --- both ------------------------------------------------------------------------------------- */

#if CPU_SANITIZED
int cpu_sanitizer_open(struct cpu_worker *w); /* -1: no memory */
void cpu_sanitizer_close(struct cpu_worker *w);
void cpu_sanitizer_launch_begins(struct cpu_worker *w); /* these two on the worker's own context */
void cpu_sanitizer_block_abandoned(struct cpu_worker *w);
/* f (NULL: the worker's own context) runs from here on: right before a switch, or behind one. */
void cpu_sanitizer_enter(struct cpu_worker *w, const struct cpu_fiber *f);
/* cpu_fault.c: the running thread's fault is what the sanitizer caught at `where`, "file:line";
   the memory is at `address`. Only the first of a block counts; nothing outside a kernel does. */
void cpu_sanitizer_caught(const char *kind, const char *where, const char *what, uintptr_t address);
/* Is "file:line" a place in a kernel's source, not in the shim, the runtime or the sanitizer? */
bool cpu_kernel_place(const char *place);
#else
#define cpu_sanitizer_open(w)            ((void)(w), 0)
#define cpu_sanitizer_close(w)           ((void)(w))
#define cpu_sanitizer_launch_begins(w)   ((void)(w))
#define cpu_sanitizer_block_abandoned(w) ((void)(w))
#define cpu_sanitizer_enter(w, f)        ((void)(w), (void)(f))
#endif

/* --- AddressSanitizer: [begin, begin + n) is nobody's, or in use again ------------------------ */

#if defined(CPU_ASAN)
void __asan_poison_memory_region(const volatile void *begin, size_t n);
void __asan_unpoison_memory_region(const volatile void *begin, size_t n);
#define cpu_sanitizer_forbid(begin, n) __asan_poison_memory_region(begin, n)
#define cpu_sanitizer_allow(begin, n)  __asan_unpoison_memory_region(begin, n)
/* Takes what is forbidden off both ends of a buffer: the fences in it. */
void cpu_sanitizer_trim(uintptr_t *begin, uintptr_t *end);
#else
#define cpu_sanitizer_forbid(begin, n) ((void)(begin), (void)(n))
#define cpu_sanitizer_allow(begin, n)  ((void)(begin), (void)(n))
#define cpu_sanitizer_trim(begin, end) ((void)(begin), (void)(end))
#endif

/* --- ThreadSanitizer -------------------------------------------------------------------------- */

#if defined(CPU_TSAN)
/* On the worker's own context; the second before shared memory is filled, the third behind that. */
void cpu_sanitizer_launch_ends(struct cpu_worker *w);
void cpu_sanitizer_block_begins(struct cpu_worker *w);
void cpu_sanitizer_block_filled(struct cpu_worker *w);
/* On the thread. */
void cpu_sanitizer_thread_begins(struct cpu_worker *w);
void cpu_sanitizer_thread_ends(struct cpu_worker *w);
/* A barrier of these fibers is complete: what each did before it, the others see behind it. */
void cpu_sanitizer_meet(struct cpu_worker *w, struct cpu_fiber *const *f, unsigned n);
/* What libc writes between the two for the runtime is no access of the thread's. */
void cpu_sanitizer_pause(void);
void cpu_sanitizer_resume(void);
/* Between the two, accesses count as made at the call that returns to pc. */
void cpu_sanitizer_call(void *pc);
void cpu_sanitizer_return(void);
#else
#define cpu_sanitizer_launch_ends(w)   ((void)(w))
#define cpu_sanitizer_block_begins(w)  ((void)(w))
#define cpu_sanitizer_block_filled(w)  ((void)(w))
#define cpu_sanitizer_thread_begins(w) ((void)(w))
#define cpu_sanitizer_thread_ends(w)   ((void)(w))
#define cpu_sanitizer_meet(w, f, n)    ((void)(w), (void)(f), (void)(n))
#define cpu_sanitizer_pause()          ((void)0)
#define cpu_sanitizer_resume()         ((void)0)
#define cpu_sanitizer_call(pc)         ((void)(pc))
#define cpu_sanitizer_return()         ((void)0)
#endif

#endif
