/*
 * For the tests of launchers: a device that keeps its last launch, and checks on what it was.
 */
#ifndef TESTS_LAUNCH_CAPTURE_H
#define TESTS_LAUNCH_CAPTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_ops.h"
#include "device/launch.h"
#include "problem/golden.h"

/* After golden.h, whose expect_value() it would turn into its macro. */
#include <cmocka.h>

struct capture {
    struct device base;
    struct kernel kernel;
    struct launch seen;
    unsigned launches;
};

static inline int keep_launch(struct device *dev, const struct launch *launch, struct err *err)
{
    struct capture *c = (struct capture *)dev;

    (void)err;
    c->seen = *launch;
    c->launches++;
    return 0;
}

/* A kernel whose signature is `kinds`. */
static inline struct capture *capture_new(const char *kinds)
{
    static const struct device_ops capture_ops = {.launch = keep_launch};
    struct capture *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->base.ops = &capture_ops;
    c->base.info.limits = gb10_limits;
    c->kernel.device = &c->base;
    c->kernel.nparams = (unsigned)strlen(kinds);
    for (unsigned i = 0; i < c->kernel.nparams; i++) {
        c->kernel.param_kind[i] = kinds[i];
        c->kernel.param_size[i] = kinds[i] == 'p' ? 8 : 4;
    }
    return c;
}

static inline void assert_geometry(const struct capture *c, struct extent grid, uint32_t block_x,
                                   uint32_t block_y, uint64_t shared)
{
    assert_int_equal(c->launches, 1);
    assert_int_equal(c->seen.grid.x, grid.x);
    assert_int_equal(c->seen.grid.y, grid.y);
    assert_int_equal(c->seen.grid.z, grid.z);
    assert_int_equal(c->seen.block.x, block_x);
    assert_int_equal(c->seen.block.y, block_y);
    assert_int_equal(c->seen.block.z, 1);
    assert_int_equal(c->seen.shared, shared);
}

/* The scalars of a launch are the given ones, bit for bit, after `pointers` pointers 0x1000,
   0x2000, ... */
static inline void assert_args(const struct capture *c, unsigned pointers, const uint32_t *scalars)
{
    for (unsigned i = 0; i < pointers; i++)
        assert_int_equal(c->seen.arg[i].ptr, 0x1000 * (i + 1));
    for (unsigned i = pointers; i < c->seen.nargs; i++)
        assert_int_equal(c->seen.arg[i].u32, scalars[i - pointers]);
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Handles, pointers and GB10's limits; everything else is the dims'. */
static inline enum err_kind refusal_kind(const char *text)
{
    static const char *const ours[] = {"null ", ", not aligned to", "of shared memory", "grid"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strstr(text, ours[i]))
            return ERR_REFUSED;
    return ERR_INPUT;
}

static inline void assert_refused(int rc, const struct err *err, const char *needle,
                                  const struct capture *c)
{
    if (rc != -1 || strstr(err->text, needle) == NULL)
        print_error("expected a refusal that names '%s', got %d: %s\n", needle, rc, err->text);
    assert_int_equal(rc, -1);
    assert_int_equal(err->kind, refusal_kind(err->text));
    assert_non_null(strstr(err->text, needle));
    assert_int_equal(c->launches, 0);
}

/* A variable `valid` with one field changed is refused, names `needle`, and nothing is launched. */
#define REFUSES(launch, c, valid, field, value, needle)                                            \
    do {                                                                                           \
        __typeof__(valid) changed = (valid);                                                       \
        struct err refusal = ERR_INIT;                                                             \
        changed.field = (value);                                                                   \
        assert_refused(launch(&(c)->kernel, &changed, &refusal), &refusal, (needle), (c));         \
    } while (0)

#endif
