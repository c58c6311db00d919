/* Goldens: expectations, the cache file and every way it can be damaged, the .npy export. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "measure/golden_cache.h"
#include "tests/emulated.h"
#include "toy_problem.h"

#include <cmocka.h> /* last: its macro expect_value would hide golden.h's function */

static const char dir[] = "build/tmp/golden";

struct fixture {
    struct problem p;
    struct golden g;
    char path[4096];
    struct text bytes; /* of the stored file */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err = ERR_INIT;
    toy_problem_init(&f->p, "toy");
    toy_golden_init(&f->g, &f->p);
    golden_path(dir, &f->p, f->path, sizeof(f->path));
    unlink(f->path);
    text_init(&f->bytes);
    if (golden_store(dir, &f->p, &f->g, &err) < 0 ||
        file_read(f->path, 1 << 20, &f->bytes, &err) < 0)
        return -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    golden_release(&f->g);
    problem_release(&f->p);
    text_release(&f->bytes);
    free(f);
    return 0;
}

static bool is_untouched(const struct golden *g, const struct problem *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        bool scratch = p->buffer[i].role == ROLE_SCRATCH;
        if (g->of[i].value != NULL || (g->of[i].expect != NULL) != scratch)
            return false;
    }
    return true;
}

static void what_was_stored_is_loaded(void **state)
{
    struct fixture *f = *state;
    struct golden g;
    struct err err = ERR_INIT;
    golden_init(&g, &f->p);
    assert_int_equal(golden_load(dir, &f->p, &g, &err), 0);
    for (unsigned b = 0; b < f->p.count; b++) {
        for (size_t i = 0; i < TOY_N; i++) {
            enum expect what = expectation_at(&f->g.of[b], i);
            assert_int_equal(expectation_at(&g.of[b], i), what);
            if (what == EXPECT_VALUE || what == EXPECT_EXACT)
                assert_true(g.of[b].value[i] == f->g.of[b].value[i]);
            if (what != EXPECT_VALUE)
                continue;
            assert_true(g.of[b].worst[i] == 0.5f);
            assert_true(g.of[b].likely[i] == 0.25f);
        }
    }
    assert_int_equal(golden_values(&g, &f->p), 30 + 20);
    assert_null(g.of[TOY_X].expect);
    golden_release(&g);
}

static void a_missing_file_is_no_error(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct golden g;
    golden_init(&g, &f->p);
    unlink(f->path);
    assert_int_equal(golden_load(dir, &f->p, &g, &err), 1);
    assert_int_equal(golden_load("build/tmp/no-such-folder", &f->p, &g, &err), 1);
    golden_release(&g);
}

static void expect_damage(struct fixture *f, const char *bytes, size_t n)
{
    struct err err = ERR_INIT;
    struct golden g;
    assert_int_equal(file_replace(f->path, bytes, n, &err), 0);
    golden_init(&g, &f->p);
    assert_int_equal(golden_load(dir, &f->p, &g, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_non_null(strstr(err.text, f->path));
    assert_non_null(strstr(err.text, "delete the file"));
    assert_true(is_untouched(&g, &f->p));
    golden_release(&g);
}

/* Cut after every single byte: so in every section, and between any two. */
static void every_truncation_is_seen(void **state)
{
    struct fixture *f = *state;
    for (size_t n = 0; n < f->bytes.len; n++)
        expect_damage(f, f->bytes.data, n);
}

static int load_result(const struct problem *p)
{
    struct golden g;
    struct err err = ERR_INIT;
    golden_init(&g, p);
    int rc = golden_load(dir, p, &g, &err);
    if (rc != 0)
        assert_true(is_untouched(&g, p));
    golden_release(&g);
    return rc;
}

/* In the header's format and key a flip makes the file stale; anywhere else it is damage. */
static void every_flipped_bit_is_seen(void **state)
{
    struct fixture *f = *state;
    size_t stale = 0;
    for (size_t i = 0; i < f->bytes.len; i++) {
        struct err err = ERR_INIT;
        f->bytes.data[i] = (char)(f->bytes.data[i] ^ (1 << i % 8));
        assert_int_equal(file_replace(f->path, f->bytes.data, f->bytes.len, &err), 0);
        if (load_result(&f->p) == 1)
            stale++;
        else
            expect_damage(f, f->bytes.data, f->bytes.len);
        f->bytes.data[i] = (char)(f->bytes.data[i] ^ (1 << i % 8));
    }
    assert_int_equal(stale, sizeof(uint32_t) + sizeof(struct hash));
}

static void bytes_behind_the_end_are_seen(void **state)
{
    struct fixture *f = *state;
    text_add_bytes(&f->bytes, "x", 1);
    expect_damage(f, f->bytes.data, f->bytes.len);
}

/* Another case has its own file; other inputs or another version of the reference make this one
 * stale. */
static void a_stale_golden_is_as_good_as_absent(void **state)
{
    struct fixture *f = *state;
    struct problem other;
    char path[4096];
    toy_problem_init(&other, "toy seed=2");
    golden_path(dir, &other, path, sizeof(path));
    assert_string_not_equal(path, f->path);
    problem_release(&other);

    toy_problem_init(&other, "toy");
    golden_path(dir, &other, path, sizeof(path));
    assert_string_equal(path, f->path);
    assert_int_equal(load_result(&other), 0);
    dtype_store(DTYPE_BF16, other.buffer[TOY_X].init, 39, 1.0);
    assert_int_equal(load_result(&other), 1);
    problem_release(&other);

    struct op newer = toy_operator;
    newer.reference_version++;
    toy_problem_init(&other, "toy");
    other.tc.op = &newer;
    assert_int_equal(load_result(&other), 1);
    problem_release(&other);
}

static void another_cases_file_is_refused(void **state)
{
    struct fixture *f = *state;
    struct problem other;
    struct golden g;
    struct err err = ERR_INIT;
    char path[4096];
    toy_problem_init(&other, "toy seed=2");
    golden_path(dir, &other, path, sizeof(path));
    assert_int_equal(file_replace(path, f->bytes.data, f->bytes.len, &err), 0);
    golden_init(&g, &other);
    assert_int_equal(golden_load(dir, &other, &g, &err), -1);
    assert_non_null(strstr(err.text, "another case"));
    unlink(path);
    golden_release(&g);
    problem_release(&other);
}

static void bounds_are_rounded_up(void **state)
{
    struct fixture *f = *state;
    struct expectation *e = &f->g.of[TOY_Y];
    double fine = 1.0 + 0x1p-40;
    (expect_value)(e, 0, 3.0, fine, -fine);
    assert_true((double)e->worst[0] > fine);
    assert_true((double)e->likely[0] >= -fine);
    (expect_value)(e, 0, 3.0, DBL_MAX, (double)NAN);
    assert_true(isinf(e->worst[0]));
    assert_true(isnan(e->likely[0]));
}

/* --- the cache -------------------------------------------------------------------------------- */

static unsigned references;
static int toy_reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                         struct err *err)
{
    (void)env;
    (void)err;
    references++;
    golden_release(g);
    toy_golden_init(g, p);
    return 0;
}

static char warning[1024];
static void keep_warning(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(warning, sizeof(warning), "%s", text);
}

static void obtain(struct problem *p, bool want_cached)
{
    struct golden g;
    struct err err = ERR_INIT;
    struct golden_source src = {.dir = dir, .workers = 1, .warn = keep_warning};
    bool cached;
    double seconds;
    warning[0] = '\0';
    assert_int_equal(golden_obtain(p, &src, &g, &cached, &seconds, &err), 0);
    assert_int_equal(cached, want_cached);
    golden_release(&g);
}

static void a_damaged_cache_is_mended_with_a_warning(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct op op = toy_operator;
    op.reference = toy_reference;
    f->p.tc.op = &op;
    references = 0;
    obtain(&f->p, true);
    assert_int_equal(references, 0);
    assert_int_equal(file_replace(f->path, f->bytes.data, f->bytes.len / 2, &err), 0);
    obtain(&f->p, false);
    assert_int_equal(references, 1);
    assert_non_null(strstr(warning, f->path));
    assert_non_null(strstr(warning, "truncated"));
    obtain(&f->p, true);
    assert_string_equal(warning, "");
    f->p.tc.op = &toy_operator;
}

/* The toy reference takes no time: reading its file would be slower. */
static void a_fast_reference_is_not_stored(void **state)
{
    struct fixture *f = *state;
    struct op op = toy_operator;
    struct golden g;
    struct err err = ERR_INIT;
    struct golden_source src = {.dir = dir, .workers = 1, .only_slow = true};
    bool cached;
    double seconds;

    if (emulated()) /* where it takes long enough */
        skip();
    op.reference = toy_reference;
    f->p.tc.op = &op;
    unlink(f->path);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(golden_obtain(&f->p, &src, &g, &cached, &seconds, &err), 0);
        assert_false(cached);
        assert_false(file_exists(f->path));
        golden_release(&g);
    }
    assert_int_equal(file_replace(f->path, f->bytes.data, f->bytes.len, &err), 0);
    f->p.tc.op = &toy_operator;
}

static void an_unwritable_cache_costs_a_warning_only(void **state)
{
    struct fixture *f = *state;
    struct op op = toy_operator;
    struct golden g;
    struct err err = ERR_INIT;
    struct golden_source src = {.dir = "/proc/deltarig", .workers = 1, .warn = keep_warning};
    bool cached;
    double seconds;
    op.reference = toy_reference;
    f->p.tc.op = &op;
    warning[0] = '\0';
    assert_int_equal(golden_obtain(&f->p, &src, &g, &cached, &seconds, &err), 0);
    assert_non_null(strstr(warning, "not kept"));
    golden_release(&g);
    f->p.tc.op = &toy_operator;
}

/* --- export ----------------------------------------------------------------------------------- */

static void exported_arrays_have_numpys_header(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct text t;
    static const char out[] = "build/tmp/golden/npy";
    text_init(&t);
    assert_int_equal(golden_export(out, &f->p, &f->g, &err), 0);
    assert_int_equal(file_read("build/tmp/golden/npy/y.value.npy", 1 << 20, &t, &err), 0);
    assert_memory_equal(t.data, "\x93NUMPY\x01\x00", 8);
    size_t header = 10 + (unsigned char)t.data[8] + 256 * (size_t)(unsigned char)t.data[9];
    assert_int_equal(header % 64, 0);
    assert_non_null(
        strstr(t.data + 10, "'descr': '<f8', 'fortran_order': False, 'shape': (4, 10,)"));
    assert_int_equal(t.len, header + TOY_N * sizeof(double));
    assert_memory_equal(t.data + header, f->g.of[TOY_Y].value, TOY_N * sizeof(double));
    assert_true(file_exists("build/tmp/golden/npy/x.init.npy"));
    assert_false(file_exists("build/tmp/golden/npy/x.value.npy"));
    text_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_stored_is_loaded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_file_is_no_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_truncation_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_behind_the_end_are_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stale_golden_is_as_good_as_absent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_cases_file_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_are_rounded_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_cache_is_mended_with_a_warning, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_fast_reference_is_not_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unwritable_cache_costs_a_warning_only, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(exported_arrays_have_numpys_header, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
