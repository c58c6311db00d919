/* Kernel images are checked before the driver, which trusts their headers, sees them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda_image.h"

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry add() {}\n";

static void assert_image(const void *bytes, size_t n, const char *text)
{
    struct err err = ERR_INIT;
    int rc = cuda_image_check("k.bin", bytes, n, &err);

    if (!text) {
        if (rc < 0)
            fail_msg("%s", err.text);
        return;
    }
    assert_int_equal(rc, -1);
    assert_int_equal(err.kind, ERR_INPUT);
    if (!strstr(err.text, text))
        fail_msg("%s, expected ...%s...", err.text, text);
}

static void test_images_are_checked_before_the_driver_sees_them(void **data)
{
    unsigned char fatbin[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 48};
    unsigned char elf[128] = {0x7f, 'E', 'L', 'F', 2, 1, 1};

    (void)data;
    assert_image(ptx, sizeof ptx - 1, NULL);
    assert_image(ptx, sizeof ptx, "NUL byte");
    assert_image("hello, this is no kernel", 24, "not a cubin, fatbin or PTX file");
    assert_image("", 0, "0 bytes are no kernel module");
    assert_image(fatbin, sizeof fatbin, NULL);
    assert_image(fatbin, sizeof fatbin - 1, "cut short");
    memset(fatbin + 8, 0xff, 8); /* a size that overflows when the header is added */
    assert_image(fatbin, sizeof fatbin, "cut short");
    assert_image(elf, 63, "cut short within its ELF header");
    elf[18] = 62; /* x86-64: a CPU module */
    assert_image(elf, sizeof elf, "another machine than a CUDA GPU (ELF machine 62)");
    elf[18] = 190;
    assert_image(elf, sizeof elf, NULL);
    elf[40] = 200; /* section headers past the end */
    assert_image(elf, sizeof elf, "cut short or corrupt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_are_checked_before_the_driver_sees_them),
    };

    return cmocka_run_group_tests_name("cuda image", tests, NULL, NULL);
}
