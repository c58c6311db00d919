/* Modules: what the pre-pass makes of a source, signatures, foreign folders, the cache, the same
   bytes and the same bits. */
#include "cpu_run.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/shell.h"
#include "device/kernel_set.h"
#include "scratch.h"

static const struct kernel *kernel_of(struct cpu_run *r, const char *entry)
{
    struct kernel *k;

    MUST(r, module_kernel(r->module, entry, &k, &r->err));
    return k;
}

static void entries_and_signatures(void **state)
{
    const struct kernel *k;
    struct kernel *none;
    struct cpu_run r;
    unsigned n = 0;

    (void)state;
    cpu_run_open(&r, "cpu_language");
    for (const char *const *e = module_entries(r.module); *e; e++)
        n++;
    assert_int_equal(n, 7);
    k = kernel_of(&r, "signature");
    assert_int_equal(k->nparams, 8);
    assert_string_equal(k->param_kind, "ppuifUd?");
    assert_int_equal(k->param_size[7], 8);
    assert_int_equal(kernel_of(&r, "by_macro_add")->max_threads, 64);
    assert_int_equal(k->max_threads, 1024);
    assert_int_equal(kernel_of(&r, "fixed_shared")->static_shared, 416);
    assert_int_equal(k->static_shared, 0);
    assert_int_equal(kernel_of(&r, "_Z11cpp_linkagePf")->nparams, 1);
    assert_int_equal(module_kernel(r.module, "cpp_linkage", &none, &r.err), -1);
    assert_int_equal(r.err.kind, ERR_MISSING);
    assert_non_null(strstr(r.err.text, "cpu_language.so"));
    cpu_run_close(&r);
}

static void declarators_macros_and_namespaces(void **state)
{
    uint32_t out[64];
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    cpu_run_open(&r, "cpu_language");
    p = cpu_buffer_of(&r, "out", NULL, sizeof out);
    l = cpu_launch_of(&r, "in_namespace", 1, 64);
    launch_ptr(&l, p);
    cpu_submit(&r, &l);
    l = cpu_launch_of(&r, "by_macro_add", 1, 64);
    launch_ptr(&l, p);
    cpu_submit(&r, &l);
    cpu_read(&r, out, p, sizeof out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], 63 - i + 5 + 64 + 3);
    launch_block(&l, 65, 1, 1);
    assert_int_equal(launch_submit(&l, &r.err), -1);
    assert_non_null(strstr(r.err.text, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
    cpu_run_close(&r);
}

static void a_lambda_by_copy_sees_shared_memory(void **state)
{
    int out[32];
    struct cpu_run r;
    struct launch l;
    dev_ptr p;

    (void)state;
    cpu_run_open(&r, "cpu_lambda");
    l = cpu_launch_of(&r, "lambda", 1, 32);
    launch_shared(&l, 128);
    launch_ptr(&l, p = cpu_buffer_of(&r, "out", NULL, sizeof out));
    cpu_submit(&r, &l);
    cpu_read(&r, out, p, sizeof out);
    for (int i = 0; i < 32; i++)
        assert_int_equal(out[i], 11 * (31 - i));
    cpu_run_close(&r);
}

/* --- foreign folders -------------------------------------------------------------------------- */

struct folder {
    struct scratch scratch;
    struct device *device;
    struct err err;
};

static void folder_open(struct folder *f)
{
    char cache[300];

    memset(f, 0, sizeof *f);
    scratch_open(&f->scratch);
    snprintf(cache, sizeof cache, "%s/cache", f->scratch.dir);
    setenv("XDG_CACHE_HOME", cache, 1);
    snprintf(cache, sizeof cache, "%s/set", f->scratch.dir);
    assert_int_equal(mkdir(cache, 0777), 0);
    MUST(f, device_open("cpu", &f->device, &f->err));
}

static void folder_close(struct folder *f)
{
    device_close(f->device);
    unsetenv("XDG_CACHE_HOME");
    scratch_close(&f->scratch);
}

static void folder_write(struct folder *f, const char *name, const char *text)
{
    char path[400];

    snprintf(path, sizeof path, "%s/set/%s", f->scratch.dir, name);
    MUST(f, file_replace(path, text, strlen(text), &f->err));
}

static struct kernel_set *folder_set(struct folder *f)
{
    struct kernel_set *set;
    char path[400];

    snprintf(path, sizeof path, "%s/set", f->scratch.dir);
    MUST(f, kernel_set_open(f->device, path, &set, &f->err));
    return set;
}

/* Loaded to another place, without compiling: the source is gone by then. */
static void a_set_is_opened_again(void **state)
{
    struct folder f;
    struct kernel_set *first, *again;
    struct kernel *a, *b;
    char path[400];

    (void)state;
    folder_open(&f);
    folder_write(&f, "mine.cu", "extern \"C\" __global__ void stores(int *p) { *p = 7; }\n");
    first = folder_set(&f);
    MUST(&f, kernel_set_find(first, "mine", "stores", &a, &f.err));
    snprintf(path, sizeof path, "%s/set/mine.cu", f.scratch.dir);
    assert_int_equal(remove(path), 0);
    MUST(&f, kernel_set_open_again(first, &again, &f.err));
    MUST(&f, kernel_set_find(again, "mine", "stores", &b, &f.err));
    assert_ptr_not_equal(a, b);
    assert_memory_equal(&a->content, &b->content, sizeof a->content);
    assert_int_equal(kernel_set_find(again, "mine", "absent", &b, &f.err), -1);
    assert_int_equal(f.err.kind, ERR_MISSING);
    kernel_set_close(again);
    kernel_set_close(first);
    folder_close(&f);
}

/* The value that `entry` of `module` stores. */
static int folder_run(struct folder *f, const char *module, const char *entry)
{
    struct kernel_set *set = folder_set(f);
    struct kernel *k;
    struct launch l;
    dev_ptr p;
    int value;

    MUST(f, kernel_set_find(set, module, entry, &k, &f->err));
    MUST(f, device_alloc(f->device, sizeof value, "value", &p, &f->err));
    launch_init(&l, k);
    launch_ptr(&l, p);
    MUST(f, launch_submit(&l, &f->err));
    MUST(f, device_download(f->device, &value, p, sizeof value, &f->err));
    device_free(f->device, p);
    kernel_set_close(set);
    return value;
}

static void expect_no_kernel(struct folder *f, const char *module, const char *entry,
                             enum err_kind kind, const char *says)
{
    struct kernel_set *set = folder_set(f);
    struct kernel *k;

    f->err = (struct err)ERR_INIT;
    assert_int_equal(kernel_set_find(set, module, entry, &k, &f->err), -1);
    if (f->err.kind != kind || !strstr(f->err.text, says))
        fail_msg("%s: %s", err_kind_name(f->err.kind), f->err.text);
    kernel_set_close(set);
}

static void a_changed_header_compiles_again(void **state)
{
    struct folder f;

    (void)state;
    folder_open(&f);
    folder_write(&f, "value.cuh", "#define VALUE 1\n");
    folder_write(&f, "any name.cu",
                 "#include \"value.cuh\"\n"
                 "extern \"C\" __global__ void one(int *p) { *p = VALUE; }\n"
                 "extern \"C\" __global__ void two(int *p) { *p = 2 * VALUE; }\n");
    assert_int_equal(folder_run(&f, "elsewhere", "one"), 1);
    assert_int_equal(folder_run(&f, "elsewhere", "two"), 2);
    folder_write(&f, "value.cuh", "#define VALUE 7\n");
    assert_int_equal(folder_run(&f, "elsewhere", "two"), 14);
    folder_close(&f);
}

static void an_entry_in_two_files_needs_the_modules_name(void **state)
{
    struct folder f;
    struct kernel_set *set;
    struct kernel *k;
    char note[512];

    (void)state;
    folder_open(&f);
    folder_write(&f, "a.cu", "extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
    folder_write(&f, "b.cu", "extern \"C\" __global__ void k(int *p) { *p = 2; }\n");
    assert_int_equal(folder_run(&f, "b", "k"), 2);
    set = folder_set(&f);
    assert_false(kernel_set_note(set, note, sizeof note));
    MUST(&f, kernel_set_find(set, "b", "k", &k, &f.err));
    assert_true(kernel_set_note(set, note, sizeof note));
    assert_non_null(strstr(note, "kernel k is in both b.cu and a.cu: the one in b.cu counts"));
    MUST(&f, kernel_set_find(set, "b", "k", &k, &f.err));
    assert_false(kernel_set_note(set, note, sizeof note)); /* once */
    kernel_set_close(set);
    expect_no_kernel(&f, "c", "k", ERR_INPUT, "in both a.cu and b.cu");
    expect_no_kernel(&f, "c", "absent", ERR_MISSING, "kernel absent (module c) is in no file of");
    folder_close(&f);
}

static void a_source_that_does_not_compile_says_where(void **state)
{
    struct folder f;

    (void)state;
    folder_open(&f);
    folder_write(&f, "bad.cu", "extern \"C\" __global__ void k(int *p)\n{\n    *p = nowhere;\n}\n");
    expect_no_kernel(&f, "bad", "k", ERR_INPUT, "bad.cu:3");
    folder_write(&f, "bad.cu",
                 "extern \"C\" __global__ void k(int *p)\n"
                 "{\n    asm volatile(\"wgmma.fence.sync.aligned;\");\n}\n");
    expect_no_kernel(&f, "bad", "k", ERR_INPUT, "wgmma_fence_sync_aligned");
    folder_close(&f);
}

static void a_folder_without_kernels_is_refused(void **state)
{
    struct kernel_set *set;
    struct folder f;

    (void)state;
    folder_open(&f);
    assert_int_equal(kernel_set_open(f.device, f.scratch.dir, &set, &f.err), -1);
    assert_int_equal(f.err.kind, ERR_INPUT);
    assert_non_null(strstr(f.err.text, "takes .cu and .so"));
    assert_int_equal(kernel_set_open(f.device, "/nonexistent", &set, &f.err), -1);
    assert_int_equal(f.err.kind, ERR_INPUT);
    folder_close(&f);
}

static void what_is_no_module_is_refused(void **state)
{
    struct module *m;
    struct folder f;
    char path[400];

    (void)state;
    folder_open(&f);
    folder_write(&f, "text.so", "not an object\n");
    snprintf(path, sizeof path, "%s/set/text.so", f.scratch.dir);
    assert_int_equal(module_load(f.device, path, &m, &f.err), -1);
    assert_int_equal(f.err.kind, ERR_INPUT);
    assert_int_equal(module_load(f.device, "build/tests/nowhere.so", &m, &f.err), -1);
    assert_int_equal(f.err.kind, ERR_INPUT);
    folder_close(&f);
}

static void expect_no_set(struct folder *f, const char *says)
{
    struct kernel_set *set;
    char path[400];

    snprintf(path, sizeof path, "%s/set", f->scratch.dir);
    assert_int_equal(kernel_set_open(f->device, path, &set, &f->err), -1);
    assert_int_equal(f->err.kind, ERR_INPUT);
    assert_non_null(strstr(f->err.text, says));
    assert_non_null(strstr(f->err.text, "build-cpu-module"));
    assert_null(strchr(f->err.text, '\n'));
}

/* A module that was cut short anywhere, too: the loader would take a bus error for the missing
   pages. */
static void a_set_with_a_file_that_is_no_module_is_refused(void **state)
{
    struct text whole;
    struct folder f;
    char path[400];

    (void)state;
    folder_open(&f);
    folder_write(&f, "good.cu", "extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
    folder_write(&f, "bad.so", "not an object\n");
    expect_no_set(&f, "bad.so: not a shared object");
    folder_write(&f, "bad.so", "");
    expect_no_set(&f, "bad.so: not a shared object");
    text_init(&whole);
    MUST(&f, file_read("build/tests/cpu/cpu_math.so", (size_t)1 << 26, &whole, &f.err));
    snprintf(path, sizeof path, "%s/set/bad.so", f.scratch.dir);
    for (unsigned part = 1; part < 16; part++) {
        MUST(&f, file_replace(path, whole.data, whole.len * part / 16, &f.err));
        expect_no_set(&f, "bad.so: cut short");
    }
    MUST(&f, file_replace(path, whole.data, whole.len - 1, &f.err));
    expect_no_set(&f, "bad.so: cut short");
    MUST(&f, file_replace(path, whole.data, whole.len, &f.err));
    kernel_set_close(folder_set(&f));
    text_release(&whole);
    folder_close(&f);
}

/* As ptxas has it: 48 KiB, whatever a launch may have in all. */
static void static_shared_memory_is_limited(void **state)
{
    struct folder f;

    (void)state;
    folder_open(&f);
    folder_write(&f, "fits.cu",
                 "extern \"C\" __global__ void k(int *p)\n"
                 "{ __shared__ int x[12288]; x[0] = 3; *p = x[0]; }\n");
    assert_int_equal(folder_run(&f, "fits", "k"), 3);
    folder_write(&f, "over.cu",
                 "extern \"C\" __global__ void big(int *p)\n"
                 "{ __shared__ int x[12288], y; x[0] = y = 3; *p = x[0] + y; }\n");
    expect_no_kernel(&f, "over", "big", ERR_INPUT, "over.cu");
    expect_no_kernel(&f, "over", "big", ERR_INPUT,
                     "kernel big has 49156 bytes of static shared memory");
    folder_close(&f);
}

/* --- the same bytes, the same bits ------------------------------------------------------------ */

static int build(const char *compiler, const char *opt, const char *name, const char *out,
                 struct err *err)
{
    char env[] = "env", script[] = "scripts/build-cpu-module";
    char cxx[64], o[64], source[100], target[400];
    char *argv[] = {env, cxx, o, script, source, target, NULL};
    struct shell_run how = {.limit = 1000, .with_stderr = 1};
    struct text said;
    int status;

    snprintf(cxx, sizeof cxx, "CXX=%s", compiler);
    snprintf(o, sizeof o, "OPT=%s", opt);
    snprintf(source, sizeof source, "tests/cpu/%s.cu", name);
    snprintf(target, sizeof target, "%s", out);
    text_init(&said);
    if (shell_capture(argv, &how, &said, &status, err) < 0)
        status = -1;
    else if (status)
        print_message("%s\n", said.data);
    text_release(&said);
    return status;
}

static void a_build_repeats_byte_for_byte(void **state)
{
    struct hash a, b;
    struct folder f;
    char one[400], two[400];

    (void)state;
    folder_open(&f);
    snprintf(one, sizeof one, "%s/one.so", f.scratch.dir);
    snprintf(two, sizeof two, "%s/set/two.so", f.scratch.dir);
    assert_int_equal(build("g++", "-O2", "cpu_math", one, &f.err), 0);
    assert_int_equal(build("g++", "-O2", "cpu_math", two, &f.err), 0);
    MUST(&f, hash_file(one, &a, &f.err));
    MUST(&f, hash_file(two, &b, &f.err));
    assert_true(hash_equal(a, b));
    folder_close(&f);
}

enum { SAMPLES = 4096, FUNCTIONS = 21 };

static void run_math(struct folder *f, const char *path, float *y)
{
    static float x[SAMPLES];
    struct module *m;
    struct kernel *k;
    dev_ptr px, py;

    for (int i = 0; i < SAMPLES; i++)
        x[i] = (float)(i - SAMPLES / 3) * 0.037f;
    MUST(f, module_load(f->device, path, &m, &f->err));
    MUST(f, module_kernel(m, "math", &k, &f->err));
    MUST(f, device_alloc(f->device, sizeof x, "x", &px, &f->err));
    MUST(f, device_alloc(f->device, sizeof x, "y", &py, &f->err));
    MUST(f, device_upload(f->device, px, x, sizeof x, &f->err));
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        struct launch l;

        launch_init(&l, k);
        launch_grid(&l, SAMPLES / 128, 1, 1);
        launch_block(&l, 128, 1, 1);
        launch_u32(&l, i);
        launch_ptr(&l, px);
        launch_ptr(&l, py);
        launch_u32(&l, SAMPLES);
        MUST(f, launch_submit(&l, &f->err));
        MUST(f, device_download(f->device, y + i * SAMPLES, py, sizeof x, &f->err));
    }
    module_unload(m);
    device_free(f->device, px);
    device_free(f->device, py);
}

static void compilers_agree_bit_for_bit(void **state)
{
    static const char *const how[][2] = {{"g++", "-O3"}, {"g++", "-O1"}, {"clang++", "-O3"}};
    static float first[FUNCTIONS * SAMPLES], y[FUNCTIONS * SAMPLES];
    struct folder f;
    char path[400];

    (void)state;
    folder_open(&f);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        snprintf(path, sizeof path, "%s/m%zu.so", f.scratch.dir, i);
        if (i == 2 && system("command -v clang++ >/dev/null") != 0) {
            print_message("  clang++ is not there: compared g++ at two levels only\n");
            break;
        }
        assert_int_equal(build(how[i][0], how[i][1], "cpu_math", path, &f.err), 0);
        run_math(&f, path, i ? y : first);
        if (i)
            assert_memory_equal(first, y, sizeof y);
    }
    folder_close(&f);
}

/* Each compiler calls the sanitizers' functions that it likes; a module brings those it needs. */
static void modules_of_clang_load(void **state)
{
    static const char *const name[] = {"cpu_faults", "cpu_sync"};
    struct folder f;
    char path[400];

    (void)state;
    if (system("command -v clang++ >/dev/null") != 0)
        skip();
    folder_open(&f);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        struct module *m;

        snprintf(path, sizeof path, "%s/%s.so", f.scratch.dir, name[i]);
        assert_int_equal(build("clang++", "-O1", name[i], path, &f.err), 0);
        MUST(&f, module_load(f.device, path, &m, &f.err));
        module_unload(m);
    }
    folder_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_and_signatures),
        cmocka_unit_test(declarators_macros_and_namespaces),
        cmocka_unit_test(a_lambda_by_copy_sees_shared_memory),
        cmocka_unit_test(a_changed_header_compiles_again),
        cmocka_unit_test(an_entry_in_two_files_needs_the_modules_name),
        cmocka_unit_test(a_source_that_does_not_compile_says_where),
        cmocka_unit_test(a_folder_without_kernels_is_refused),
        cmocka_unit_test(what_is_no_module_is_refused),
        cmocka_unit_test(a_set_with_a_file_that_is_no_module_is_refused),
        cmocka_unit_test(static_shared_memory_is_limited),
        cmocka_unit_test(a_build_repeats_byte_for_byte),
        cmocka_unit_test(compilers_agree_bit_for_bit),
        cmocka_unit_test(a_set_is_opened_again),
        cmocka_unit_test(modules_of_clang_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
