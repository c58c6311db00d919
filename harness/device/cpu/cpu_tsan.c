/* ThreadSanitizer's side of cpu_sanitizer.h; empty in the other builds. */
#include "device/cpu/cpu_sanitizer.h"

#ifdef CPU_TSAN

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu_worker.h"

/* Parts of the run-time library without a header: its interface for memory managers that reuse
   memory (made for the Java VM), annotations, and what a debugger may ask about a report. */
void __tsan_java_init(uintptr_t heap_begin, uintptr_t heap_size);
void __tsan_java_alloc(uintptr_t p, uintptr_t n);
void __tsan_java_free(uintptr_t p, uintptr_t n);
void __tsan_func_entry(void *call_pc);
void __tsan_func_exit(void);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
int __tsan_get_report_data(void *report, const char **description, int *count, int *stacks,
                           int *mops, int *locations, int *mutexes, int *threads, int *unique_tids,
                           void **sleep_trace, unsigned long trace_size);
int __tsan_get_report_mop(void *report, unsigned long i, int *tid, void **address, int *size,
                          int *write, int *atomic, void **trace, unsigned long trace_size);
int __tsan_get_report_thread(void *report, unsigned long i, int *tid, uint64_t *os_id, int *running,
                             const char **name, int *parent, void **trace, unsigned long n);

/* Called by the run-time library. */
const char *__tsan_default_options(void);
void __tsan_on_report(void *report);

struct tsan {
    void *own; /* the worker's context */
    void *context[CPU_STACK_SETS * CPU_MAX_THREADS];
    /* Only their addresses matter. begun: the worker releases, threads acquire as they start.
       ended: the other way, once a launch. exited: this block's threads that are gone. meeting:
       the barrier that completes. */
    uint64_t begun, ended, exited, meeting;
};

/* Each report counts: the same race of another case is that case's, too. */
const char *__tsan_default_options(void)
{
    return "halt_on_error=0:exitcode=0:suppress_equal_stacks=0:suppress_equal_addresses=0:"
           "report_thread_leaks=0:report_signal_unsafe=0";
}

static struct tsan *tsan_of(const struct cpu_worker *w)
{
    return w->sanitizer;
}

/* A constructor, for it must run once a process, whatever devices are opened. The heap that is
   claimed is none: a report on an address in it would search for the object around, eight bytes a
   step. */
__attribute__((constructor)) static void claim_memory(void)
{
    __tsan_java_init(8, 8);
}

/* Nothing has happened there yet. */
static void forget(const void *begin, size_t n)
{
    uintptr_t from = (uintptr_t)begin & ~(uintptr_t)7;
    uintptr_t bytes = (((uintptr_t)begin + n + 7) & ~(uintptr_t)7) - from;

    if (n == 0)
        return;
    __tsan_java_free(from, bytes);
    __tsan_java_alloc(from, bytes);
}

int cpu_sanitizer_open(struct cpu_worker *w)
{
    w->sanitizer = calloc(1, sizeof(struct tsan));
    return w->sanitizer ? 0 : -1;
}

void cpu_sanitizer_close(struct cpu_worker *w)
{
    struct tsan *t = tsan_of(w);

    for (size_t i = 0; i < sizeof t->context / sizeof *t->context; i++)
        if (t->context[i])
            __tsan_destroy_fiber(t->context[i]);
    free(t);
}

/* --- launches and blocks ---------------------------------------------------------------------- */

void cpu_sanitizer_launch_begins(struct cpu_worker *w)
{
    tsan_of(w)->own = __tsan_get_current_fiber();
}

void cpu_sanitizer_launch_ends(struct cpu_worker *w)
{
    __tsan_acquire(&tsan_of(w)->ended);
}

static void **context_of(const struct cpu_worker *w, uint32_t thread)
{
    return &tsan_of(w)->context[w->stack_set * CPU_MAX_THREADS + thread];
}

/* Contexts are made here, not by the thread that starts another: a context begins with all that its
   maker knows. */
void cpu_sanitizer_block_begins(struct cpu_worker *w)
{
    w->stack_set = (w->stack_set + 1) % CPU_STACK_SETS;
    for (uint32_t i = 0; i < w->threads; i++) {
        void **context = context_of(w, i);
        char name[32];

        if (*context)
            continue;
        *context = __tsan_create_fiber(0);
        snprintf(name, sizeof name, "thread %u", i);
        __tsan_set_fiber_name(*context, name);
    }
    forget(w->block.shared, w->block.shared_bytes);
    forget(w->static_shared, w->static_bytes);
    forget(&tsan_of(w)->exited, sizeof tsan_of(w)->exited);
}

void cpu_sanitizer_block_filled(struct cpu_worker *w)
{
    __tsan_release(&tsan_of(w)->begun);
}

/* The threads that were given up have done what they did before the launch ended. Their contexts
   are in the middle of calls: the next block gets new ones. */
void cpu_sanitizer_block_abandoned(struct cpu_worker *w)
{
    struct tsan *t = tsan_of(w);

    for (uint32_t i = 0; i < w->threads; i++) {
        void **context = context_of(w, i);

        __tsan_switch_to_fiber(*context, __tsan_switch_to_fiber_no_sync);
        __tsan_release(&t->ended);
        __tsan_switch_to_fiber(t->own, __tsan_switch_to_fiber_no_sync);
        __tsan_destroy_fiber(*context);
        *context = NULL;
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

void cpu_sanitizer_enter(struct cpu_worker *w, const struct cpu_fiber *f)
{
    __tsan_switch_to_fiber(f ? *context_of(w, f->linear) : tsan_of(w)->own,
                           __tsan_switch_to_fiber_no_sync);
}

void cpu_sanitizer_thread_begins(struct cpu_worker *w)
{
    cpu_current->fenced = 0;
    __tsan_acquire(&tsan_of(w)->begun);
}

void cpu_sanitizer_thread_ends(struct cpu_worker *w)
{
    __tsan_release(&tsan_of(w)->ended);
    __tsan_release(&tsan_of(w)->exited);
}

void cpu_sanitizer_meet(struct cpu_worker *w, struct cpu_fiber *const *f, unsigned n)
{
    struct tsan *t = tsan_of(w);

    for (unsigned i = 0; i < n; i++) {
        cpu_sanitizer_enter(w, f[i]);
        __tsan_release(&t->meeting);
    }
    for (unsigned i = 0; i < n; i++) {
        cpu_sanitizer_enter(w, f[i]);
        __tsan_acquire(&t->meeting);
        __tsan_acquire(&t->exited);
    }
    cpu_sanitizer_enter(w, cpu_running());
    forget(&t->meeting, sizeof t->meeting);
}

/* --- from kernel code ------------------------------------------------------------------------- */

void cpu_thread_fence(void)
{
    cpu_current->fenced = 1;
}

void cpu_atomic_begin(void *p)
{
    if (cpu_current->fenced)
        __tsan_release(p);
}

void cpu_atomic_end(void *p)
{
    if (cpu_current->fenced)
        __tsan_acquire(p);
}

/* --- accesses by libc ------------------------------------------------------------------------- */

void cpu_sanitizer_pause(void)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void cpu_sanitizer_resume(void)
{
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void cpu_sanitizer_call(void *pc)
{
    __tsan_func_entry(pc);
}

void cpu_sanitizer_return(void)
{
    __tsan_func_exit();
}

/* --- reports ---------------------------------------------------------------------------------- */

#define TRACE 16 /* frames looked at: more than the shim and the runtime have above a kernel */

struct access {
    int tid, size, write, atomic;
    void *address, *trace[TRACE];
};

/* "file:line" of the innermost place that is the kernel's. A pc stands for several frames where
   functions were inlined: one text after another, an empty one at the end. */
static void kernel_place(void *const *trace, char *out, size_t n)
{
    char frames[1024];

    snprintf(out, n, "an unknown place");
    for (unsigned i = 0; i < TRACE && trace[i]; i++) {
        memset(frames, 0, sizeof frames);
        __sanitizer_symbolize_pc(trace[i], "%s:%l", frames, sizeof frames - 1);
        for (const char *f = frames; *f; f += strlen(f) + 1)
            if (cpu_kernel_place(f)) {
                snprintf(out, n, "%.*s", (int)n - 1, f);
                return;
            }
    }
}

static void describe_access(const struct access *a, char *out, size_t n)
{
    snprintf(out, n, "%s%s of %d byte%s", a->atomic ? "atomic " : "", a->write ? "write" : "read",
             a->size, a->size == 1 ? "" : "s");
}

/* The name that the context of an access was given. */
static const char *thread_name(void *report, int threads, int tid)
{
    for (int i = 0; i < threads; i++) {
        const char *name = NULL;
        int id = -1, running, parent;
        uint64_t os_id;
        void *trace[1];

        __tsan_get_report_thread(report, (unsigned long)i, &id, &os_id, &running, &name, &parent,
                                 trace, 1);
        if (id == tid && name && *name)
            return name;
    }
    return "the host";
}

void __tsan_on_report(void *report)
{
    const char *kind = "";
    int n, stacks, mops = 0, locations, mutexes, threads = 0, tids;
    void *sleep[1];
    struct access a[2];
    char where[2][300], said[2][64], what[512];

    __tsan_get_report_data(report, &kind, &n, &stacks, &mops, &locations, &mutexes, &threads, &tids,
                           sleep, 1);
    if (mops < 2)
        return;
    memset(a, 0, sizeof a);
    for (int i = 0; i < 2; i++) {
        __tsan_get_report_mop(report, (unsigned long)i, &a[i].tid, &a[i].address, &a[i].size,
                              &a[i].write, &a[i].atomic, a[i].trace, TRACE);
        kernel_place(a[i].trace, where[i], sizeof where[i]);
        describe_access(&a[i], said[i], sizeof said[i]);
    }
    snprintf(what, sizeof what, "%s, unordered with a %s at %s by %s of this or another block",
             said[0], said[1], where[1], thread_name(report, threads, a[1].tid));
    cpu_sanitizer_caught("ThreadSanitizer: data race", where[0], what, (uintptr_t)a[0].address);
}

#endif
