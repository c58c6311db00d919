/* Files, folders, and the parallel for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/parallel.h"
#include "tests/scratch.h"

static int open_scratch(void **state)
{
    struct scratch *s = calloc(1, sizeof *s);

    scratch_open(s);
    *state = s;
    return 0;
}

static int close_scratch(void **state)
{
    scratch_close(*state);
    free(*state);
    return 0;
}

static void assert_holds(const char *path, const char *want)
{
    struct err err = ERR_INIT;
    struct text t;

    text_init(&t);
    assert_int_equal(file_read(path, 1000, &t, &err), 0);
    assert_string_equal(t.data, want);
    text_release(&t);
}

static void read_refuses_what_is_no_file(void **state)
{
    struct scratch *s = *state;
    struct err err = ERR_INIT;
    struct text t;
    char path[300];

    text_init(&t);
    assert_int_equal(file_read(s->dir, 10, &t, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_non_null(strstr(err.text, "directory"));
    assert_int_equal(file_read(scratch_path(s, "absent", path, sizeof path), 10, &t, &err), -1);
    assert_non_null(strstr(err.text, path));
    scratch_write(scratch_path(s, "eleven", path, sizeof path), "12345678901");
    assert_int_equal(file_read(path, 10, &t, &err), -1);
    assert_non_null(strstr(err.text, "limit of 10"));
    text_clear(&t);
    assert_int_equal(file_read(path, 11, &t, &err), 0);
    assert_int_equal(t.len, 11);
    text_release(&t);
}

static void replace_leaves_one_whole_file(void **state)
{
    struct scratch *s = *state;
    struct err err = ERR_INIT;
    char path[300];

    scratch_path(s, "replaced", path, sizeof path);
    assert_int_equal(file_replace(path, "old and longer", 14, &err), 0);
    assert_int_equal(file_replace(path, "new", 3, &err), 0);
    assert_holds(path, "new");
    scratch_path(s, "no/such/folder", path, sizeof path);
    assert_int_equal(file_replace(path, "new", 3, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    /* A folder cannot be replaced by a file, and no temporary file is left beside it. */
    scratch_path(s, "folder", path, sizeof path);
    assert_int_equal(dir_make(path, &err), 0);
    assert_int_equal(file_replace(path, "new", 3, &err), -1);
    snprintf(path, sizeof path, "%s/folder.tmp.%ld", s->dir, (long)getpid());
    assert_false(file_exists(path));
}

static void assert_refused(const char *path, const char *why)
{
    struct err err = ERR_INIT;

    assert_int_equal(file_writable(path, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    if (!strstr(err.text, path) || !strstr(err.text, why))
        fail_msg("\"%s\" does not say %s: %s", err.text, path, why);
    assert_int_equal(file_replace(path, "new", 3, &err), -1); /* the two agree */
    assert_int_equal(err.kind, ERR_INPUT);
}

static void writable_is_what_can_be_replaced(void **state)
{
    struct scratch *s = *state;
    struct err err = ERR_INIT;
    char path[300];

    assert_refused("/dev/null", "is not a regular file");
    assert_refused("/dev/full", "is not a regular file");
    assert_refused(s->dir, "is a directory");
    assert_refused("/proc/file", "cannot create");
    assert_int_equal(mkfifo(scratch_path(s, "pipe", path, sizeof path), 0600), 0);
    assert_refused(path, "is not a regular file");
    scratch_path(s, "stream", path, sizeof path);
    assert_int_equal(symlink("/proc/self/fd/0", path), 0); /* whatever it leads to */
    assert_refused(path, "is not a regular file");
    /* In a folder that is made; no file is. */
    scratch_path(s, "far/away/file", path, sizeof path);
    assert_int_equal(file_writable(path, &err), 0);
    assert_int_equal(rmdir(scratch_path(s, "far/away", path, sizeof path)), 0);
    scratch_path(s, "far/file/", path, sizeof path); /* a folder is made of it */
    assert_refused(path, "is a directory");
    /* What is there stays as it is. */
    scratch_write(scratch_path(s, "kept", path, sizeof path), "text");
    assert_int_equal(file_writable(path, &err), 0);
    assert_holds(path, "text");
}

static void one_file_has_many_names(void **state)
{
    struct scratch *s = *state;
    char file[300], again[300], link[300], other[300];

    scratch_write(scratch_path(s, "file", file, sizeof file), "");
    scratch_path(s, "./file", again, sizeof again);
    scratch_path(s, "name", link, sizeof link);
    scratch_path(s, "other", other, sizeof other);
    assert_int_equal(symlink("file", link), 0);
    assert_true(file_same(file, file) && file_same(file, again) && file_same(link, again));
    assert_false(file_same(file, other));
    unlink(link);
    unlink(file); /* what is not there yet has names, too */
    assert_true(file_same(file, file) && file_same(again, file));
    assert_false(file_same(file, other));
    assert_false(file_same("file", file));
    assert_true(file_same("no/file", "no/file"));
}

static void folders_that_take_files(void **state)
{
    struct scratch *s = *state;
    struct err err = ERR_INIT;
    char path[300];

    assert_int_equal(dir_writable(scratch_path(s, "deep/folder", path, sizeof path), &err), 0);
    assert_int_equal(rmdir(path), 0); /* nothing is left in it */
    assert_int_equal(dir_writable("/proc", &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_non_null(strstr(err.text, "/proc"));
    assert_int_equal(dir_writable("/dev/null", &err), -1);
}

static void append_adds_at_the_end(void **state)
{
    struct scratch *s = *state;
    struct err err = ERR_INIT;
    char path[300];

    scratch_path(s, "log", path, sizeof path);
    assert_int_equal(file_append_sync(path, "one\n", 4, &err), 0);
    assert_int_equal(file_append_sync(path, "two\n", 4, &err), 0);
    assert_holds(path, "one\ntwo\n");
    assert_int_equal(file_append_sync("/dev/full", "x", 1, &err), -1);
    assert_int_equal(err.kind, ERR_SYSTEM);
}

static int collect(const char *name, void *ctx, struct err *err)
{
    struct text *t = ctx;

    if (strcmp(name, "stop") == 0)
        return err_set(err, ERR_INPUT, "stopped");
    text_addf(t, "%s ", name);
    return 0;
}

static void folders_are_made_and_listed_in_order(void **state)
{
    struct scratch *s = *state;
    struct err err = ERR_INIT;
    struct text seen;
    char path[300];

    text_init(&seen);
    assert_int_equal(dir_make(scratch_path(s, "a/b//c", path, sizeof path), &err), 0);
    assert_int_equal(dir_make(path, &err), 0);
    scratch_write(scratch_path(s, "a/zz", path, sizeof path), "");
    scratch_write(scratch_path(s, "a/Z", path, sizeof path), "");
    scratch_write(scratch_path(s, "a/0", path, sizeof path), "");
    assert_int_equal(dir_each(scratch_path(s, "a", path, sizeof path), collect, &seen, &err), 0);
    assert_string_equal(seen.data, "0 Z zz "); /* files only: not the folder b */
    text_clear(&seen);
    assert_int_equal(symlink("nowhere", scratch_path(s, "a/link", path, sizeof path)), 0);
    assert_int_equal(dir_each(scratch_path(s, "a", path, sizeof path), collect, &seen, &err), 0);
    assert_string_equal(seen.data,
                        "0 Z link zz "); /* whoever opens it will say that it is broken */
    scratch_write(scratch_path(s, "a/stop", path, sizeof path), "");
    assert_int_equal(dir_each(scratch_path(s, "a", path, sizeof path), collect, &seen, &err), -1);
    assert_int_equal(dir_make(scratch_path(s, "a/zz/x", path, sizeof path), &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_int_equal(dir_make("", &err), -1);
    assert_int_equal(dir_each(scratch_path(s, "none", path, sizeof path), collect, &seen, &err),
                     -1);
    text_release(&seen);
}

struct tally {
    atomic_uint ran[5000];
};

static void count_one(size_t i, void *ctx)
{
    struct tally *t = ctx;

    atomic_fetch_add(&t->ran[i], 1);
}

static void each_index_runs_once(void **state)
{
    static const unsigned workers[] = {0, 1, 2, 7, 64};

    (void)state;
    for (size_t w = 0; w < sizeof workers / sizeof *workers; w++) {
        struct tally *t = calloc(1, sizeof *t);

        parallel_for(4999, workers[w], count_one, t);
        for (size_t i = 0; i < 4999; i++)
            assert_int_equal(atomic_load(&t->ran[i]), 1);
        assert_int_equal(atomic_load(&t->ran[4999]), 0);
        parallel_for(0, workers[w], count_one, t);
        free(t);
    }
    assert_true(parallel_cpus() >= 1);
}

static void nest(size_t i, void *ctx)
{
    (void)i;
    parallel_for(100, 3, count_one, ctx);
}

static void loops_nest(void **state)
{
    struct tally *t = calloc(1, sizeof *t);

    (void)state;
    parallel_for(10, 4, nest, t);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(atomic_load(&t->ran[i]), 10);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_refuses_what_is_no_file),
        cmocka_unit_test(replace_leaves_one_whole_file),
        cmocka_unit_test(writable_is_what_can_be_replaced),
        cmocka_unit_test(one_file_has_many_names),
        cmocka_unit_test(folders_that_take_files),
        cmocka_unit_test(append_adds_at_the_end),
        cmocka_unit_test(folders_are_made_and_listed_in_order),
        cmocka_unit_test(each_index_runs_once),
        cmocka_unit_test(loops_nest),
    };

    return cmocka_run_group_tests(tests, open_scratch, close_scratch);
}
