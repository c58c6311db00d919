/*
 * Shared memory and cp.async.
 *
 * Dynamic shared memory ends at an unmapped page, like a buffer: an access past the launch's size
 * faults at once. The 0 to 15 bytes that 16-byte alignment leaves before that page, and CPU_CANARY
 * bytes below, hold a pattern that is checked after each block; it reads as NaN.
 *
 * PTX addresses shared memory with 32 bits. The window gives dynamic shared memory and the module's
 * static shared memory a range of it each, wide enough that an offset error lands outside both and
 * faults.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/cpu_worker.h"

#define WINDOW_GUARD ((size_t)1024 * 1024)
#define CANARY_WORD  0xffa5ffb7u /* NaN as fp32, bf16 and fp16 */
#define FILL_BIG     0x7e967699u /* 1e38f; as bf16 1e38 and 1.5e33 */
#define DYNAMIC_BASE 0x10000000u
#define STATIC_BASE  0x20000000u
#define HALF_RANGE   0x08000000u

static unsigned char *room_end(const struct cpu_worker *w)
{
    return w->window + w->window_bytes - WINDOW_GUARD;
}

/* Room for the largest block and the canary, in whole pages: the guard begins where a page does. */
static int map_window(struct cpu_worker *w, struct err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (CPU_SHARED_MAX + CPU_CANARY + page - 1) / page * page;
    size_t bytes = room + 2 * WINDOW_GUARD;
    unsigned char *p =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return err_set(err, ERR_SYSTEM, "no memory for shared memory");
    w->window = p;
    w->window_bytes = bytes;
    if (mprotect(p + WINDOW_GUARD, room, PROT_READ | PROT_WRITE) < 0)
        return err_set(err, ERR_SYSTEM, "no memory for shared memory");
    return 0;
}

static void fill_words(unsigned char *p, size_t bytes, uint32_t word)
{
    size_t i = 0;

    for (; i + sizeof word <= bytes; i += sizeof word)
        memcpy(p + i, &word, sizeof word);
    memcpy(p + i, &word, bytes - i);
}

static bool words_intact(const unsigned char *p, size_t bytes, uint32_t word, size_t *at)
{
    for (size_t i = 0; i < bytes; i++) {
        if (p[i] == (unsigned char)(word >> 8 * (i % 4)))
            continue;
        *at = i;
        return false;
    }
    return true;
}

/* Lays the launch's dynamic shared memory out and finds the static one. On the worker's own
   thread. */
int cpu_shared_prepare(struct cpu_worker *w, const struct cpu_job *job, struct err *err)
{
    const struct cpu_module *m = job->module;
    size_t rounded = (job->shared + 15) / 16 * 16;

    if (!w->window && map_window(w, err) < 0)
        return -1;
    if (!w->copies && job->schedule.late_async_copies) {
        size_t bytes = sizeof *w->copies * CPU_MAX_COPIES * CPU_MAX_THREADS;
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p == MAP_FAILED)
            return err_set(err, ERR_SYSTEM, "no memory for asynchronous copies");
        w->copies = p;
    }
    w->block.shared = room_end(w) - rounded;
    w->block.shared_bytes = job->shared;
    cpu_sanitizer_allow(w->window + WINDOW_GUARD, w->window_bytes - 2 * WINDOW_GUARD);
    fill_words(w->block.shared - CPU_CANARY, CPU_CANARY, CANARY_WORD);
    fill_words(w->block.shared + job->shared, rounded - job->shared, CANARY_WORD);
    cpu_sanitizer_forbid(w->window + WINDOW_GUARD,
                         (size_t)(w->block.shared - (w->window + WINDOW_GUARD)));
    cpu_sanitizer_forbid(w->block.shared + job->shared, rounded - job->shared);
    if (w->static_owner != m->id) {
        cpu_module_shared(m, &w->static_shared, &w->static_bytes);
        w->static_owner = m->id;
    }
    return 0;
}

static void fill(unsigned char *p, size_t bytes, enum shared_fill how)
{
    switch (how) {
    case SHARED_FILL_NAN:
        memset(p, 0xff, bytes);
        return;
    case SHARED_FILL_ZERO:
        memset(p, 0, bytes);
        return;
    case SHARED_FILL_BIG:
        fill_words(p, bytes, FILL_BIG);
        return;
    }
}

void cpu_shared_fill(struct cpu_worker *w)
{
    enum shared_fill how = w->job->schedule.fill;

    for (const struct cpu_symbol *s = w->job->module->desc->shared; CPU_SANITIZED && s->name; s++)
        fill(s->address, s->bytes, how);
    if (w->static_bytes && !CPU_SANITIZED)
        fill(w->static_shared, w->static_bytes, how);
    if (w->block.shared_bytes)
        fill(w->block.shared, w->block.shared_bytes, how);
}

bool cpu_shared_intact(struct cpu_worker *w)
{
    const unsigned char *begin = w->block.shared, *end = begin + w->block.shared_bytes;
    size_t at;

    if (!words_intact(end, (size_t)(room_end(w) - end), CANARY_WORD, &at)) {
        cpu_fail_block(w,
                       "write %zu byte%s past the end of the %llu bytes of dynamic shared memory",
                       at, plural(at), (unsigned long long)w->block.shared_bytes);
        return false;
    }
    if (!words_intact(begin - CPU_CANARY, CPU_CANARY, CANARY_WORD, &at)) {
        cpu_fail_block(w, "write %zu byte%s before the start of dynamic shared memory",
                       CPU_CANARY - at, plural(CPU_CANARY - at));
        return false;
    }
    return true;
}

uint32_t cpu_shared_address(const void *generic)
{
    const struct cpu_worker *w = cpu_running()->worker;
    uintptr_t p = (uintptr_t)generic;
    uintptr_t fixed = p - (uintptr_t)w->static_shared;

    if (p - (uintptr_t)w->window < w->window_bytes)
        return DYNAMIC_BASE + (uint32_t)(p - (uintptr_t)w->block.shared);
    if (w->static_bytes && fixed <= w->static_bytes)
        return STATIC_BASE + (uint32_t)fixed;
    return 0; /* not in shared memory: an access through it faults */
}

void *cpu_shared_pointer(uint32_t address)
{
    const struct cpu_worker *w = cpu_running()->worker;

    if (address - (DYNAMIC_BASE - HALF_RANGE) < 2 * HALF_RANGE)
        return w->block.shared + (int32_t)(address - DYNAMIC_BASE);
    if (address - (STATIC_BASE - HALF_RANGE) < 2 * HALF_RANGE && w->static_bytes)
        return w->static_shared + (int32_t)(address - STATIC_BASE);
    return (void *)(uintptr_t)address;
}

/* --- cp.async --------------------------------------------------------------------------------- */

static void land(const struct cpu_copy *c)
{
    memcpy(c->to, c->from, c->bytes);
    memset((unsigned char *)c->to + c->bytes, 0, c->total - c->bytes);
}

static struct cpu_copy *copy_slot(const struct cpu_fiber *f, uint32_t i)
{
    return &f->worker->copies[(size_t)f->linear * CPU_MAX_COPIES + i % CPU_MAX_COPIES];
}

static void land_oldest(struct cpu_fiber *f)
{
    struct cpu_copy c = *copy_slot(f, f->copy_first++);

    land(&c);
}

void cpu_copy_async(void *shared, const void *global, uint32_t bytes, uint32_t total)
{
    struct cpu_fiber *f = cpu_running();
    struct cpu_copy c = {shared, global, bytes, total, f->copy_groups};

    cpu_sanitizer_call(__builtin_return_address(0));
    if (!f->worker->job->schedule.late_async_copies)
        land(&c);
    else if (f->copy_end - f->copy_first == CPU_MAX_COPIES)
        land_oldest(f);
    cpu_sanitizer_return();
    if (!f->worker->job->schedule.late_async_copies)
        return;
    *copy_slot(f, f->copy_end++) = c;
}

void cpu_copy_commit(void)
{
    cpu_running()->copy_groups++;
}

void cpu_copy_wait(uint32_t pending)
{
    struct cpu_fiber *f = cpu_running();

    cpu_sanitizer_call(__builtin_return_address(0));
    while (f->copy_first != f->copy_end) {
        uint32_t group = copy_slot(f, f->copy_first)->group;

        if (group >= f->copy_groups || f->copy_groups - group <= pending)
            break;
        land_oldest(f);
    }
    cpu_sanitizer_return();
}

void cpu_copy_wait_all(void)
{
    cpu_sanitizer_call(__builtin_return_address(0));
    cpu_copy_drain(cpu_running());
    cpu_sanitizer_return();
}

void cpu_copy_drain(struct cpu_fiber *f)
{
    while (f->copy_first != f->copy_end)
        land_oldest(f);
}
