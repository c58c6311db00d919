/* The CUDA device over a driver that has no GPU (tests/fake_cuda): what it does with every
   kind of refusal. */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/cuda.h"
#include "device/launch.h"
#include "tests/fake_cuda/load.h"

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry add() {}\n";

struct fixture {
    void *library;
    struct fake_state *state;
    char path[64]; /* a PTX file */
};

static int set_up(void **data)
{
    struct fixture *f = calloc(1, sizeof *f);
    int fd;

    f->state = fake_load(&f->library);
    if (!f->state)
        fail_msg("%s", dlerror());
    snprintf(f->path, sizeof f->path, "build/tests/fake-%d.ptx", (int)getpid());
    fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, ptx, sizeof ptx - 1), (long)sizeof ptx - 1);
    close(fd);
    *data = f;
    return 0;
}

static int tear_down(void **data)
{
    struct fixture *f = *data;

    unlink(f->path);
    dlclose(f->library);
    free(f);
    return 0;
}

static struct device *open_fake(void)
{
    struct err err = ERR_INIT;
    struct device *dev = NULL;

    if (cuda_device_open_with(FAKE, 0, &dev, &err) < 0)
        fail_msg("%s", err.text);
    return dev;
}

static void fail_call(struct fixture *f, const char *symbol, int result)
{
    f->state->fail[0].symbol = symbol;
    f->state->fail[0].result = result;
}

static struct module *load(struct fixture *f, struct device *dev)
{
    struct err err = ERR_INIT;
    struct module *m = NULL;

    if (module_load(dev, f->path, &m, &err) < 0)
        fail_msg("%s", err.text);
    return m;
}

static struct kernel *find(struct module *m, const char *entry)
{
    struct err err = ERR_INIT;
    struct kernel *k = NULL;

    if (module_kernel(m, entry, &k, &err) < 0)
        fail_msg("%s", err.text);
    return k;
}

static void assert_open_fails(enum err_kind kind, const char *text)
{
    struct err err = ERR_INIT;
    struct device *dev = NULL;

    assert_int_equal(cuda_device_open_with(FAKE, 0, &dev, &err), -1);
    assert_null(dev);
    if (err.kind != kind || !strstr(err.text, text))
        fail_msg("got %s: %s, expected %s: ...%s...", err_kind_name(err.kind), err.text,
                 err_kind_name(kind), text);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void test_no_driver(void **data)
{
    struct err err = ERR_INIT;
    struct device *dev = NULL;

    (void)data;
    assert_int_equal(cuda_device_open_with("no-such-libcuda.so", 0, &dev, &err), -1);
    assert_int_equal(err.kind, ERR_MISSING);
    assert_non_null(strstr(err.text, "no CUDA driver: no-such-libcuda.so"));
}

static void test_a_library_that_is_no_driver(void **data)
{
    struct err err = ERR_INIT;
    struct device *dev = NULL;

    (void)data;
    assert_int_equal(cuda_device_open_with("libc.so.6", 0, &dev, &err), -1);
    assert_int_equal(err.kind, ERR_MISSING);
    assert_non_null(strstr(err.text, "has no cuInit"));
}

static void test_driver_refuses(void **data)
{
    struct fixture *f = *data;

    fail_call(f, "cuInit", 34);
    assert_open_fails(ERR_MISSING, "cuInit: CUDA_ERROR_STUB_LIBRARY 34");
    fail_call(f, "cuInit", 999);
    assert_open_fails(ERR_SYSTEM, "cuInit: CUDA_ERROR_UNKNOWN");
    fail_call(f, "cuDevicePrimaryCtxRetain", 2);
    assert_open_fails(ERR_SYSTEM, "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY");
    fail_call(f, "cuStreamCreate", 2);
    assert_open_fails(ERR_SYSTEM, "cuStreamCreate");
    assert_int_equal(f->state->contexts, 0);
}

static void test_old_driver(void **data)
{
    struct fixture *f = *data;

    f->state->driver_version = 12020;
    assert_open_fails(ERR_MISSING, "CUDA is 12.2, 12.4 or newer is needed");
}

static void test_no_device_and_out_of_range(void **data)
{
    struct fixture *f = *data;
    struct err err = ERR_INIT;
    struct device *dev = NULL;

    assert_int_equal(cuda_device_open_with(FAKE, 2, &dev, &err), -1);
    assert_int_equal(err.kind, ERR_MISSING);
    assert_string_equal(err.text, "no CUDA device 2: this machine has 2, cuda:0 to cuda:1");
    f->state->device_count = 0;
    assert_open_fails(ERR_MISSING, "CUDA_ERROR_NO_DEVICE");
}

static void test_info(void **data)
{
    struct device *dev = open_fake();
    const struct device_info *i = device_info(dev);
    struct device_info infos[4];
    struct err why = ERR_INIT;

    (void)data;
    assert_string_equal(i->spec, "cuda:0");
    assert_string_equal(i->name, "Fake GB10");
    assert_string_equal(i->uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    assert_int_equal(i->cc_major, 12);
    assert_int_equal(i->sm_count, 48);
    assert_int_equal(i->limits.shared_per_block, 101376);
    assert_non_null(strstr(i->driver, "CUDA 13.0"));
    assert_int_equal(cuda_device_enumerate_with(FAKE, infos, 4, &why), 2);
    assert_string_equal(infos[1].spec, "cuda:1");
    device_close(dev);
}

static void test_close_releases(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();

    device_close(dev);
    assert_int_equal(f->state->contexts, 0);
    assert_int_equal(f->state->streams, 0);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void test_memory(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct err err = ERR_INIT;
    uint32_t in[4] = {1, 2, 3, 4}, out[4] = {0};
    dev_ptr a = 0, b = 0;

    assert_int_equal(device_alloc(dev, sizeof in, "a", &a, &err), 0);
    assert_int_equal(device_alloc(dev, 0, "empty", &b, &err), 0);
    assert_true(b != 0);
    device_free(dev, b);
    assert_int_equal(device_alloc(dev, sizeof in, "b", &b, &err), 0);
    assert_int_equal(device_upload(dev, a, in, sizeof in, &err), 0);
    assert_int_equal(device_copy(dev, b, a, sizeof in, &err), 0);
    assert_int_equal(device_fill32(dev, b, 9, 1, &err), 0);
    assert_int_equal(device_download(dev, out, b, sizeof out, &err), 0);
    assert_int_equal(out[0], 9);
    assert_int_equal(out[3], 4);
    device_free(dev, a);
    device_free(dev, b);
    assert_int_equal(f->state->allocations, 0);
    fail_call(f, "cuMemAlloc_v2", 2);
    assert_int_equal(device_alloc(dev, 100, "state", &a, &err), -1);
    assert_string_equal(err.text, "state: 100 bytes: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY 2");
    assert_int_equal(err.kind, ERR_SYSTEM);
    device_close(dev);
}

/* --- modules ---------------------------------------------------------------------------------- */

static void test_kernel(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct module *m = load(f, dev);
    struct kernel *k = find(m, "add"), *missing = NULL;
    const char *const *entries = module_entries(m);
    struct err err = ERR_INIT;

    assert_string_equal(entries[0], "add");
    assert_null(entries[3]);
    assert_int_equal(k->nparams, 3);
    assert_int_equal(k->param_size[0], 8);
    assert_int_equal(k->param_size[2], 4);
    assert_string_equal(k->param_kind, "???");
    assert_int_equal(k->registers, 32);
    assert_int_equal(k->static_shared, 1024);
    assert_int_equal(k->local_bytes, 16);
    assert_int_equal(k->max_threads, 512);
    assert_ptr_equal(find(m, "add"), k);
    assert_int_equal(module_kernel(m, "absent", &missing, &err), -1);
    assert_int_equal(err.kind, ERR_MISSING);
    assert_non_null(strstr(err.text, f->path));
    assert_non_null(strstr(err.text, "has no entry absent"));
    assert_int_equal(module_kernel(m, "by_value", &missing, &err), -1);
    assert_non_null(strstr(err.text, "a struct by value"));
    module_unload(m);
    assert_int_equal(f->state->modules, 0);
    device_close(dev);
}

static void assert_load_fails(struct fixture *f, int result, enum err_kind kind, const char *text)
{
    struct device *dev = open_fake();
    struct err err = ERR_INIT;
    struct module *m = NULL;

    fail_call(f, "cuModuleLoadDataEx", result);
    assert_int_equal(module_load(dev, f->path, &m, &err), -1);
    assert_null(m);
    if (err.kind != kind || !strstr(err.text, text))
        fail_msg("got %s: %s, expected %s: ...%s...", err_kind_name(err.kind), err.text,
                 err_kind_name(kind), text);
    f->state->fail[0].symbol = NULL;
    device_close(dev);
}

static void test_load_failures_say_what_to_do(void **data)
{
    struct fixture *f = *data;

    assert_load_fails(f, 209, ERR_MISSING, "has compute capability 12.1");
    assert_load_fails(f, 209, ERR_MISSING, "build for sm_121");
    f->state->jit_log = "\nptxas application ptx input, line 7; fatal: syntax error\nmore\n";
    assert_load_fails(f, 218, ERR_INPUT,
                      "CUDA_ERROR_INVALID_PTX 218: ptxas application ptx input, "
                      "line 7; fatal: syntax error");
    assert_load_fails(f, 222, ERR_MISSING, "newer than this driver");
    assert_load_fails(f, 200, ERR_INPUT, "not a cubin, fatbin or PTX file");
    assert_load_fails(f, 2, ERR_SYSTEM, "CUDA_ERROR_OUT_OF_MEMORY");
}

/* --- launches --------------------------------------------------------------------------------- */

static void init_add(struct launch *l, struct kernel *k)
{
    launch_init(l, k);
    launch_grid(l, 7, 2, 1);
    launch_block(l, 128, 1, 1);
    launch_ptr(l, UINT64_C(0x123456789abcdef0));
    launch_u32(l, 42);
    launch_f32(l, 1.5f);
}

static void test_launch_passes_everything(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct module *m = load(f, dev);
    struct err err = ERR_INIT;
    struct launch l;
    uint64_t ptr;
    uint32_t n;
    float x;

    init_add(&l, find(m, "add"));
    launch_shared(&l, 1000);
    assert_int_equal(launch_submit(&l, &err), 0);
    assert_string_equal(f->state->last.entry, "add");
    assert_int_equal(f->state->last.grid[0], 7);
    assert_int_equal(f->state->last.grid[1], 2);
    assert_int_equal(f->state->last.block[0], 128);
    assert_int_equal(f->state->last.shared, 1000);
    memcpy(&ptr, f->state->last.param[0], 8);
    memcpy(&n, f->state->last.param[1], 4);
    memcpy(&x, f->state->last.param[2], 4);
    assert_true(ptr == UINT64_C(0x123456789abcdef0));
    assert_int_equal(n, 42);
    assert_true(x == 1.5f);
    assert_int_equal(f->state->dynamic_allowed, 0); /* no opt-in where none is needed */
    module_unload(m);
    device_close(dev);
}

static void test_shared_opt_in(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct module *m = load(f, dev);
    struct err err = ERR_INIT;
    struct launch l;

    init_add(&l, find(m, "add"));
    launch_shared(&l, 48 * 1024 - 1024);
    assert_int_equal(launch_submit(&l, &err), 0);
    assert_int_equal(f->state->dynamic_allowed, 0);
    launch_shared(&l, 65536);
    assert_int_equal(launch_submit(&l, &err), 0);
    assert_int_equal(f->state->dynamic_allowed, 65536);
    fail_call(f, "cuFuncSetAttribute", 1);
    assert_int_equal(launch_submit(&l, &err), 0); /* allowed already */
    launch_shared(&l, 65537);
    assert_int_equal(launch_submit(&l, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    assert_string_equal(err.text,
                        "kernel add: 65537 bytes of dynamic shared memory: "
                        "cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE (invalid argument)");
    module_unload(m);
    device_close(dev);
}

static void test_launch_refused_by_the_driver(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct module *m = load(f, dev);
    struct err err = ERR_INIT;
    struct launch l;

    init_add(&l, find(m, "add"));
    fail_call(f, "cuLaunchKernel", 1);
    assert_int_equal(launch_submit(&l, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    assert_string_equal(err.text,
                        "kernel add: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (invalid argument)");
    fail_call(f, "cuLaunchKernel", 701);
    assert_int_equal(launch_submit(&l, &err), -1);
    assert_int_equal(err.kind, ERR_REFUSED);
    fail_call(f, "cuLaunchKernel", 719);
    assert_int_equal(launch_submit(&l, &err), -1);
    assert_int_equal(err.kind, ERR_FAULT);
    module_unload(m);
    device_close(dev);
}

static void test_a_fault_is_the_kernels_and_later_calls_say_so(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct module *m = load(f, dev);
    struct err err = ERR_INIT;
    struct launch l;
    dev_ptr p = 0;

    launch_init(&l, find(m, "crash"));
    assert_int_equal(launch_submit(&l, &err), 0);
    assert_int_equal(device_sync(dev, &err), -1);
    assert_int_equal(err.kind, ERR_FAULT);
    assert_string_equal(err.text, "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal "
                                  "memory access was encountered)");
    assert_int_equal(device_alloc(dev, 16, "next", &p, &err), -1);
    assert_int_equal(err.kind, ERR_SYSTEM);
    assert_non_null(strstr(err.text, "cuda:0 was lost to an earlier fault"));
    module_unload(m);
    device_close(dev);
    assert_int_equal(f->state->contexts, 0);
}

/* --- events and graphs ------------------------------------------------------------------------ */

static void test_events(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct err err = ERR_INIT;
    struct event *a = NULL, *b = NULL;
    double ms = 0;

    assert_int_equal(event_create(dev, &a, &err), 0);
    assert_int_equal(event_create(dev, &b, &err), 0);
    assert_int_equal(event_record(a, &err), 0);
    assert_int_equal(event_record(b, &err), 0);
    assert_int_equal(event_elapsed_ms(a, b, &ms, &err), 0);
    assert_true(ms == 1.5);
    fail_call(f, "cuEventSynchronize", 700);
    assert_int_equal(event_elapsed_ms(a, b, &ms, &err), -1);
    assert_true(ms != ms); /* never a time of a run that failed */
    assert_int_equal(err.kind, ERR_FAULT);
    event_free(a);
    event_free(b);
    device_close(dev);
}

static void test_graphs(void **data)
{
    struct fixture *f = *data;
    struct device *dev = open_fake();
    struct err err = ERR_INIT;
    struct graph *g = NULL;
    char byte = 0;
    dev_ptr p = 0;

    assert_int_equal(device_alloc(dev, 1, "p", &p, &err), 0);
    assert_int_equal(graph_end(dev, &g, &err), -1);
    assert_string_equal(err.text, "no graph is being recorded");
    assert_int_equal(graph_begin(dev, &err), 0);
    assert_int_equal(graph_begin(dev, &err), -1);
    assert_int_equal(device_upload(dev, p, &byte, 1, &err), -1);
    assert_string_equal(err.text, "upload while a graph is being recorded");
    assert_int_equal(device_sync(dev, &err), -1);
    assert_int_equal(graph_end(dev, &g, &err), 0);
    assert_int_equal(graph_launch(g, &err), 0);
    assert_int_equal(f->state->graph_launches, 1);
    graph_free(g);
    assert_int_equal(f->state->graphs, 0);
    assert_int_equal(graph_begin(dev, &err), 0);
    fail_call(f, "cuStreamEndCapture", 901);
    assert_int_equal(graph_end(dev, &g, &err), -1);
    assert_null(g);
    assert_int_equal(device_sync(dev, &err), 0); /* no longer recording */
    f->state->fail[0].symbol = NULL;
    assert_int_equal(graph_begin(dev, &err), 0);
    fail_call(f, "cuGraphInstantiateWithFlags", 2);
    assert_int_equal(graph_end(dev, &g, &err), -1);
    assert_int_equal(f->state->graphs, 0);
    device_free(dev, p);
    device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_driver, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_library_that_is_no_driver, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_driver_refuses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_old_driver, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_device_and_out_of_range, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_info, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_close_releases, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kernel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_load_failures_say_what_to_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_launch_passes_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_opt_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_launch_refused_by_the_driver, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_fault_is_the_kernels_and_later_calls_say_so, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_graphs, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("cuda device", tests, NULL, NULL);
}
