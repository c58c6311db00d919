/*
 * The launch builder and its checks.
 *
 * GB10's limits: compute capability 12.1, CUDA C++ Programming Guide, "Technical Specifications
 * per Compute Capability": 1024 threads a block, block 1024 x 1024 x 64, grid 2^31-1 x 65535 x
 * 65535, 99 KiB of shared memory a block with the opt-in (100 KiB an SM less the 1 KiB that the
 * system takes).
 */
#include "device/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/device_ops.h"

const struct launch_limits gb10_limits = {
    .threads_per_block = 1024,
    .shared_per_block = 99 * 1024,
    .block = {1024, 1024, 64},
    .grid = {2147483647u, 65535, 65535},
};

void launch_init(struct launch *l, const struct kernel *kernel)
{
    memset(l, 0, sizeof *l);
    l->kernel = kernel;
    l->grid = (struct extent){1, 1, 1};
    l->block = (struct extent){1, 1, 1};
}

void launch_grid(struct launch *l, uint32_t x, uint32_t y, uint32_t z)
{
    l->grid = (struct extent){x, y, z};
}

void launch_block(struct launch *l, uint32_t x, uint32_t y, uint32_t z)
{
    l->block = (struct extent){x, y, z};
}

void launch_shared(struct launch *l, uint64_t bytes)
{
    l->shared = bytes;
}

/* The index of the next argument, or KERNEL_MAX_PARAMS when there is no room. */
static unsigned next_arg(struct launch *l, char kind, uint8_t size)
{
    if (l->nargs == KERNEL_MAX_PARAMS) {
        l->overflow = true;
        return KERNEL_MAX_PARAMS;
    }
    l->kind[l->nargs] = kind;
    l->size[l->nargs] = size;
    return l->nargs++;
}

void launch_ptr(struct launch *l, dev_ptr value)
{
    unsigned i = next_arg(l, 'p', sizeof value);

    if (i < KERNEL_MAX_PARAMS)
        l->arg[i].ptr = value;
}

void launch_u32(struct launch *l, uint32_t value)
{
    unsigned i = next_arg(l, 'u', sizeof value);

    if (i < KERNEL_MAX_PARAMS)
        l->arg[i].u32 = value;
}

void launch_i32(struct launch *l, int32_t value)
{
    unsigned i = next_arg(l, 'i', sizeof value);

    if (i < KERNEL_MAX_PARAMS)
        l->arg[i].i32 = value;
}

void launch_f32(struct launch *l, float value)
{
    unsigned i = next_arg(l, 'f', sizeof value);

    if (i < KERNEL_MAX_PARAMS)
        l->arg[i].f32 = value;
}

static const char *kind_text(char kind)
{
    switch (kind) {
    case 'p':
        return "pointer";
    case 'u':
        return "u32";
    case 'i':
        return "i32";
    case 'f':
        return "f32";
    case 'U':
        return "u64";
    case 'I':
        return "i64";
    case 'd':
        return "f64";
    default:
        return "value";
    }
}

/* How a register would hold it: an address, an integer or a floating-point number. Signedness is
   left to the kernel (its `int n` takes our u32, as a C caller's would); an address that a kernel
   declares as a 64-bit integer is the same bits. */
static char kind_class(char kind)
{
    switch (kind) {
    case 'u':
    case 'i':
    case 'U':
    case 'I':
    case 'p':
        return 'n';
    case 'f':
    case 'd':
        return 'f';
    default:
        return '?';
    }
}

static bool kinds_agree(char want, char got)
{
    char a = kind_class(want), b = kind_class(got);

    return a == '?' || b == '?' || a == b;
}

static int check_args(const struct launch *l, struct err *err)
{
    const struct kernel *k = l->kernel;

    if (l->overflow)
        return err_set(err, ERR_REFUSED, "more than %d arguments", KERNEL_MAX_PARAMS);
    if (l->nargs != k->nparams)
        return err_set(err, ERR_REFUSED, "%u arguments given, the kernel takes %u", l->nargs,
                       k->nparams);
    for (unsigned i = 0; i < l->nargs; i++)
        if (l->size[i] != k->param_size[i] || !kinds_agree(k->param_kind[i], l->kind[i]))
            return err_set(err, ERR_REFUSED,
                           "argument %u is a %s of %u bytes, the kernel takes a %s of %u bytes", i,
                           kind_text(l->kind[i]), l->size[i], kind_text(k->param_kind[i]),
                           k->param_size[i]);
    return 0;
}

static int check_axis(const char *what, char axis, uint32_t value, uint32_t limit,
                      const char *whose, struct err *err)
{
    if (value >= 1 && value <= limit)
        return 0;
    return err_set(err, ERR_REFUSED,
                   "CUDA_ERROR_INVALID_VALUE: %s.%c is %" PRIu32 ", %s allows 1 to %" PRIu32, what,
                   axis, value, whose, limit);
}

static int check_extent(const char *what, const struct extent *e, const struct extent *limit,
                        const char *whose, struct err *err)
{
    if (check_axis(what, 'x', e->x, limit->x, whose, err) < 0 ||
        check_axis(what, 'y', e->y, limit->y, whose, err) < 0 ||
        check_axis(what, 'z', e->z, limit->z, whose, err) < 0)
        return -1;
    return 0;
}

static int check_limits(const struct launch *l, const struct launch_limits *limits,
                        const char *whose, struct err *err)
{
    uint64_t threads = (uint64_t)l->block.x * l->block.y;
    uint64_t fixed = l->kernel->static_shared;

    if (check_extent("grid", &l->grid, &limits->grid, whose, err) < 0 ||
        check_extent("block", &l->block, &limits->block, whose, err) < 0)
        return -1;
    threads *= l->block.z; /* each axis is within its limit by now: no overflow */
    if (threads > limits->threads_per_block)
        return err_set(err, ERR_REFUSED,
                       "CUDA_ERROR_INVALID_VALUE: %" PRIu64 " threads a block, %s allows %" PRIu32,
                       threads, whose, limits->threads_per_block);
    if (fixed > limits->shared_per_block || l->shared > limits->shared_per_block - fixed)
        return err_set(err, ERR_REFUSED,
                       "CUDA_ERROR_INVALID_VALUE: %" PRIu64 " bytes of dynamic and %" PRIu64
                       " of static shared memory, %s allows %" PRIu32 " in all",
                       l->shared, fixed, whose, limits->shared_per_block);
    return 0;
}

/* What the kernel's own launch bounds and registers allow. */
static int check_kernel_threads(const struct launch *l, struct err *err)
{
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;

    if (!l->kernel->max_threads || threads <= l->kernel->max_threads)
        return 0;
    return err_set(err, ERR_REFUSED,
                   "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: %" PRIu64
                   " threads a block, its launch bounds and %" PRIu32
                   " registers a thread allow %" PRIu32,
                   threads, l->kernel->registers, l->kernel->max_threads);
}

int launch_submit(const struct launch *l, struct err *err)
{
    struct device *dev;

    if (!l->kernel)
        return err_set(err, ERR_REFUSED, "launch of a kernel that is not in the set");
    dev = l->kernel->device;
    if (check_args(l, err) < 0 || check_limits(l, &gb10_limits, "GB10", err) < 0 ||
        check_limits(l, &dev->info.limits, dev->info.spec, err) < 0 ||
        check_kernel_threads(l, err) < 0 || device_launch(dev, l, err) < 0)
        return err_context(err, "kernel %s", l->kernel->entry);
    return 0;
}
