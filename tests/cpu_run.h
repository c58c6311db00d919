/* What the tests of the CPU device share: a device, a module of tests/cpu, buffers, launches. */
#ifndef TESTS_CPU_RUN_H
#define TESTS_CPU_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/launch.h"

struct cpu_run {
    struct device *device;
    struct module *module;
    struct err err;
};

#define MUST(r, call)                                                                              \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, (r)->err.text);                                              \
    } while (0)

/* `name` of build/tests/cpu/<name>.so. */
static inline void cpu_run_open(struct cpu_run *r, const char *name)
{
    char path[256];

    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "build/tests/cpu/%s.so", name);
    MUST(r, device_open("cpu", &r->device, &r->err));
    MUST(r, module_load(r->device, path, &r->module, &r->err));
}

static inline void cpu_run_close(struct cpu_run *r)
{
    module_unload(r->module);
    device_close(r->device);
}

static inline dev_ptr cpu_buffer_of(struct cpu_run *r, const char *label, const void *data,
                                    size_t bytes)
{
    dev_ptr p;

    MUST(r, device_alloc(r->device, bytes, label, &p, &r->err));
    if (data)
        MUST(r, device_upload(r->device, p, data, bytes, &r->err));
    return p;
}

static inline void cpu_read(struct cpu_run *r, void *to, dev_ptr from, size_t bytes)
{
    MUST(r, device_download(r->device, to, from, bytes, &r->err));
}

static inline struct launch cpu_launch_of(struct cpu_run *r, const char *entry, uint32_t grid,
                                          uint32_t block)
{
    struct kernel *k;
    struct launch l;

    MUST(r, module_kernel(r->module, entry, &k, &r->err));
    launch_init(&l, k);
    launch_grid(&l, grid, 1, 1);
    launch_block(&l, block, 1, 1);
    return l;
}

static inline void cpu_submit(struct cpu_run *r, const struct launch *l)
{
    MUST(r, launch_submit(l, &r->err));
}

/* The launch is a kernel fault whose text contains each of the words. */
static inline void expect_fault(struct cpu_run *r, const struct launch *l, const char *const *words)
{
    r->err = (struct err)ERR_INIT;
    assert_int_equal(launch_submit(l, &r->err), -1);
    if (r->err.kind != ERR_FAULT)
        fail_msg("not a fault: %s", r->err.text);
    for (; *words; words++)
        if (!strstr(r->err.text, *words))
            fail_msg("\"%s\" does not say \"%s\"", r->err.text, *words);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
