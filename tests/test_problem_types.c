/* Element types, buffers and fills. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "problem/fill.h"
#include "problem/operator.h"

#include <cmocka.h> /* last: its macro expect_value would hide golden.h's function */

static const struct param no_params[] = {{.key = NULL}};
static const struct op toy = {.name = "toy", .params = no_params};

static struct problem fresh_problem(void)
{
    struct test_case tc = {.op = &toy};
    struct problem p;
    problem_init(&p, &tc);
    return p;
}

/* --- bf16 ------------------------------------------------------------------------------------- */

static void all_bf16_survive_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        float x = bf16_to_float((uint16_t)bits);
        uint16_t want = isnan(x) ? 0x7fff : (uint16_t)bits;
        assert_int_equal(bf16_from_float(x), want);
        assert_int_equal(bf16_from_double((double)x), want);
    }
}

/* Between two neighbours: below, at and above the middle, where the middle goes to the even one. */
static void bf16_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7f7f; bits++) {
        double low = (double)bf16_to_float((uint16_t)bits);
        double high = (double)bf16_to_float((uint16_t)(bits + 1));
        double middle = low + (high - low) / 2;
        uint16_t even = (uint16_t)(bits % 2 == 0 ? bits : bits + 1);
        assert_int_equal(bf16_from_double(middle), even);
        assert_int_equal(bf16_from_double(nextafter(middle, low)), bits);
        assert_int_equal(bf16_from_double(nextafter(middle, high)), bits + 1);
        assert_int_equal(bf16_from_double(-nextafter(middle, high)), (bits + 1) | 0x8000);
        assert_int_equal(bf16_from_float((float)middle), even);
    }
}

/* A double a hair above the middle of two bf16: through float it would first become the middle. */
static void bf16_from_double_rounds_once(void **state)
{
    (void)state;
    double x = 1.0 + 0x1p-8 + 0x1p-40;
    assert_int_equal(bf16_from_double(x), 0x3f81);
    assert_int_equal(bf16_from_float((float)x), 0x3f80);
}

static void bf16_extremes(void **state)
{
    (void)state;
    assert_int_equal(bf16_from_double(1e300), 0x7f80);
    assert_int_equal(bf16_from_double(-1e300), 0xff80);
    assert_int_equal(bf16_from_double((double)INFINITY), 0x7f80);
    assert_int_equal(bf16_from_double((double)NAN), 0x7fff);
    assert_int_equal(bf16_from_double(-0.0), 0x8000);
    assert_int_equal(bf16_from_double(1e-300), 0x0000);
}

static void u32_stores_saturate(void **state)
{
    (void)state;
    uint32_t x;
    static const struct {
        double value;
        uint32_t want;
    } rows[] = {{0.0, 0},
                {-3.0, 0},
                {2.5, 2},
                {3.5, 4},
                {1e30, UINT32_MAX},
                {7.0, 7},
                {4294967294.0, 4294967294u}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dtype_store(DTYPE_U32, &x, 0, rows[i].value);
        assert_int_equal(x, rows[i].want);
    }
    dtype_store(DTYPE_U32, &x, 0, (double)NAN);
    assert_int_equal(x, 0);
}

/* --- buffers ---------------------------------------------------------------------------------- */

static void roles_decide_the_contents(void **state)
{
    (void)state;
    struct problem p = fresh_problem();
    struct err err = ERR_INIT;
    const struct dim dims[] = {{"row", 3}, {"col", 5}, {NULL, 0}};
    int in, out, bits, words;
    assert_int_equal(problem_add(&p, "in", DTYPE_F32, ROLE_IN, dims, &in, &err), 0);
    assert_int_equal(problem_add(&p, "out", DTYPE_F32, ROLE_OUT, dims, &out, &err), 0);
    assert_int_equal(problem_add(&p, "bits", DTYPE_BF16, ROLE_SCRATCH, dims, &bits, &err), 0);
    assert_int_equal(problem_add(&p, "words", DTYPE_U32, ROLE_OUT, dims, &words, &err), 0);
    assert_int_equal(problem_find(&p, "words"), words);
    assert_int_equal(problem_find(&p, "word"), -1);
    for (size_t i = 0; i < 15; i++) {
        assert_true(dtype_load(DTYPE_F32, p.buffer[in].init, i) == 0.0);
        assert_true(isnan(dtype_load(DTYPE_F32, p.buffer[out].init, i)));
        assert_true(poison_is(DTYPE_F32, p.buffer[out].init, i));
        assert_true(isnan(dtype_load(DTYPE_BF16, p.buffer[bits].init, i)));
        assert_true(poison_is(DTYPE_BF16, p.buffer[bits].init, i));
        assert_true(poison_is(DTYPE_U32, p.buffer[words].init, i));
    }
    problem_release(&p);
}

/* What is computed from poison must not look like poison that was never overwritten. */
static void arithmetic_on_poison_leaves_other_bits(void **state)
{
    (void)state;
    struct problem p = fresh_problem();
    struct err err = ERR_INIT;
    const struct dim dims[] = {{"i", 1}, {NULL, 0}};
    int id;
    assert_int_equal(problem_add(&p, "y", DTYPE_F32, ROLE_OUT, dims, &id, &err), 0);
    volatile float *y = p.buffer[id].init;
    *y = *y + 1.0f;
    assert_true(isnan(*y));
    assert_false(poison_is(DTYPE_F32, p.buffer[id].init, 0));
    problem_release(&p);
}

static void dims_that_overflow_are_refused(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{SIZE_MAX, 2, 1},
                                      {(size_t)1 << 32, (size_t)1 << 32, 1},
                                      {SIZE_MAX / 2, 1, 1},
                                      {(size_t)3 << 30, 1, 1}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct problem p = fresh_problem();
        struct err err = ERR_INIT;
        const struct dim dims[] = {
            {"a", sizes[i][0]}, {"b", sizes[i][1]}, {"c", sizes[i][2]}, {NULL, 0}};
        int id;
        assert_int_equal(problem_add(&p, "huge", DTYPE_F32, ROLE_IN, dims, &id, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
        assert_non_null(strstr(err.text, "huge"));
        assert_int_equal(p.count, 0);
        problem_release(&p);
    }
}

static void an_element_is_named_in_its_own_dims(void **state)
{
    (void)state;
    struct problem p = fresh_problem();
    struct err err = ERR_INIT;
    const struct dim dims[] = {{"seq", 2}, {"token", 4}, {"head", 8}, {"row", 64}, {NULL, 0}};
    char text[128], tiny[12];
    int id;
    assert_int_equal(problem_add(&p, "output", DTYPE_BF16, ROLE_OUT, dims, &id, &err), 0);
    buffer_index_text(&p.buffer[id], ((1 * 4 + 2) * 8 + 7) * 64 + 33, text, sizeof(text));
    assert_string_equal(text, "output[seq=1 token=2 head=7 row=33]");
    buffer_index_text(&p.buffer[id], 33, tiny, sizeof(tiny)); /* cut short, not overrun */
    assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
    problem_release(&p);
}

/* --- fills ------------------------------------------------------------------------------------ */

static double row_norm(const struct buffer *b, size_t first, size_t n)
{
    double sum = 0.0;
    for (size_t i = first; i < first + n; i++)
        sum += dtype_load(b->dtype, b->init, i) * dtype_load(b->dtype, b->init, i);
    return sqrt(sum);
}

static double row_dot(const struct buffer *b, size_t x, size_t y, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += dtype_load(b->dtype, b->init, x + i) * dtype_load(b->dtype, b->init, y + i);
    return sum;
}

static void unit_rows_are_unit_and_far_from_orthogonal(void **state)
{
    (void)state;
    struct problem p = fresh_problem();
    struct err err = ERR_INIT;
    const struct dim dims[] = {{"row", 32}, {"col", 200}, {NULL, 0}};
    int id;
    assert_int_equal(problem_add(&p, "key", DTYPE_BF16, ROLE_IN, dims, &id, &err), 0);
    struct buffer *b = &p.buffer[id];
    fill_unit_rows(b, rng_key(7, "key"), 0, 32, 200, 128, true);
    for (size_t r = 0; r < 32; r++) {
        double want = r % 16 == 5 ? 0.0 : r % 16 == 11 ? 1e-3 : 1.0;
        assert_true(fabs(row_norm(b, r * 200, 128) - want) <= 0.004 * want);
        assert_true(row_norm(b, r * 200 + 128, 72) ==
                    0.0); /* the rest of the wider row is untouched */
    }
    assert_true(row_dot(b, 0, 200, 128) > 0.2);
    assert_true(row_dot(b, 0, 200, 128) < 0.6);
    problem_release(&p);
}

/* An element's value depends on its index alone, not on how the fill is cut into calls. */
static void fills_do_not_depend_on_the_partition(void **state)
{
    (void)state;
    struct problem p = fresh_problem();
    struct err err = ERR_INIT;
    const struct dim dims[] = {{"i", 100}, {NULL, 0}};
    int a, b;
    assert_int_equal(problem_add(&p, "a", DTYPE_F32, ROLE_IN, dims, &a, &err), 0);
    assert_int_equal(problem_add(&p, "b", DTYPE_F32, ROLE_IN, dims, &b, &err), 0);
    fill_normal(&p.buffer[a], 5, 0, 100, 2.0, 1.0);
    fill_normal(&p.buffer[b], 5, 60, 40, 2.0, 1.0);
    fill_normal(&p.buffer[b], 5, 0, 60, 2.0, 1.0);
    assert_memory_equal(p.buffer[a].init, p.buffer[b].init, p.buffer[a].bytes);
    fill_uniform(&p.buffer[b], 5, 0, 100, -3.0, -2.0);
    for (size_t i = 0; i < 100; i++) {
        double x = dtype_load(DTYPE_F32, p.buffer[b].init, i);
        assert_true(x >= -3.0 && x <= -2.0);
    }
    problem_release(&p);
}

static void gate_regimes_hold_what_they_say(void **state)
{
    (void)state;
    double strongest = 0.0, one_ulp = 0.0;
    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t head = i % 8;
        double lazy = fill_log_decay(GATE_LAZY, 3, i, head, -1e30);
        double model = fill_log_decay(GATE_MODEL, 3, i, head, -5.0);
        double strong = fill_log_decay(GATE_STRONG, 3, i, head, -1e30);
        double lower = fill_log_decay(GATE_LOWER, 3, i, head, -5.0);
        assert_true(lazy >= -0.2 && lazy <= -0.001);
        assert_true(model <= 0.0 && model >= -5.0);
        assert_true(strong <= 0.0 && isfinite(strong));
        assert_true(lower == -5.0 || (float)lower == nextafterf(-5.0f, 0.0f));
        one_ulp += lower != -5.0;
        strongest = fmin(strongest, strong);
        assert_true(fill_log_decay(GATE_ONE, 3, i, head, -5.0) == 0.0);
        assert_true(fill_log_decay(GATE_ZERO, 3, i, head, -5.0) == -5.0);
        assert_true(fill_log_decay(GATE_MIXED, 3, i, head, -5.0) >= -5.0);
    }
    assert_true(strongest < -104.0); /* exp underflows to zero even as a subnormal float */
    assert_true(one_ulp > 1500.0 && one_ulp < 2500.0);
    unsigned names = 0;
    while (gate_regimes[names] != NULL)
        names++;
    assert_int_equal(names, GATE_LOWER + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bf16_survive_a_round_trip),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(bf16_from_double_rounds_once),
        cmocka_unit_test(bf16_extremes),
        cmocka_unit_test(u32_stores_saturate),
        cmocka_unit_test(roles_decide_the_contents),
        cmocka_unit_test(arithmetic_on_poison_leaves_other_bits),
        cmocka_unit_test(dims_that_overflow_are_refused),
        cmocka_unit_test(an_element_is_named_in_its_own_dims),
        cmocka_unit_test(unit_rows_are_unit_and_far_from_orthogonal),
        cmocka_unit_test(fills_do_not_depend_on_the_partition),
        cmocka_unit_test(gate_regimes_hold_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
