/* Kernel images are checked before the driver, which trusts their headers, sees them; and which
   kernels show in them. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/operator.h" /* cmocka defines expect_value, too */

#include <cmocka.h>

#include "base/file.h"
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

/* --- entries ---------------------------------------------------------------------------------- */

static void assert_entries(const void *bytes, size_t n, const char *expected)
{
    struct text names;

    text_init(&names);
    cuda_image_entries(bytes, n, &names);
    assert_string_equal(names.data, expected);
    text_release(&names);
}

static void test_entries_of_ptx(void **data)
{
    static const char text[] =
        "// .entry of_a_comment\n.version 8.0\n.target sm_90\n/* .entry of_another\n */\n"
        ".file 1 \"a .entry of_a_string\"\n.visible .func (.param .b32 r) helper() { ret; }\n"
        ".visible .entry first(\n.param .u64 p) { .entry.no ret; }\n"
        ".weak .entry\n\t_Z2$x%Pi () {}\n.entry";
    char *exact = malloc(sizeof text - 1);

    (void)data;
    assert_entries(ptx, sizeof ptx - 1, "add\n");
    assert_entries(text, sizeof text - 1, "first\n_Z2$x%Pi\n");
    /* Cut anywhere: what is read ends with the bytes. */
    memcpy(exact, text, sizeof text - 1);
    for (size_t n = 0; n < sizeof text; n++) {
        struct text names;

        text_init(&names);
        cuda_image_entries(exact + sizeof text - 1 - n, n, &names);
        text_release(&names);
    }
    free(exact);
    assert_entries(".entry last", 11, "last\n");
}

/* As ptxas makes them, without code: headers, symbols, names. */
struct cubin {
    Elf64_Ehdr header;
    Elf64_Shdr section[3];
    Elf64_Sym symbol[5];
    char names[40];
};

static struct cubin cubin_of(void)
{
    struct cubin c = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_machine = 190,
                   .e_shoff = offsetof(struct cubin, section),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 3},
        .section = {{.sh_type = SHT_NULL},
                    {.sh_type = SHT_SYMTAB,
                     .sh_offset = offsetof(struct cubin, symbol),
                     .sh_size = sizeof c.symbol,
                     .sh_link = 2},
                    {.sh_type = SHT_STRTAB,
                     .sh_offset = offsetof(struct cubin, names),
                     .sh_size = sizeof c.names}},
        .symbol = {{.st_name = 0},
                   {.st_name = 1, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 1},
                   {.st_name = 8, .st_info = STT_FUNC, .st_shndx = 1},
                   {.st_name = 15, .st_info = STT_OBJECT, .st_other = 0x10, .st_shndx = 1},
                   {.st_name = 22, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 1}},
        .names = "\0kernel\0device\0object\0second\0",
    };

    return c;
}

static void test_entries_of_a_cubin(void **data)
{
    struct cubin c = cubin_of(), bad;

    (void)data;
    assert_entries(&c, sizeof c, "kernel\nsecond\n");
    assert_entries(&c, sizeof c - 1, ""); /* cut short: nothing in it is believed */
    bad = c;
    bad.symbol[1].st_name = sizeof c.names;
    assert_entries(&bad, sizeof bad, "second\n");
    bad.symbol[1].st_shndx = bad.symbol[4].st_shndx = SHN_UNDEF; /* elsewhere's */
    assert_entries(&bad, sizeof bad, "");
    bad = c;
    memset(bad.names + 22, 'x', sizeof bad.names - 22); /* a name without an end */
    assert_entries(&bad, sizeof bad, "kernel\n");
    bad = c;
    bad.section[1].sh_link = 3;
    assert_entries(&bad, sizeof bad, "");
    bad.section[1].sh_link = 1; /* no names */
    assert_entries(&bad, sizeof bad, "");
    bad = c;
    bad.section[1].sh_size -= 1; /* half a symbol at the end */
    assert_entries(&bad, sizeof bad, "kernel\n");
    bad.header.e_machine = 62;
    assert_entries(&bad, sizeof bad, "");
}

static void test_entries_of_a_fatbin(void **data)
{
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t payload_bytes;
        unsigned char more[64]; /* whatever stands before an image */
        struct cubin first;
        unsigned char compressed[32];
        struct cubin last;
    } fatbin = {.magic = 0xba55ed50u, .first = cubin_of(), .last = cubin_of()};

    (void)data;
    memcpy(fatbin.compressed, ".entry hidden", 13); /* not searched as text */
    memcpy(fatbin.last.names + 22, "third", 6);
    assert_entries(&fatbin, sizeof fatbin, "kernel\nsecond\nkernel\nthird\n");
    assert_entries(&fatbin, sizeof fatbin - 1, "kernel\nsecond\n");
    fatbin.first.section[2].sh_size = sizeof fatbin; /* beyond the file */
    assert_entries(&fatbin, sizeof fatbin, "kernel\nthird\n");
    assert_entries(&fatbin, 2, "");
}

static bool lists(const char *names, const char *entry)
{
    char line[128];

    snprintf(line, sizeof line, "\n%s\n", entry);
    return strstr(names, line) != NULL;
}

/* Where nvcc made our kernels: each operator's entries show in its module, in no other's. */
static void test_entries_of_our_own_fatbins(void **data)
{
    const char *probe = "build/kernels/cuda/gemm.fatbin";

    (void)data;
    if (!file_exists(probe)) {
        print_message("SKIP: no %s: make found no nvcc\n", probe);
        skip();
    }
    for (size_t i = 0; i < operator_count; i++)
        for (const struct operator_entry *e = operator_table[i]->entries; e->module; e++) {
            struct text image, names;
            struct err err = ERR_INIT;
            char path[128];

            text_init(&image);
            text_init(&names);
            snprintf(path, sizeof path, "build/kernels/cuda/%s.fatbin", e->module);
            assert_int_equal(file_read(path, (size_t)1 << 28, &image, &err), 0);
            text_add(&names, "\n");
            cuda_image_entries(image.data, image.len, &names);
            if (!lists(names.data, e->entry))
                fail_msg("%s does not show %s, only: %s", path, e->entry, names.data);
            assert_int_equal(lists(names.data, "l2_norm_bf16"), !strcmp(e->module, "norm"));
            text_release(&image);
            text_release(&names);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_are_checked_before_the_driver_sees_them),
        cmocka_unit_test(test_entries_of_ptx),
        cmocka_unit_test(test_entries_of_a_cubin),
        cmocka_unit_test(test_entries_of_a_fatbin),
        cmocka_unit_test(test_entries_of_our_own_fatbins),
    };

    return cmocka_run_group_tests_name("cuda image", tests, NULL, NULL);
}
