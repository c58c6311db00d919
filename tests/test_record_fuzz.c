/* Damaged record files: read or refused with one line, never a crash, never an endless loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/scratch.h"
#include "tests/synthetic.h"

#define DAMAGES 1500

static void write_good(const char *path)
{
    struct synthetic s;
    struct bench_record *r;

    synthetic_open(&s, path, "NVIDIA H200", 0.0, 1);
    synthetic_put_ceiling(&s, "dram_read", "GB/s", 4000.0);
    r = synthetic_bench(&s, "op a=1", BENCH_HOT, 10.0);
    r->nsamples = 5;
    synthetic_put_bench(&s, r);
    synthetic_put_verify(&s, synthetic_verify("op a=1", VERDICT_FAIL));
    synthetic_close(&s);
}

/* One to four bytes changed, a piece cut out or doubled. */
static void damage(const struct text *good, uint64_t key, struct text *bad)
{
    size_t at = rng_below(key, 0, good->len);
    size_t n = rng_below(key, 1, good->len - at) % 200;

    text_clear(bad);
    switch (rng_below(key, 2, 3)) {
    case 0:
        text_add_bytes(bad, good->data, good->len);
        for (uint64_t i = 0; i <= rng_below(key, 3, 4); i++)
            bad->data[rng_below(key, 10 + i, bad->len)] = (char)rng_below(key, 20 + i, 256);
        break;
    case 1:
        text_add_bytes(bad, good->data, at);
        text_add_bytes(bad, good->data + at + n, good->len - at - n);
        break;
    default:
        text_add_bytes(bad, good->data, at + n);
        text_add_bytes(bad, good->data + at, good->len - at);
        break;
    }
}

static void reading_survives_any_damage(void **state)
{
    struct err err = ERR_INIT;
    struct scratch scratch;
    struct text good, bad;
    unsigned refused = 0;
    char path[300];

    (void)state;
    scratch_open(&scratch);
    text_init(&good);
    text_init(&bad);
    write_good(scratch_path(&scratch, "r.jsonl", path, sizeof path));
    assert_int_equal(file_read(path, 1 << 20, &good, &err), 0);
    for (uint64_t i = 0; i < DAMAGES; i++) {
        struct record_set set = {.nruns = 0};
        FILE *f = fopen(path, "w");

        damage(&good, rng_key(i, "damage"), &bad);
        assert_non_null(f);
        assert_int_equal(fwrite(bad.data, 1, bad.len, f), bad.len);
        fclose(f);
        if (records_read(path, &set, &err) < 0) {
            refused++;
            assert_int_equal(err.kind, ERR_INPUT);
            assert_null(strchr(err.text, '\n'));
            assert_non_null(strstr(err.text, "r.jsonl:"));
        }
        records_release(&set);
    }
    assert_true(refused > DAMAGES / 2);
    text_release(&good);
    text_release(&bad);
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_survives_any_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
