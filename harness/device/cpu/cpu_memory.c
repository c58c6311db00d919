/*
 * Device memory: each buffer is a mapping of its own, between unmapped guards, and ends at the
 * second. New memory reads as NaN, so that a kernel which uses it before anybody wrote it shows
 * that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "device/cpu/cpu_device.h"

#define ALIGNMENT 16
#define GUARD     ((size_t)16 << 20) /* address space only: an index error stays attributable */
#define HUGE_FROM ((size_t)4 << 20)  /* from here on, large pages are asked for */
#define SLACK     0xd7               /* the bytes between a buffer's end and its guard */

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

int cpu_alloc(struct device *base, size_t bytes, const char *label, dev_ptr *out, struct err *err)
{
    struct cpu_device *dev = cpu_device_of(base);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room;
    struct cpu_buffer b = {.bytes = bytes};

    if (bytes > SIZE_MAX / 4)
        return err_set(err, ERR_INPUT, "CUDA_ERROR_OUT_OF_MEMORY: %zu bytes", bytes);
    room = round_up(bytes, page);
    b.map_bytes = room + 2 * GUARD;
    b.map = mmap(NULL, b.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b.map == MAP_FAILED)
        return err_set(err, ERR_SYSTEM, "CUDA_ERROR_OUT_OF_MEMORY: %zu bytes", bytes);
    if (room && mprotect(b.map + GUARD, room, PROT_READ | PROT_WRITE) < 0) {
        munmap(b.map, b.map_bytes);
        return err_set(err, ERR_SYSTEM, "CUDA_ERROR_OUT_OF_MEMORY: %zu bytes", bytes);
    }
    if (room >= HUGE_FROM)
        (void)madvise(b.map + GUARD, room, MADV_HUGEPAGE); /* a matter of speed only */
    b.begin = b.map + GUARD + room - round_up(bytes, ALIGNMENT);
    memset(b.begin, 0xff, bytes);
    memset(b.begin + bytes, SLACK, round_up(bytes, ALIGNMENT) - bytes);
    cpu_sanitizer_forbid(b.map + GUARD, (size_t)(b.begin - (b.map + GUARD)));
    cpu_sanitizer_forbid(b.begin + bytes, round_up(bytes, ALIGNMENT) - bytes);
    snprintf(b.label, sizeof b.label, "%s", label ? label : "?");
    if (dev->nbuffers == dev->cap) {
        dev->cap = dev->cap ? 2 * dev->cap : 32;
        dev->buffer = xrealloc(dev->buffer, dev->cap, sizeof *dev->buffer);
    }
    dev->buffer[dev->nbuffers++] = b;
    *out = (dev_ptr)(uintptr_t)b.begin;
    return 0;
}

static void unmap(const struct cpu_buffer *b)
{
    cpu_sanitizer_allow(b->map + GUARD, b->map_bytes - 2 * GUARD);
    munmap(b->map, b->map_bytes);
}

void cpu_free(struct device *base, dev_ptr ptr)
{
    struct cpu_device *dev = cpu_device_of(base);

    for (size_t i = 0; i < dev->nbuffers; i++) {
        if ((uintptr_t)dev->buffer[i].begin != ptr)
            continue;
        unmap(&dev->buffer[i]);
        dev->buffer[i] = dev->buffer[--dev->nbuffers];
        return;
    }
    BUG("device_free of 0x%" PRIx64 ", which device_alloc did not give", ptr);
}

void cpu_free_all(struct cpu_device *dev)
{
    for (size_t i = 0; i < dev->nbuffers; i++)
        unmap(&dev->buffer[i]);
    free(dev->buffer);
    dev->buffer = NULL;
    dev->nbuffers = dev->cap = 0;
}

static uintptr_t distance(const struct cpu_buffer *b, uintptr_t at)
{
    uintptr_t begin = (uintptr_t)b->begin, end = begin + b->bytes;

    return at < begin ? begin - at : at < end ? 0 : at - end + 1;
}

const struct cpu_buffer *cpu_buffer_near(const struct cpu_device *dev, uintptr_t address)
{
    const struct cpu_buffer *best = NULL;

    for (size_t i = 0; i < dev->nbuffers; i++)
        if (!best || distance(&dev->buffer[i], address) < distance(best, address))
            best = &dev->buffer[i];
    return best;
}

int cpu_check_slack(const struct cpu_device *dev, struct err *err)
{
    for (size_t i = 0; i < dev->nbuffers; i++) {
        const struct cpu_buffer *b = &dev->buffer[i];
        const unsigned char *end = b->begin + b->bytes;
        size_t slack = round_up(b->bytes, ALIGNMENT) - b->bytes;

        for (size_t k = 0; k < slack; k++)
            if (end[k] != SLACK)
                return err_set(err, ERR_FAULT,
                               "invalid write: %zu byte%s past the end of buffer %s (%zu byte%s)",
                               k, plural(k), b->label, b->bytes, plural(b->bytes));
    }
    return 0;
}

int cpu_check_range(const struct cpu_device *dev, dev_ptr ptr, size_t bytes, const char *what,
                    struct err *err)
{
    for (size_t i = 0; i < dev->nbuffers; i++) {
        const struct cpu_buffer *b = &dev->buffer[i];
        uint64_t offset = ptr - (uintptr_t)b->begin;

        if (offset <= b->bytes && bytes <= b->bytes - offset)
            return 0;
    }
    return err_set(err, ERR_INPUT,
                   "CUDA_ERROR_INVALID_VALUE: %s of %zu bytes at 0x%" PRIx64
                   " does not lie in one buffer",
                   what, bytes, ptr);
}
