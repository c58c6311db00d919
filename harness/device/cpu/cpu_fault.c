/*
 * Faults: what a kernel did wrong, found by the runtime or by the processor.
 *
 * A signal that strikes while this thread runs a fiber is the kernel's fault. The handler notes
 * what the processor said, points the interrupted context at the worker's own (cpu_switch_resume)
 * and returns: no lock is held by fiber code and all state of the block is dropped, so nothing
 * needs unwinding. Any other signal gets its default action. Each launch installs the handlers
 * anew, for somebody else may have since (a test framework does, per test); they stay afterwards,
 * where they do what the default does, so launches of two devices at the same time cannot take them
 * from each other.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/shell.h"
#include "base/text.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/cpu_worker.h"

/* --- faults that the runtime finds ------------------------------------------------------------ */

static void note_fault(struct cpu_worker *w, uint16_t thread)
{
    w->fault.set = true;
    w->fault.signal = 0;
    w->fault.block = w->block_linear;
    w->fault.thread = thread;
}

/* "block (0,1,0)" or "block (0,1,0), thread (5,0,0)" into `out`; its length. */
static int place(const struct cpu_worker *w, const struct cpu_fiber *f, char *out, size_t n)
{
    uint64_t b = w->block.index, t = f ? f->thread.index : 0;
    int used = snprintf(out, n, "block (%u,%u,%u)", cpu_axis(b, 0), cpu_axis(b, 1), cpu_axis(b, 2));

    if (f)
        used += snprintf(out + used, n - (size_t)used, ", thread (%u,%u,%u)", cpu_axis(t, 0),
                         cpu_axis(t, 1), cpu_axis(t, 2));
    return used;
}

static void note_text(struct cpu_worker *w, const struct cpu_fiber *f, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void note_text(struct cpu_worker *w, const struct cpu_fiber *f, const char *fmt, va_list ap)
{
    size_t size = sizeof w->fault.text;
    int n;

    if (CPU_SANITIZED && w->fault.set) /* what came first counts */
        return;
    cpu_sanitizer_pause();
    n = place(w, f, w->fault.text, size);
    n += snprintf(w->fault.text + n, size - (size_t)n, ": ");
    vsnprintf(w->fault.text + n, size - (size_t)n, fmt, ap);
    cpu_sanitizer_resume();
    note_fault(w, f ? f->linear : 0);
}

_Noreturn void cpu_fail(const char *fmt, ...)
{
    struct cpu_fiber *f = cpu_running();
    va_list ap;

    va_start(ap, fmt);
    note_text(f->worker, f, fmt, ap);
    va_end(ap);
    cpu_abandon(f->worker);
}

void cpu_fail_block(struct cpu_worker *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note_text(w, NULL, fmt, ap);
    va_end(ap);
}

void cpu_trap(const char *what, const char *where)
{
    cpu_fail("%s at %s", what, where);
}

void cpu_misaligned(const void *address, uint64_t alignment, const char *where)
{
    cpu_fail("misaligned address %p at %s: the access needs %llu-byte alignment", address, where,
             (unsigned long long)alignment);
}

/* Each group of neighbouring threads that wait at the same place, up to four groups. */
void cpu_stuck(struct cpu_worker *w)
{
    char text[600] = "";
    size_t n = 0;
    unsigned shown = 0;

    for (uint32_t i = 0, end; i < w->threads && shown < 4; i = end) {
        const struct cpu_fiber *f = &w->fiber[i];

        for (end = i + 1; end < w->threads; end++) {
            const struct cpu_fiber *g = &w->fiber[end];

            if (g->state != f->state || (f->state != FIBER_DONE && g->where != f->where))
                break;
        }
        if (f->state == FIBER_DONE)
            continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s threads %u to %u wait at %s (%s)",
                              shown ? ";" : "", i, end - 1, f->where,
                              f->state == FIBER_BARRIER ? "__syncthreads" : "warp operation");
        n = n < sizeof text ? n : sizeof text - 1;
        shown++;
    }
    cpu_fail_block(w, "stuck barrier: no thread can run:%s", text);
}

/* --- signals ---------------------------------------------------------------------------------- */

/* A trap of the compiler's (__builtin_trap) is SIGILL on x86-64, SIGTRAP on aarch64. */
static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#define NSIGNALS (sizeof fault_signals / sizeof *fault_signals)

int cpu_watch_signal(void)
{
    return SIGRTMIN + 7; /* any real-time signal that nobody else here uses */
}

static uintptr_t context_sp(const ucontext_t *uc)
{
#if defined(__x86_64__)
    return (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
#else
    return (uintptr_t)uc->uc_mcontext.sp;
#endif
}

static uintptr_t context_pc(const ucontext_t *uc)
{
#if defined(__x86_64__)
    return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)uc->uc_mcontext.pc;
#endif
}

/* Was it a write? From the processor's own report: bit 1 of x86's error code, WnR of aarch64's
   ESR. */
static int context_access(const ucontext_t *uc)
{
#if defined(__x86_64__)
    return (int)(uc->uc_mcontext.gregs[REG_ERR] >> 1 & 1);
#else
    const unsigned char *p = (const unsigned char *)uc->uc_mcontext.__reserved;

    for (unsigned i = 0; i + sizeof(struct esr_context) <= sizeof uc->uc_mcontext.__reserved;) {
        struct _aarch64_ctx head;
        struct esr_context esr;

        memcpy(&head, p + i, sizeof head);
        if (!head.magic || !head.size)
            break;
        if (head.magic == ESR_MAGIC) {
            memcpy(&esr, p + i, sizeof esr);
            return (int)(esr.esr >> 6 & 1);
        }
        i += head.size;
    }
    return -1;
#endif
}

static void resume_worker(const struct cpu_worker *w, ucontext_t *uc)
{
#if defined(__x86_64__)
    uc->uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)w->main_sp;
    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)cpu_switch_resume;
    uc->uc_mcontext.gregs[REG_EFL] &=
        ~(greg_t)0x400; /* direction flag: the ABI's state at a call */
#else
    uc->uc_mcontext.sp = (uintptr_t)w->main_sp;
    uc->uc_mcontext.pc = (uintptr_t)cpu_switch_resume;
#endif
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    struct cpu_worker *w = cpu_this_worker;
    bool watchdog = sig == cpu_watch_signal();

    if (!w || !cpu_current || !cpu_on_fiber_stack(w, context_sp(uc))) {
        if (!watchdog) /* not a kernel's: the instruction runs again, to the default action */
            signal(sig, SIG_DFL);
        return;
    }
    if (watchdog && atomic_load(&w->expired) != atomic_load(&w->progress)) /* it ended just now */
        return;
    if (!CPU_SANITIZED || !w->fault.set) /* what came first counts */
        w->fault = (struct cpu_fault){
            .set = true,
            .signal = sig,
            .code = info->si_code,
            .address = watchdog ? 0 : (uintptr_t)info->si_addr,
            .pc = context_pc(uc),
            .access = context_access(uc),
            .block = w->block_linear,
            .thread = cpu_running()->linear,
        };
    resume_worker(w, uc);
}

void cpu_handlers_install(void)
{
    struct sigaction act;

    memset(&act, 0, sizeof act);
    act.sa_sigaction = on_signal;
    act.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < NSIGNALS; i++)
        sigaction(fault_signals[i], &act, NULL);
    sigaction(cpu_watch_signal(), &act, NULL);
}

void cpu_signal_stack_enter(struct cpu_worker *w, void *saved)
{
    stack_t mine = {.ss_sp = w->signal_stack, .ss_size = CPU_STACK_BYTES};

    sigaltstack(&mine, saved);
}

void cpu_signal_stack_leave(const void *saved)
{
    sigaltstack(saved, NULL);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* " at file.cu:57" for an address in the module, by binutils' addr2line where it is; else
   nothing. */
static void source_line(const char *module, uintptr_t pc, char *out, size_t n)
{
    char tool[] = "addr2line", names[] = "-s", option[] = "-e", file[512], address[32];
    char *argv[] = {tool, names, option, file, address, NULL};
    struct shell_run how = {.limit = 256};
    struct err ignored = ERR_INIT;
    struct text said;
    Dl_info info;
    int status;

    out[0] = '\0';
    if (!dladdr((void *)pc, &info) || !info.dli_fbase)
        return;
    snprintf(file, sizeof file, "%s", module);
    snprintf(address, sizeof address, "0x%lx", (unsigned long)(pc - (uintptr_t)info.dli_fbase));
    text_init(&said);
    if (shell_capture(argv, &how, &said, &status, &ignored) == 0 && !strchr(said.data, '?')) {
        said.data[strcspn(said.data, " \n")] = '\0';
        if (said.data[0])
            snprintf(out, n, " at %s", said.data);
    }
    text_release(&said);
}

static void describe_signal(const struct cpu_device *dev, const struct cpu_worker *w, char *out,
                            size_t n)
{
    const struct cpu_fault *f = &w->fault;
    const char *verb = f->access == 1 ? "write" : f->access == 0 ? "read" : "access";
    char where[256];

    if (f->signal == cpu_watch_signal())
        snprintf(out, n, "still running after %g s of processor time: an infinite loop?",
                 dev->limit_s);
    else if (f->signal == SIGFPE)
        snprintf(out, n, "integer division by zero");
    else if (f->signal == SIGILL || f->signal == SIGTRAP)
        snprintf(out, n, "trap (unreachable code or a failed check)");
    else if (f->code == SI_KERNEL) /* x86 tells no address when it is not canonical */
        snprintf(out, n, "access to a wild address outside the address space");
    else if (cpu_on_fiber_stack(w, f->address))
        snprintf(out, n, "invalid %s: the thread's stack (%d KiB) overflowed", verb,
                 CPU_STACK_BYTES / 1024);
    else {
        cpu_describe_address(dev, w, f->address, where, sizeof where);
        snprintf(out, n, "invalid %s: %s", verb, where);
    }
}

void cpu_fault_describe(const struct cpu_device *dev, const struct cpu_worker *w, struct err *err)
{
    const struct cpu_fault *f = &w->fault;
    char at[128], text[512], line[300];

    if (!f->signal) {
        err_set(err, ERR_FAULT, "%s", f->text);
        return;
    }
    describe_signal(dev, w, text, sizeof text);
    source_line(w->job->module->path, f->pc, line, sizeof line);
    (void)place(w, &w->fiber[f->thread], at, sizeof at);
    err_set(err, ERR_FAULT, "%s: %s%s", at, text, line);
}

/* --- faults that a sanitizer finds ------------------------------------------------------------ */

#if CPU_SANITIZED

bool cpu_kernel_place(const char *place)
{
    const char *colon = strrchr(place, ':');

    return colon && colon > place && colon[1] >= '1' && colon[1] <= '9' && *place != '(' &&
           !strstr(place, "harness/device/cpu/") && !strstr(place, "libsanitizer/");
}

static void note_caught(struct cpu_worker *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void note_caught(struct cpu_worker *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note_text(w, cpu_running(), fmt, ap);
    va_end(ap);
}

/* On the fiber, in the middle of an access: the block is given up at the thread's next call of the
   runtime. */
void cpu_sanitizer_caught(const char *kind, const char *where, const char *what, uintptr_t address)
{
    struct cpu_worker *w = cpu_this_worker;
    char memory[256] = "the thread's own stack";

    if (!w || !cpu_current || w->fault.set)
        return;
    if (!cpu_on_fiber_stack(w, address))
        cpu_describe_address(cpu_device_of(w->job->kernel->device), w, address, memory,
                             sizeof memory);
    note_caught(w, "%s %s: %s: %s", kind, where, what, memory);
}

#endif
