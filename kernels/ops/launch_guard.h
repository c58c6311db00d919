/*
 * Refusals: a launcher names what a kernel cannot do before anything is launched. The checks of one
 * launcher are a straight list; the first that fails describes itself in `err` and the rest are
 * no-ops. Dims that no kernel of this ABI takes are ERR_INPUT, the caller's to mend; a null handle
 * or pointer, and what GB10 would refuse, are ERR_REFUSED.
 *
 *     struct launch_guard g;
 *     launch_guard_init(&g, "kda_gate", kernel, err);
 *     guard_pointer(&g, "g_raw", args->g_raw, 2);
 *     guard_size(&g, "tokens", args->tokens);
 *     if (g.refused)
 *         return -1;
 */
#ifndef OPS_LAUNCH_GUARD_H
#define OPS_LAUNCH_GUARD_H

#include "base/err.h"
#include "device/launch.h"

struct launch_guard {
    const char *launcher;
    struct err *err;
    bool refused;
};

/* Refuses a NULL kernel: an entry that its set lacks. */
void launch_guard_init(struct launch_guard *g, const char *launcher, const struct kernel *kernel,
                       struct err *err);

/* Not null, and a multiple of `align` bytes. */
void guard_pointer(struct launch_guard *g, const char *name, dev_ptr ptr, uint32_t align);
/* May be null; aligned when it is not. */
void guard_optional(struct launch_guard *g, const char *name, dev_ptr ptr, uint32_t align);

void guard_size(struct launch_guard *g, const char *name, uint32_t size); /* not 0 */
void guard_range(struct launch_guard *g, const char *name, uint32_t value, uint32_t min,
                 uint32_t max);
void guard_multiple(struct launch_guard *g, const char *name, uint32_t value, uint32_t factor);

/* value >= least, where `least_name` says what `least` is ("heads * head_dim"). */
void guard_least(struct launch_guard *g, const char *name, uint32_t value, const char *least_name,
                 uint64_t least);

/* a * b * c elements are counted by the kernel in 32 bits: refused when they do not fit. */
void guard_product(struct launch_guard *g, const char *what, uint64_t a, uint64_t b, uint64_t c);

/* Blocks on a grid axis ('x', 'y' or 'z') within GB10's limit. */
void guard_axis(struct launch_guard *g, const char *what, char axis, uint64_t blocks);

/* Dynamic shared memory within `ceiling` bytes. */
void guard_shared(struct launch_guard *g, uint64_t bytes, uint32_t ceiling);

/* Any other rule: refused with the text unless `holds`. */
void guard_that(struct launch_guard *g, bool holds, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ceil(a / b), without overflow. */
uint32_t blocks_for(uint32_t a, uint32_t b);

#endif
