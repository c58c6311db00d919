/* Fences: a write of even one byte outside a buffer is seen, on the side where it is. The
   devices are the CPU device and the CUDA device over host memory (tests/fake_cuda), so the
   test plays the kernel. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda.h"
#include "device/fence.h"
#include "tests/fake_cuda/load.h"

static int open_cuda(void **data)
{
    void *library;
    struct err err = ERR_INIT;
    struct device *dev = NULL;

    if (!fake_load(&library))
        fail_msg("%s", dlerror());
    if (cuda_device_open_with(FAKE, 0, &dev, &err) < 0)
        fail_msg("%s", err.text);
    dlclose(library);
    *data = dev;
    return 0;
}

static int open_cpu(void **data)
{
    struct err err = ERR_INIT;
    struct device *dev = NULL;

    if (device_open("cpu", &dev, &err) < 0)
        fail_msg("%s", err.text);
    *data = dev;
    return 0;
}

static int close_device(void **data)
{
    device_close(*data);
    return 0;
}

static void assert_fence(const struct fenced *f, const char *text)
{
    struct err err = ERR_INIT;
    bool hit = false;

    assert_int_equal(fenced_check(f, &hit, &err), 0);
    assert_int_equal(hit, text != NULL);
    if (!text)
        return;
    assert_int_equal(err.kind, ERR_FAULT);
    if (strncmp(err.text, text, strlen(text)))
        fail_msg("got \"%s\", expected \"%s...\"", err.text, text);
}

static void allocate(struct device *dev, size_t bytes, struct fenced *f)
{
    struct err err = ERR_INIT;

    if (fenced_alloc(dev, bytes, "stash", f, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(f->ptr % 16, 0);
}

/* The byte `offset` from the buffer's start, which need not be within it. */
static unsigned char *at(const struct fenced *f, long offset)
{
    return (unsigned char *)(uintptr_t)f->ptr + offset;
}

/* Every canary byte of a buffer, flipped and mended in turn. */
static void flip_all(const struct fenced *f)
{
    for (long i = -(long)f->before; i < 0; i++) {
        *at(f, i) ^= 1;
        assert_fence(f, "buffer stash: written before its start");
        *at(f, i) ^= 1;
    }
    for (size_t i = 0; i < f->after; i++) {
        *at(f, (long)(f->bytes + i)) ^= 0x80;
        assert_fence(f, "buffer stash: written behind its end");
        *at(f, (long)(f->bytes + i)) ^= 0x80;
    }
    assert_fence(f, NULL);
}

static void test_every_byte(void **data)
{
    static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 1000, 4096};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct fenced f;

        allocate(*data, sizes[i], &f);
        memset(at(&f, 0), 0xaa, sizes[i]); /* all of the buffer is the kernel's */
        assert_fence(&f, NULL);
        flip_all(&f);
        fenced_free(&f);
    }
}

static void test_mended_canaries_are_as_new(void **data)
{
    struct err err = ERR_INIT;
    struct device *dev = *data;
    struct fenced f;

    allocate(dev, 40, &f);
    memset(at(&f, -(long)f.before), 0, f.before);
    memset(at(&f, (long)f.bytes), 0, f.after);
    assert_fence(&f, "buffer stash: written behind its end");
    assert_int_equal(fenced_mend(&f, &err), 0);
    assert_fence(&f, NULL);
    fenced_free(&f);
}

static void test_where_the_canaries_are(void **data)
{
    struct device *dev = *data;
    bool cpu = device_info(dev)->kind == DEVICE_CPU;
    struct fenced f;

    allocate(dev, 100, &f);
    assert_int_equal(f.before, FENCE_BYTES);
    assert_int_equal(f.after, cpu ? 12 : FENCE_BYTES);
    fenced_free(&f);
    assert_int_equal(f.base, 0);
}

static void test_report(void **data)
{
    struct fenced f;
    char text[160];

    allocate(*data, 100, &f);
    *at(&f, 103) = 0x11;
    *at(&f, 105) = 0x22;
    assert_fence(&f, "buffer stash: written behind its end, first at byte 3 past it (0x11 where "
                     "the canary was 0x");
    fenced_free(&f);
    allocate(*data, 100, &f);
    *at(&f, -8) = 0x33;
    *at(&f, -1000) = 0x44;
    strcpy(text, "buffer stash: written before its start, nearest 8 bytes before it (0x33");
    assert_fence(&f, text);
    fenced_free(&f);
}

static float as_float(const unsigned char *bytes)
{
    float value;

    memcpy(&value, bytes, sizeof value);
    return value;
}

/* A kernel that reads past a buffer and uses it turns its result into NaN. */
static void test_canaries_are_nan(void **data)
{
    struct fenced f;

    allocate(*data, 64, &f);
    for (long i = -(long)f.before; i < 0; i += 4)
        assert_true(isnan(as_float(at(&f, i))));
    for (size_t i = 0; i + 4 <= f.after; i += 4)
        assert_true(isnan(as_float(at(&f, 64 + (long)i))));
    for (long i = -(long)f.before; i < 0; i += 2) { /* as bf16: the upper half of an fp32 */
        const unsigned char wide[4] = {0, 0, *at(&f, i), *at(&f, i + 1)};

        assert_true(isnan(as_float(wide)));
    }
    fenced_free(&f);
}

static void test_impossible_size(void **data)
{
    struct err err = ERR_INIT;
    struct fenced f;

    assert_int_equal(fenced_alloc(*data, SIZE_MAX - 100, "state", &f, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    fenced_free(&f); /* harmless */
}

#define ON_BOTH(test)                                                                              \
    cmocka_unit_test_setup_teardown(test, open_cuda, close_device),                                \
        cmocka_unit_test_setup_teardown(test, open_cpu, close_device)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_every_byte),      ON_BOTH(test_where_the_canaries_are),
        ON_BOTH(test_report),          ON_BOTH(test_canaries_are_nan),
        ON_BOTH(test_impossible_size), ON_BOTH(test_mended_canaries_are_as_new),
    };

    return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
