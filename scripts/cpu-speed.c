/*
 * cpu-speed DIR WORKERS: the least time of each of the CPU device's benchmark kernels, in
 * milliseconds, one "<name> <ms>" line each; DIR holds the modules. Compiled twice by
 * compare-cpu-speed: against this device, and with -DOTHER_RUNTIME against a second runtime whose
 * header is emu_rt.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS   9
#define MAX_ARGS 24

struct arg {
    union {
        uint64_t ptr;
        uint32_t u32;
        float f32;
    } value;
    char kind; /* 'p' 'u' 'f' */
};

struct call {
    const char *module, *entry;
    unsigned grid[2], block[2], shared, nargs;
    struct arg arg[MAX_ARGS];
};

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "cpu-speed: %s: %s\n", what, why);
    exit(1);
}

/* --- the two runtimes: start(), memory(), prepare(), launch() --- */

#ifdef OTHER_RUNTIME

#include "emu_rt.h"

struct runtime {
    emu_opts options;
    emu_module *module;
    const emu_kernel *kernel;
};

static void start(struct runtime *r, unsigned workers)
{
    memset(r, 0, sizeof *r);
    r->options.workers = (int)workers;
    r->options.fill = EMU_FILL_NAN;
}

static uint64_t memory(struct runtime *r, const void *data, size_t bytes)
{
    void *p = aligned_alloc(256, (bytes + 255) / 256 * 256);

    (void)r;
    if (!p)
        stop("memory", "out of it");
    return (uint64_t)(uintptr_t)memcpy(p, data, bytes);
}

static void prepare(struct runtime *r, const char *path, const struct call *c)
{
    r->module = emu_load(path);
    r->kernel = r->module ? emu_find(r->module, c->entry) : NULL;
    if (!r->kernel)
        stop(path, emu_error());
}

static void launch(struct runtime *r, struct call *c)
{
    void *params[MAX_ARGS];
    emu_dim3 grid = {c->grid[0], c->grid[1], 1}, block = {c->block[0], c->block[1], 1};

    for (unsigned i = 0; i < c->nargs; i++)
        params[i] = &c->arg[i].value;
    if (emu_launch(r->module, r->kernel, grid, block, c->shared, params, &r->options) < 0)
        stop(c->entry, emu_error());
}

#else

#include "device/launch.h"

struct runtime {
    struct device *device;
    struct kernel *kernel;
    struct err err;
};

static void start(struct runtime *r, unsigned workers)
{
    memset(r, 0, sizeof *r);
    if (device_open("cpu", &r->device, &r->err) < 0)
        stop("cpu", r->err.text);
    (void)device_set_schedule(r->device, &(struct schedule){.workers = workers});
}

static uint64_t memory(struct runtime *r, const void *data, size_t bytes)
{
    dev_ptr p;

    if (device_alloc(r->device, bytes, "buffer", &p, &r->err) < 0 ||
        device_upload(r->device, p, data, bytes, &r->err) < 0)
        stop("memory", r->err.text);
    return p;
}

static void prepare(struct runtime *r, const char *path, const struct call *c)
{
    struct module *m;

    if (module_load(r->device, path, &m, &r->err) < 0 ||
        module_kernel(m, c->entry, &r->kernel, &r->err) < 0)
        stop(path, r->err.text);
}

static void launch(struct runtime *r, struct call *c)
{
    struct launch l;

    launch_init(&l, r->kernel);
    launch_grid(&l, c->grid[0], c->grid[1], 1);
    launch_block(&l, c->block[0], c->block[1], 1);
    launch_shared(&l, c->shared);
    for (unsigned i = 0; i < c->nargs; i++)
        if (c->arg[i].kind == 'p')
            launch_ptr(&l, c->arg[i].value.ptr);
        else if (c->arg[i].kind == 'f')
            launch_f32(&l, c->arg[i].value.f32);
        else
            launch_u32(&l, c->arg[i].value.u32);
    if (launch_submit(&l, &r->err) < 0)
        stop(c->entry, r->err.text);
}

#endif

/* --- arguments --- */

static void add_ptr(struct call *c, uint64_t ptr)
{
    c->arg[c->nargs].kind = 'p';
    c->arg[c->nargs++].value.ptr = ptr;
}

static void add_u32(struct call *c, uint32_t value)
{
    c->arg[c->nargs].kind = 'u';
    c->arg[c->nargs++].value.u32 = value;
}

static float draw(size_t i, float low, float high)
{
    return low + (high - low) * (float)(i * 2654435761u % 65536) / 65536.0f;
}

static uint64_t floats(struct runtime *r, size_t n, float low, float high)
{
    float *x = malloc(n * sizeof *x);
    uint64_t p;

    for (size_t i = 0; x && i < n; i++)
        x[i] = draw(i, low, high);
    p = memory(r, x, n * sizeof *x);
    free(x);
    return p;
}

static uint64_t halves(struct runtime *r, size_t n)
{
    uint16_t *x = malloc(n * sizeof *x);
    uint64_t p;

    for (size_t i = 0; x && i < n; i++) {
        float f = draw(i, -0.1f, 0.1f);
        uint32_t u;

        memcpy(&u, &f, sizeof u);
        x[i] = (uint16_t)(u >> 16);
    }
    p = memory(r, x, n * sizeof *x);
    free(x);
    return p;
}

/* --- the kernels, at the shapes that are compared --- */

static void gdn_call(struct runtime *r, struct call *c, int fold)
{
    enum { B = 4, NK = 16, NV = 48, D = 128 };
    const uint32_t accepted[B] = {1, 2, 3, 4}, stash_floats = 4 * (NV * D + NV + NK * D);
    uint64_t state[B], table, stash, flag;
    const uint32_t engaged = 1;

    for (int i = 0; i < B; i++)
        state[i] = floats(r, (size_t)NV * D * D, -1, 1);
    table = memory(r, state, sizeof state);
    stash = floats(r, (size_t)B * stash_floats, 0, 1);
    flag = memory(r, &engaged, sizeof engaged);
    *c = (struct call){.module = "gated_delta_rule_wy4_woa",
                       .entry = fold ? "gated_delta_rule_wy4_fold" : "gated_delta_rule_wy4_woa",
                       .grid = {NV, B},
                       .block = {128, 1},
                       .shared = fold ? 0 : D * D * 4};
    add_ptr(c, table);
    if (fold) {
        const uint32_t dims[] = {4, B, NK, NV, D, D, stash_floats};

        add_ptr(c, stash);
        add_ptr(c, memory(r, accepted, sizeof accepted));
        add_ptr(c, table);
        add_u32(c, B);
        add_ptr(c, flag);
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
            add_u32(c, dims[i]);
        return;
    }
    const uint32_t dims[] = {B, NK, NV, D, D, NK * D, NV * D, NV, stash_floats};

    add_ptr(c, halves(r, (size_t)B * 4 * NK * D));
    add_ptr(c, halves(r, (size_t)B * 4 * NK * D));
    add_ptr(c, halves(r, (size_t)B * 4 * NV * D));
    add_ptr(c, floats(r, (size_t)B * 4 * NV, 0.8f, 0.99f));
    add_ptr(c, floats(r, (size_t)B * 4 * NV, 0, 1));
    add_ptr(c, halves(r, (size_t)B * 4 * NV * D));
    add_ptr(c, stash);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        add_u32(c, dims[i]);
    add_ptr(c, flag);
}

static void chunk_call(struct runtime *r, struct call *c, int scan)
{
    enum { H = 32, D = 128, C = 32, T = 256 };
    const size_t n = (size_t)T * H * D;

    *c = (struct call){.module = "kda_chunk",
                       .entry = scan ? "kda_chunk_scan" : "kda_chunk_prepare",
                       .grid = {scan ? H : T / C, scan ? 1 : H},
                       .block = {128, 1},
                       .shared = scan ? (2 * C * D + C * C) * 4 : (C * D + C * C + C) * 4};
    add_ptr(c, floats(r, n, -0.1f, 0.1f));
    add_ptr(c, floats(r, n, -0.1f, 0.1f));
    add_ptr(c, floats(r, n, -0.2f, 0));
    add_ptr(c, floats(r, scan ? n : (size_t)T * H, 0, 1));
    add_ptr(c, floats(r, n, 0, 0.1f));
    add_ptr(c, floats(r, n, 0, 0.1f));
    add_ptr(c, floats(r, n, 0, 0.1f));
    add_u32(c, H);
    add_u32(c, D);
    add_u32(c, C);
    if (scan)
        add_u32(c, T / C);
    add_u32(c, T);
    if (scan) {
        c->arg[c->nargs].kind = 'f';
        c->arg[c->nargs++].value.f32 = 0.088f;
    }
}

static void gemm_call(struct runtime *r, struct call *c)
{
    enum { M = 64, N = 1024, K = 1024 };

    *c = (struct call){
        .module = "gemm", .entry = "dense_gemm_bf16", .grid = {N / 16, M / 16}, .block = {16, 16}};
    add_ptr(c, halves(r, M * K));
    add_ptr(c, halves(r, N * K));
    add_ptr(c, halves(r, M * N));
    add_u32(c, M);
    add_u32(c, N);
    add_u32(c, K);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void measure(struct runtime *r, const char *dir, struct call *c)
{
    char path[1024];
    double least = 1e30;

    snprintf(path, sizeof path, "%s/%s.so", dir, c->module);
    prepare(r, path, c);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_ms(), ms;

        launch(r, c);
        ms = now_ms() - begin;
        least = ms < least ? ms : least;
    }
    printf("%s %.3f\n", c->entry, least);
}

int main(int argc, char **argv)
{
    struct runtime r;
    struct call c;

    if (argc != 3)
        stop("usage", "cpu-speed DIR WORKERS");
    start(&r, (unsigned)atoi(argv[2]));
    for (int kind = 0; kind < 5; kind++) {
        if (kind < 2)
            gdn_call(&r, &c, kind);
        else if (kind < 4)
            chunk_call(&r, &c, kind - 2);
        else
            gemm_call(&r, &c);
        measure(&r, argv[1], &c);
    }
    return 0;
}
