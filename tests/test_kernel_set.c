/* Which files of a folder have an entry, and whose loading time is counted. The CUDA device over a
   driver without a GPU (tests/fake_cuda): its modules all hold `add`, whatever their text says. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda.h"
#include "device/kernel_set.h"
#include "tests/fake_cuda/load.h"
#include "tests/scratch.h"

#define HEAD ".version 8.0\n.target sm_90\n"

struct fixture {
    struct scratch scratch;
    void *library;
    struct fake_state *state; /* of the driver */
    struct device *device;
    struct kernel_set *set;
};

static int set_up(void **data)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct err err = ERR_INIT;

    f->state = fake_load(&f->library);
    if (!f->state)
        fail_msg("%s", dlerror());
    scratch_open(&f->scratch);
    if (cuda_device_open_with(FAKE, 0, &f->device, &err) < 0)
        fail_msg("%s", err.text);
    *data = f;
    return 0;
}

static int tear_down(void **data)
{
    struct fixture *f = *data;

    kernel_set_close(f->set);
    device_close(f->device);
    dlclose(f->library);
    scratch_close(&f->scratch);
    free(f);
    return 0;
}

static void file(struct fixture *f, const char *name, const char *text)
{
    char path[400];

    scratch_write(scratch_path(&f->scratch, name, path, sizeof path), text);
}

static struct kernel *find(struct fixture *f, const char *module, const char *entry)
{
    struct err err = ERR_INIT;
    struct kernel *k = NULL;

    if (!f->set && kernel_set_open(f->device, f->scratch.dir, &f->set, &err) < 0)
        fail_msg("%s", err.text);
    if (kernel_set_find(f->set, module, entry, &k, &err) < 0)
        fail_msg("%s", err.text);
    return k;
}

static void assert_note(struct fixture *f, const char *text)
{
    char note[512] = "";

    assert_int_equal(kernel_set_note(f->set, note, sizeof note), text != NULL);
    if (text && !strstr(note, text))
        fail_msg("%s, expected ...%s...", note, text);
}

static void test_a_built_module_is_seen_without_loading_it(void **data)
{
    struct fixture *f = *data;

    file(f, "a.ptx", HEAD ".visible .entry add() {}\n");
    file(f, "mine.ptx", HEAD ".visible .entry add() {}\n");
    find(f, "mine", "add");
    assert_note(f, "kernel add is in both mine.ptx and a.ptx: the one in mine.ptx counts");
    assert_int_equal(f->state->modules, 1);
    find(f, "mine", "add");
    assert_note(f, NULL); /* once */
}

static void test_what_does_not_show_is_no_second_entry(void **data)
{
    struct fixture *f = *data;

    file(f, "comment.ptx", HEAD "// .entry add\n.visible .entry add_more() {}\n");
    file(f, "func.ptx", HEAD ".visible .func add() {}\n");
    file(f, "mine.ptx", HEAD ".visible .entry add() {}\n");
    file(f, "none.cubin", "neither an image nor wanted: .entry add\n");
    find(f, "mine", "add");
    assert_note(f, NULL);
    assert_int_equal(f->state->modules, 1);
}

/* The driver knows more than the file shows, a fatbin's compressed PTX for one. */
static void test_a_loaded_module_is_asked_through_the_driver(void **data)
{
    struct fixture *f = *data;

    file(f, "a.ptx", HEAD "// compressed\n");
    file(f, "mine.ptx", HEAD ".visible .entry add() {}\n");
    find(f, "a", "crash");
    assert_note(f, NULL);
    find(f, "mine", "add");
    assert_note(f, "kernel add is in both mine.ptx and a.ptx: the one in mine.ptx counts");
    assert_int_equal(f->state->modules, 2);
}

/* On the CPU device, where a source is loaded to be sure: its time counts when it is wanted. */
static void test_loading_counts_for_what_is_wanted(void **data)
{
    struct fixture *f = *data;
    struct err err = ERR_INIT;
    char cache[400];
    double loaded;

    device_close(f->device);
    setenv("XDG_CACHE_HOME", scratch_path(&f->scratch, "cache", cache, sizeof cache), 1);
    if (device_open("cpu", &f->device, &err) < 0)
        fail_msg("%s", err.text);
    file(f, "a.cu",
         "extern \"C\" __global__ void k(int *p) { *p = 1; }\n"
         "extern \"C\" __global__ void own(int *p) { *p = 2; }\n");
    file(f, "b.cu", "extern \"C\" __global__ void k(int *p) { *p = 3; }\n");
    find(f, "b", "k");
    assert_note(f, "kernel k is in both b.cu and a.cu: the one in b.cu counts");
    loaded = kernel_set_load_seconds(f->set);
    assert_true(loaded > 0);
    find(f, "a", "own");
    assert_true(kernel_set_load_seconds(f->set) > loaded);
    loaded = kernel_set_load_seconds(f->set);
    find(f, "a", "k");
    assert_true(kernel_set_load_seconds(f->set) - loaded < 1e-9); /* once */
    unsetenv("XDG_CACHE_HOME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        TEST(test_a_built_module_is_seen_without_loading_it),
        TEST(test_what_does_not_show_is_no_second_entry),
        TEST(test_a_loaded_module_is_asked_through_the_driver),
        TEST(test_loading_counts_for_what_is_wanted),
    };

    return cmocka_run_group_tests_name("kernel set", tests, NULL, NULL);
}
