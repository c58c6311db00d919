/* Errors, texts, sizes, hashes, random numbers, shell words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/shell.h"
#include "base/text.h"
#include "tests/emulated.h"
#include "tests/scratch.h"

/* --- err -------------------------------------------------------------------------------------- */

static void error_carries_kind_and_context(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(err_set(&err, ERR_INPUT, "bad %s %d", "key", 3), -1);
    assert_int_equal(err_context(&err, "file:%d", 7), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_string_equal(err.text, "file:7: bad key 3");
}

static void error_text_is_one_line_and_cut_with_dots(void **state)
{
    struct err err = ERR_INIT;
    char longer[2000];

    (void)state;
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    err_set(&err, ERR_FAULT, "two\nlines");
    assert_string_equal(err.text, "two lines");
    err_set(&err, ERR_FAULT, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(err.text + sizeof err.text - 5, "x...");
    err_context(&err, "outer");
    assert_memory_equal(err.text, "outer: xxx", 10);
}

static void error_may_quote_itself(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    err_set(&err, ERR_SYSTEM, "inner");
    err_set(&err, ERR_MISSING, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (inner)");
    assert_string_equal(err_kind_name(err.kind), "missing");
}

/* --- text and mem ----------------------------------------------------------------------------- */

static void text_grows_and_stays_terminated(void **state)
{
    struct text t;

    (void)state;
    text_init(&t);
    assert_string_equal(t.data, "");
    for (int i = 0; i < 1000; i++) {
        text_addf(&t, "%03d,", i);
        assert_int_equal(t.data[t.len], '\0');
    }
    assert_int_equal(t.len, 4000);
    assert_memory_equal(t.data + 3996, "999,", 5);
    text_add_bytes(&t, "a\0b", 3);
    assert_int_equal(t.len, 4003);
    text_clear(&t);
    text_add(&t, "again");
    assert_string_equal(t.data, "again");
    text_release(&t);
    text_release(&t);
}

static void product_reports_overflow(void **state)
{
    size_t out = 7;

    (void)state;
    assert_false(size_product(SIZE_MAX, 2, &out));
    assert_false(size_product((size_t)1 << 32, (size_t)1 << 32, &out));
    assert_int_equal(out, 7);
    assert_true(size_product(SIZE_MAX, 1, &out));
    assert_int_equal(out, SIZE_MAX);
    assert_true(size_product(0, SIZE_MAX, &out));
    assert_int_equal(out, 0);
}

/* --- hash ------------------------------------------------------------------------------------- */

static void hash_of_nothing_is_the_published_one(void **state)
{
    char hex[HASH_HEX];

    (void)state;
    /* `xxhsum -H2` of an empty file. */
    hash_hex(hash_bytes("", 0), hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
}

static void hash_join_minds_the_order(void **state)
{
    struct hash a = hash_bytes("a", 1);
    struct hash b = hash_bytes("b", 1);

    (void)state;
    assert_false(hash_equal(a, b));
    assert_false(hash_equal(hash_join(a, b), hash_join(b, a)));
    assert_true(hash_equal(hash_join(a, b), hash_join(a, b)));
}

static void hash_of_a_file_is_that_of_its_bytes(void **state)
{
    struct scratch s;
    struct err err = ERR_INIT;
    struct hash h;
    char path[300];

    (void)state;
    scratch_open(&s);
    scratch_write(scratch_path(&s, "f", path, sizeof path), "some bytes");
    assert_int_equal(hash_file(path, &h, &err), 0);
    assert_true(hash_equal(h, hash_bytes("some bytes", 10)));
    assert_int_equal(hash_file(s.dir, &h, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    scratch_close(&s);
}

/* --- rng -------------------------------------------------------------------------------------- */

static void rng_is_splitmix64(void **state)
{
    /* The sequence that is published for seed 1234567. */
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(rng_bits(1234567, i) == known[i]);
}

static void rng_bits_never_change(void **state)
{
    /* From an independent implementation; goldens and inputs hang on these bits. */
    uint64_t key = rng_key(1, "query");

    (void)state;
    assert_true(key == 0x1b85653e5fef23aeu);
    assert_true(rng_key(0, "") == 0xaebe53f85cdc3c4cu);
    assert_true(rng_normal(key, 0) == -0x1.9c52580000000p+0);
    assert_true(rng_normal(key, 1) == -0x1.acc0600000000p-2);
    assert_true(rng_normal(key, 2) == 0x1.2bcbc00000000p-2);
}

static void rng_moments_are_right(void **state)
{
    uint64_t key = rng_key(5, "moments");
    double uniform = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    double n = 100000.0;

    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        double u = rng_uniform(key, i);
        double z = rng_normal(key, i);

        assert_true(u >= 0.0 && u < 1.0 && z >= -6.0 && z <= 6.0);
        uniform += u;
        sum += z;
        squares += z * z;
    }
    /* Five standard errors: 1/sqrt(12 n), 1/sqrt(n), about sqrt(2/n). */
    assert_true(uniform / n > 0.5 - 0.0046 && uniform / n < 0.5 + 0.0046);
    assert_true(sum / n > -0.016 && sum / n < 0.016);
    assert_true(squares / n > 1.0 - 0.023 && squares / n < 1.0 + 0.023);
}

static void rng_below_is_fair(void **state)
{
    uint64_t key = rng_key(9, "dice");
    unsigned seen[6] = {0};

    (void)state;
    for (uint64_t i = 0; i < 60000; i++)
        seen[rng_below(key, i, 6)]++;
    for (int i = 0; i < 6; i++) /* five standard deviations of B(60000, 1/6) */
        assert_in_range(seen[i], 10000 - 457, 10000 + 457);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(rng_below(key, i, 1), 0);
    /* Just above half the range: nearly every other draw is rejected, and all are below. */
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(rng_below(key, i, ((uint64_t)1 << 63) + 1) <= (uint64_t)1 << 63);
}

/* --- shell ------------------------------------------------------------------------------------ */

/* Runs `sh -c command`, with what it prints in `out`. */
static int run_shell(char *command, size_t limit, struct text *out)
{
    char sh[] = "sh";
    char dash_c[] = "-c";
    struct shell_run how = {.limit = limit};
    struct err err = ERR_INIT;
    int status = -1;

    text_clear(out);
    assert_int_equal(shell_capture((char *[]){sh, dash_c, command, NULL}, &how, out, &status, &err),
                     0);
    return status;
}

static void shell_words_survive_a_shell(void **state)
{
    static const char *const words[] = {
        "plain-1.0/x=y", "", "two words", "it's", "$HOME `id` \\", "a\tb;c|d&e", "*?[x]", "~",
    };
    struct text command, out;

    (void)state;
    text_init(&command);
    text_init(&out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        text_clear(&command);
        text_add(&command, "printf %s ");
        shell_quote(&command, words[i]);
        assert_int_equal(run_shell(command.data, 4096, &out), 0);
        assert_string_equal(out.data, words[i]);
    }
    text_release(&command);
    text_release(&out);
}

static void shell_reports_status_limit_and_absence(void **state)
{
    char fails[] = "echo 123456; echo err >&2; exit 3";
    char dies[] = "kill -9 $$";
    char absent[] = "no-such-program-here";
    struct shell_run how = {.limit = 4};
    struct err err = ERR_INIT;
    struct text out;
    int status;

    (void)state;
    text_init(&out);
    assert_int_equal(run_shell(fails, 4, &out), 3);
    assert_string_equal(out.data, "1234");
    assert_int_equal(run_shell(dies, 4, &out), 128 + 9);
    if (!emulated()) {
        assert_int_equal(shell_capture((char *[]){absent, NULL}, &how, &out, &status, &err), -1);
        assert_int_equal(err.kind, ERR_MISSING);
    }
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_carries_kind_and_context),
        cmocka_unit_test(error_text_is_one_line_and_cut_with_dots),
        cmocka_unit_test(error_may_quote_itself),
        cmocka_unit_test(text_grows_and_stays_terminated),
        cmocka_unit_test(product_reports_overflow),
        cmocka_unit_test(hash_of_nothing_is_the_published_one),
        cmocka_unit_test(hash_join_minds_the_order),
        cmocka_unit_test(hash_of_a_file_is_that_of_its_bytes),
        cmocka_unit_test(rng_is_splitmix64),
        cmocka_unit_test(rng_bits_never_change),
        cmocka_unit_test(rng_moments_are_right),
        cmocka_unit_test(rng_below_is_fair),
        cmocka_unit_test(shell_words_survive_a_shell),
        cmocka_unit_test(shell_reports_status_limit_and_absence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
