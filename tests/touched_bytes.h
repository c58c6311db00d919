/*
 * Which bytes of a few buffers a kernel touches, exactly: the modules of build/kernels/cpu-counting
 * call a function at every access (scripts/counting-c++), and these are the functions. One worker,
 * one test program: include it once.
 */
#ifndef TESTS_TOUCHED_BYTES_H
#define TESTS_TOUCHED_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TOUCHED_MAX   64
#define TOUCHED_READ  1 /* before anything wrote it: it must have come from memory */
#define TOUCHED_WRITE 2

struct touched_buffer {
    uintptr_t start;
    size_t bytes;
    unsigned char *flags; /* of each byte */
};

static struct {
    struct touched_buffer buffer[TOUCHED_MAX];
    unsigned count;
    uint64_t elsewhere; /* accesses to other memory: shared, local, pointer tables */
} touched;

static inline void touched_watch(const void *start, size_t bytes)
{
    if (touched.count == TOUCHED_MAX)
        abort();
    touched.buffer[touched.count++] = (struct touched_buffer){
        .start = (uintptr_t)start, .bytes = bytes, .flags = xcalloc(bytes + 1, 1)};
}

static inline void touched_forget(void)
{
    for (unsigned i = 0; i < touched.count; i++)
        free(touched.buffer[i].flags);
    memset(&touched, 0, sizeof touched);
}

/* Distinct bytes over all buffers that have the flag. */
static inline double touched_bytes(unsigned flag)
{
    double sum = 0;

    for (unsigned i = 0; i < touched.count; i++)
        for (size_t k = 0; k < touched.buffer[i].bytes; k++)
            sum += (touched.buffer[i].flags[k] & flag) != 0;
    return sum;
}

static inline void touch(const void *at, size_t bytes, unsigned flag)
{
    for (unsigned i = 0; i < touched.count; i++) {
        struct touched_buffer *b = &touched.buffer[i];
        size_t from = (uintptr_t)at - b->start;

        if (from >= b->bytes)
            continue;
        for (size_t k = from; k < from + bytes && k < b->bytes; k++)
            if (flag == TOUCHED_WRITE || !(b->flags[k] & TOUCHED_WRITE))
                b->flags[k] |= (unsigned char)flag;
        return;
    }
    touched.elsewhere++;
}

#define TOUCHED_DEFINE(name, bytes, flag)                                                          \
    void name(const void *at);                                                                     \
    void name(const void *at)                                                                      \
    {                                                                                              \
        touch(at, bytes, flag);                                                                    \
    }
TOUCHED_DEFINE(__tsan_read1, 1, TOUCHED_READ)
TOUCHED_DEFINE(__tsan_write1, 1, TOUCHED_WRITE)
TOUCHED_DEFINE(__tsan_read2, 2, TOUCHED_READ)
TOUCHED_DEFINE(__tsan_write2, 2, TOUCHED_WRITE)
TOUCHED_DEFINE(__tsan_read4, 4, TOUCHED_READ)
TOUCHED_DEFINE(__tsan_write4, 4, TOUCHED_WRITE)
TOUCHED_DEFINE(__tsan_read8, 8, TOUCHED_READ)
TOUCHED_DEFINE(__tsan_write8, 8, TOUCHED_WRITE)
TOUCHED_DEFINE(__tsan_read16, 16, TOUCHED_READ)
TOUCHED_DEFINE(__tsan_write16, 16, TOUCHED_WRITE)

void __tsan_read_range(const void *at, size_t bytes);
void __tsan_write_range(const void *at, size_t bytes);
void __tsan_read_range(const void *at, size_t bytes)
{
    touch(at, bytes, TOUCHED_READ);
}
void __tsan_write_range(const void *at, size_t bytes)
{
    touch(at, bytes, TOUCHED_WRITE);
}

void __tsan_init(void);
void __tsan_func_entry(const void *pc);
void __tsan_func_exit(void);
void __tsan_init(void)
{
}
void __tsan_func_entry(const void *pc)
{
    (void)pc;
}
void __tsan_func_exit(void)
{
}

#endif
