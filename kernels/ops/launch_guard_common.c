/* The checks that every launcher's refusals are made of. */
#include "kernels/ops/launch_guard.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 0))) static void
check(struct launch_guard *g, bool holds, enum err_kind kind, const char *fmt, va_list ap)
{
    char text[512];

    if (g->refused || holds)
        return;
    vsnprintf(text, sizeof text, fmt, ap);
    err_set(g->err, kind, "%s: %s", g->launcher, text);
    g->refused = true;
}

void guard_that(struct launch_guard *g, bool holds, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    check(g, holds, ERR_INPUT, fmt, ap);
    va_end(ap);
}

/* What no choice of dims mends, or what the device itself would refuse. */
__attribute__((format(printf, 3, 4))) static void must(struct launch_guard *g, bool holds,
                                                       const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    check(g, holds, ERR_REFUSED, fmt, ap);
    va_end(ap);
}

void launch_guard_init(struct launch_guard *g, const char *launcher, const struct kernel *kernel,
                       struct err *err)
{
    *g = (struct launch_guard){.launcher = launcher, .err = err};
    must(g, kernel != NULL, "null kernel handle: its entry is absent from the kernel set");
}

void guard_optional(struct launch_guard *g, const char *name, dev_ptr ptr, uint32_t align)
{
    must(g, ptr % align == 0, "%s is at 0x%" PRIx64 ", not aligned to %u bytes", name, ptr, align);
}

void guard_pointer(struct launch_guard *g, const char *name, dev_ptr ptr, uint32_t align)
{
    must(g, ptr != 0, "null %s", name);
    guard_optional(g, name, ptr, align);
}

void guard_size(struct launch_guard *g, const char *name, uint32_t size)
{
    guard_that(g, size > 0, "%s is 0: there is nothing to launch", name);
}

void guard_range(struct launch_guard *g, const char *name, uint32_t value, uint32_t min,
                 uint32_t max)
{
    guard_that(g, value >= min && value <= max, "%s = %u is outside %u..%u", name, value, min, max);
}

void guard_multiple(struct launch_guard *g, const char *name, uint32_t value, uint32_t factor)
{
    guard_that(g, value % factor == 0, "%s = %u is not a multiple of %u", name, value, factor);
}

void guard_least(struct launch_guard *g, const char *name, uint32_t value, const char *least_name,
                 uint64_t least)
{
    guard_that(g, value >= least, "%s = %u is below %s = %" PRIu64, name, value, least_name, least);
}

void guard_product(struct launch_guard *g, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    /* Each factor is a 32-bit dimension, so a * b cannot wrap; a * b * c is compared by
       division. */
    bool fits = a <= UINT32_MAX && b <= UINT32_MAX && c <= UINT32_MAX;

    fits = fits && (c == 0 || a * b <= UINT32_MAX / c);
    guard_that(g, fits,
               "%s: %" PRIu64 " x %" PRIu64 " x %" PRIu64
               " elements overflow the kernel's 32-bit offsets",
               what, a, b, c);
}

void guard_axis(struct launch_guard *g, const char *what, char axis, uint64_t blocks)
{
    const struct extent *max = &gb10_limits.grid;
    uint32_t limit = axis == 'x' ? max->x : axis == 'y' ? max->y : max->z;

    must(g, blocks > 0 && blocks <= limit,
         "%s: %" PRIu64 " blocks on grid axis %c, which takes 1..%u "
         "(CUDA_ERROR_INVALID_VALUE)",
         what, blocks, axis, limit);
}

void guard_shared(struct launch_guard *g, uint64_t bytes, uint32_t ceiling)
{
    must(g, bytes <= ceiling,
         "needs %" PRIu64 " bytes of shared memory, more than %u "
         "(CUDA_ERROR_INVALID_VALUE)",
         bytes, ceiling);
}

uint32_t blocks_for(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}
