/* The launch builder refuses what the kernel's signature or GB10 refuses, before any device
   sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_ops.h"
#include "device/launch.h"

/* A device that counts the launches that get through. */
struct counting_device {
    struct device base;
    unsigned launches;
};

static int count_launch(struct device *dev, const struct launch *launch, struct err *err)
{
    (void)launch;
    (void)err;
    ((struct counting_device *)dev)->launches++;
    return 0;
}

static const struct device_ops counting_ops = {.launch = count_launch};

struct fixture {
    struct counting_device device;
    struct kernel kernel;
    struct launch launch;
};

/* fold(ptr, u32, f32) on a device with GB10's limits; a launch that is fine. */
static void set_up(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->device.base.ops = &counting_ops;
    f->device.base.info.limits = gb10_limits;
    strcpy(f->device.base.info.spec, "cuda:0");
    f->kernel.device = &f->device.base;
    strcpy(f->kernel.entry, "fold");
    f->kernel.nparams = 3;
    memcpy(f->kernel.param_size, "\10\4\4", 3);
    strcpy(f->kernel.param_kind, "puf");
    launch_init(&f->launch, &f->kernel);
    launch_ptr(&f->launch, 16);
    launch_u32(&f->launch, 1);
    launch_f32(&f->launch, 1.0f);
}

static void assert_accepted(struct fixture *f)
{
    struct err err = ERR_INIT;

    f->device.launches = 0;
    if (launch_submit(&f->launch, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(f->device.launches, 1);
}

static void assert_refused(struct fixture *f, const char *text)
{
    struct err err = ERR_INIT;

    f->device.launches = 0;
    assert_int_equal(launch_submit(&f->launch, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    if (strcmp(err.text, text))
        fail_msg("got \"%s\", expected \"%s\"", err.text, text);
    assert_int_equal(f->device.launches, 0);
}

static void test_accepts(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    assert_int_equal(f.launch.grid.x, 1);
    assert_int_equal(f.launch.block.z, 1);
    assert_accepted(&f);
    strcpy(f.kernel.param_kind, "???"); /* CUDA knows sizes only */
    assert_accepted(&f);
    strcpy(f.kernel.param_kind, "pif"); /* the kernel's own `int` takes our u32 */
    assert_accepted(&f);
    strcpy(f.kernel.param_kind, "Uuf"); /* an address as a 64-bit integer */
    assert_accepted(&f);
}

static void test_count_and_sizes(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    launch_i32(&f.launch, -1);
    assert_refused(&f, "kernel fold: 4 arguments given, the kernel takes 3");
    set_up(&f);
    f.launch.nargs = 2;
    assert_refused(&f, "kernel fold: 2 arguments given, the kernel takes 3");
    set_up(&f);
    f.kernel.param_size[1] = 8;
    f.kernel.param_kind[1] = 'U';
    assert_refused(&f, "kernel fold: argument 1 is a u32 of 4 bytes, the kernel takes a u64 of 8 "
                       "bytes");
}

static void test_kinds(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    f.kernel.param_kind[1] = 'f'; /* an epsilon where a length goes */
    assert_refused(&f, "kernel fold: argument 1 is a u32 of 4 bytes, the kernel takes a f32 of 4 "
                       "bytes");
    set_up(&f);
    f.kernel.param_kind[2] = 'i';
    assert_refused(&f, "kernel fold: argument 2 is a f32 of 4 bytes, the kernel takes a i32 of 4 "
                       "bytes");
    set_up(&f);
    f.kernel.param_kind[0] = 'd';
    assert_refused(&f, "kernel fold: argument 0 is a pointer of 8 bytes, the kernel takes a f64 of "
                       "8 bytes");
}

static void test_too_many_arguments(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    for (int i = 0; i < KERNEL_MAX_PARAMS; i++)
        launch_u32(&f.launch, 1);
    assert_int_equal(f.launch.nargs, KERNEL_MAX_PARAMS);
    assert_refused(&f, "kernel fold: more than 48 arguments");
}

static void test_zero_geometry(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    launch_grid(&f.launch, 0, 1, 1); /* zero rows must never pass as a quick launch */
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: grid.x is 0, GB10 allows 1 to "
                       "2147483647");
    launch_grid(&f.launch, 1, 1, 1);
    launch_block(&f.launch, 32, 1, 0);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: block.z is 0, GB10 allows 1 to 64");
}

static void test_axes(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    launch_grid(&f.launch, 2147483647u, 65535, 65535);
    assert_accepted(&f);
    launch_grid(&f.launch, 1, 65536, 1);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: grid.y is 65536, GB10 allows 1 to "
                       "65535");
    launch_grid(&f.launch, 2147483648u, 1, 1);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: grid.x is 2147483648, GB10 allows 1 "
                       "to 2147483647");
    launch_grid(&f.launch, 1, 1, 1);
    launch_block(&f.launch, 1024, 1, 1);
    assert_accepted(&f);
    launch_block(&f.launch, 1025, 1, 1);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: block.x is 1025, GB10 allows 1 to "
                       "1024");
    launch_block(&f.launch, 1024, 1024, 64); /* each axis is fine, the product is not */
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: 67108864 threads a block, GB10 "
                       "allows 1024");
    launch_block(&f.launch, 32, 33, 1);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: 1056 threads a block, GB10 allows "
                       "1024");
}

static void test_shared(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    launch_shared(&f.launch, 101376);
    assert_accepted(&f);
    launch_shared(&f.launch, 101377);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: 101377 bytes of dynamic and 0 of "
                       "static shared memory, GB10 allows 101376 in all");
    f.kernel.static_shared = 16; /* the sum counts */
    launch_shared(&f.launch, 101376);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: 101376 bytes of dynamic and 16 of "
                       "static shared memory, GB10 allows 101376 in all");
    launch_shared(&f.launch, UINT64_MAX); /* no wrap-around */
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: 18446744073709551615 bytes of "
                       "dynamic and 16 of static shared memory, GB10 allows 101376 in all");
}

static void test_the_devices_own_limits(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    f.device.base.info.limits.shared_per_block = 49152;
    launch_shared(&f.launch, 49153);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: 49153 bytes of dynamic and 0 of "
                       "static shared memory, cuda:0 allows 49152 in all");
    /* A larger GPU does not excuse what GB10 refuses. */
    f.device.base.info.limits.shared_per_block = 232448;
    launch_shared(&f.launch, 200000);
    assert_refused(&f, "kernel fold: CUDA_ERROR_INVALID_VALUE: 200000 bytes of dynamic and 0 of "
                       "static shared memory, GB10 allows 101376 in all");
}

static void test_launch_bounds(void **data)
{
    struct fixture f;

    (void)data;
    set_up(&f);
    f.kernel.max_threads = 256;
    f.kernel.registers = 200;
    launch_block(&f.launch, 256, 1, 1);
    assert_accepted(&f);
    launch_block(&f.launch, 257, 1, 1);
    assert_refused(&f, "kernel fold: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: 257 threads a block, its "
                       "launch bounds and 200 registers a thread allow 256");
}

static void test_absent_kernel(void **data)
{
    struct fixture f;
    struct err err = ERR_INIT;

    (void)data;
    set_up(&f);
    f.launch.kernel = NULL;
    assert_int_equal(launch_submit(&f.launch, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),       cmocka_unit_test(test_count_and_sizes),
        cmocka_unit_test(test_kinds),         cmocka_unit_test(test_too_many_arguments),
        cmocka_unit_test(test_zero_geometry), cmocka_unit_test(test_axes),
        cmocka_unit_test(test_shared),        cmocka_unit_test(test_the_devices_own_limits),
        cmocka_unit_test(test_launch_bounds), cmocka_unit_test(test_absent_kernel),
    };

    return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
