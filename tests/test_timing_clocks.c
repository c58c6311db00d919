/* NVML readings over a library that offers as little as GB10's (tests/fake_nvml): what is not
   there is NaN, never 0. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "measure/clocks.h"

#define FAKE "build/tests/fake_nvml/fake_nvml.so"

static const struct device_info known = {.kind = DEVICE_CUDA, .uuid = "GPU-known"};

static void test_readings(void **data)
{
    void *library = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL), *symbol;
    struct clock_reading r;
    struct clocks *c = NULL;
    struct err err = ERR_INIT;
    int (*users)(void);
    char firmware[48];

    (void)data;
    if (clocks_open_with(FAKE, &known, &c, &err) < 0)
        fail_msg("%s", err.text);
    clocks_read(c, &r);
    assert_true(r.sm_mhz == 2418);
    assert_true(isnan(r.mem_mhz)); /* refused */
    assert_true(r.temperature_c == 61);
    assert_true(isnan(r.power_w));  /* refused, though it wrote a 0 */
    assert_true(isnan(r.energy_j)); /* not in the library */
    assert_true(r.throttle_known);
    assert_int_equal(r.throttle, 0x20);
    clocks_firmware(c, firmware, sizeof firmware);
    assert_string_equal(firmware, "96.00.A5.00.03");
    clocks_firmware(c, firmware, 4); /* refused: too short */
    assert_string_equal(firmware, "");
    clocks_close(c);
    symbol = dlsym(library, "fake_nvml_users");
    memcpy(&users, &symbol, sizeof users);
    assert_int_equal(users(), 0);
    dlclose(library);
}

static void assert_absent(const char *library, const struct device_info *info, const char *text)
{
    struct clocks *c = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(clocks_open_with(library, info, &c, &err), -1);
    assert_null(c);
    assert_int_equal(err.kind, ERR_MISSING);
    if (!strstr(err.text, text))
        fail_msg("got \"%s\", expected \"...%s...\"", err.text, text);
}

static void test_absence(void **data)
{
    const struct device_info other = {.kind = DEVICE_CUDA, .uuid = "GPU-other"};
    const struct device_info cpu = {.kind = DEVICE_CPU, .spec = "cpu"};
    struct clock_reading r;
    char firmware[48] = "x";

    (void)data;
    assert_absent(FAKE, &other, "nvmlDeviceGetHandleByUUID: Not Found");
    assert_absent(FAKE, &cpu, "cpu has no clocks");
    assert_absent("no-such-nvml.so", &known, "no NVML");
    assert_absent("libc.so.6", &known, "is no NVML");
    clocks_read(NULL, &r);
    assert_true(isnan(r.sm_mhz) && isnan(r.temperature_c));
    assert_false(r.throttle_known);
    clocks_close(NULL);
    clocks_firmware(NULL, firmware, sizeof firmware);
    assert_string_equal(firmware, "");
}

static void assert_text(uint64_t reasons, const char *expected)
{
    char text[64];

    clocks_throttle_text(reasons, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_reasons(void **data)
{
    char small[8];

    (void)data;
    assert_text(0, "none");
    assert_text(0x4, "sw-power-cap");
    assert_text(0x48, "hw-slowdown, hw-thermal");
    assert_text(0x8000000000000001, "idle, 0x8000000000000000");
    clocks_throttle_text(0xff, small, sizeof small);
    assert_int_equal(strlen(small), 7);
    assert_false(clocks_slowed(0));
    assert_false(clocks_slowed(0x1 | 0x2 | 0x4 | 0x10 | 0x100));
    assert_true(clocks_slowed(0x8) && clocks_slowed(0x20) && clocks_slowed(0x40));
    assert_true(clocks_slowed(0x80));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readings),
        cmocka_unit_test(test_absence),
        cmocka_unit_test(test_reasons),
    };

    return cmocka_run_group_tests_name("clocks", tests, NULL, NULL);
}
