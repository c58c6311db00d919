/* Case texts and case files: what is accepted, what each mistake says, and random bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "problem/operator.h"

#include <cmocka.h> /* last: its macro expect_value would hide golden.h's function */

static const char *const gates[] = {"model", "lazy", "zero", NULL};
static const struct param params[] = {
    {.key = "nk", .fallback = 2, .min = 1, .max = 64},
    {.key = "gate", .fallback = 0, .min = 0, .max = 2, .choices = gates},
    {.key = "big", .fallback = 0, .min = 0, .max = UINT32_MAX},
    {.key = NULL},
};
static const struct op toy = {.name = "toy", .params = params};

static void texts_become_canonical(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"toy", "toy nk=2 gate=model big=0 seed=1"},
        {"  toy\tgate=lazy   nk=007 ", "toy nk=7 gate=lazy big=0 seed=1"},
        {"toy seed=18446744073709551615 big=4294967295",
         "toy nk=2 gate=model big=4294967295 seed=18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct test_case tc, again;
        struct err err = ERR_INIT;
        assert_int_equal(case_parse_for(&toy, rows[i][0], &tc, &err), 0);
        assert_string_equal(tc.text, rows[i][1]);
        assert_int_equal(case_parse_for(&toy, tc.text, &again, &err), 0);
        assert_string_equal(again.text, tc.text);
        assert_true(hash_equal(case_hash(&again), case_hash(&tc)));
    }
}

static void values_are_found_by_key(void **state)
{
    (void)state;
    struct test_case tc;
    struct err err = ERR_INIT;
    assert_int_equal(case_parse_for(&toy, "toy nk=48 gate=zero", &tc, &err), 0);
    assert_int_equal(case_u32(&tc, "nk"), 48);
    assert_int_equal(case_u32(&tc, "gate"), 2);
    assert_string_equal(case_choice(&tc, "gate"), "zero");
    assert_true(case_declares_zero(&tc));
    assert_true(case_matches(&tc, "nk=48"));
    assert_true(case_matches(&tc, "toy*zero*"));
    assert_false(case_matches(&tc, "nk=4[79]"));
    assert_int_equal(case_parse_for(&toy, "toy", &tc, &err), 0);
    assert_false(case_declares_zero(&tc));
}

/* Every mistake is ERR_INPUT, and its text has the words that mend it. */
static void mistakes_say_what_is_allowed(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "must start with 'toy'"},
        {"other nk=1", "must start with 'toy'"},
        {"toyy nk=1", "must start with 'toy'"},
        {"toy nx=1", "unknown key 'nx'; toy takes: nk gate big seed"},
        {"toy nk", "not of the form key=value"},
        {"toy =1", "unknown key ''"},
        {"toy nk=", "from 1 to 64"},
        {"toy nk=0", "from 1 to 64"},
        {"toy nk=65", "from 1 to 64"},
        {"toy nk=-1", "from 1 to 64"},
        {"toy nk=+1", "from 1 to 64"},
        {"toy nk=1.0", "from 1 to 64"},
        {"toy nk=0x10", "from 1 to 64"},
        {"toy nk=4294967297", "from 1 to 64"},
        {"toy nk=18446744073709551617", "from 1 to 64"},
        {"toy big=4294967296", "from 0 to 4294967295"},
        {"toy nk=1 nk=1", "'nk' is given twice"},
        {"toy seed=1 seed=2", "'seed' is given twice"},
        {"toy seed=18446744073709551616", "seed=18446744073709551616"},
        {"toy seed=", "seed="},
        {"toy gate=1", "the choices are: model lazy zero"},
        {"toy gate=mode", "the choices are: model lazy zero"},
        {"toy gate=", "the choices are: model lazy zero"},
        {"toy nk=1\n", "0x0a"},
        {"toy nk=\xc3\xa9", "0xc3"},
        {"toy\x01", "0x01"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct test_case tc;
        struct err err = ERR_INIT;
        assert_int_equal(case_parse_for(&toy, rows[i][0], &tc, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
        if (strstr(err.text, rows[i][1]) == NULL)
            fail_msg("'%s' gives '%s', without '%s'", rows[i][0], err.text, rows[i][1]);
        assert_null(strchr(err.text, '\n'));
    }
}

static void a_text_may_be_too_long(void **state)
{
    (void)state;
    char text[2 * CASE_MAX_TEXT];
    struct test_case tc;
    struct err err = ERR_INIT;
    memset(text, ' ', sizeof(text));
    memcpy(text, "toy", 3);
    text[CASE_MAX_TEXT] = '\0';
    assert_int_equal(case_parse_for(&toy, text, &tc, &err), -1);
    assert_non_null(strstr(err.text, "at most 511"));
    text[CASE_MAX_TEXT - 1] = '\0';
    assert_int_equal(case_parse_for(&toy, text, &tc, &err), 0);
}

static void unknown_operators_list_the_known(void **state)
{
    (void)state;
    struct test_case tc;
    struct err err = ERR_INIT;
    assert_int_equal(case_parse("no_such_operator nk=1", &tc, &err), -1);
    assert_int_equal(err.kind, ERR_INPUT);
    assert_non_null(strstr(err.text, "unknown operator 'no_such_operator'"));
    if (operator_count > 0)
        assert_non_null(strstr(err.text, operator_table[0]->name));
    assert_int_equal(case_parse(" ", &tc, &err), -1);
}

/* --- files: of the first operator that is built in -------------------------------------------- */

static char folder[] = "build/tmp/case-files";

static const char *write_case_file(const char *body, size_t n)
{
    static char path[256];
    struct err err = ERR_INIT;
    assert_int_equal(dir_make(folder, &err), 0);
    snprintf(path, sizeof(path), "%s/%s.case", folder, operator_table[0]->name);
    assert_int_equal(file_replace(path, body, n, &err), 0);
    return path;
}

static int read_body(const char *body, struct case_list *list, struct err *err)
{
    char text[8192];
    const char *name = operator_table[0]->name;
    size_t n = 0;
    for (const char *c = body; *c != '\0'; c++) /* '@' stands for the operator's name */
        n += (size_t)snprintf(text + n, sizeof(text) - n, *c == '@' ? "%s" : "%.1s",
                              *c == '@' ? name : c);
    case_list_init(list);
    return case_file_read(write_case_file(text, n), list, err);
}

static void files_have_tiers_comments_and_products(void **state)
{
    (void)state;
    struct case_list list;
    struct err err = ERR_INIT;
    assert_int_equal(
        read_body(
            "# head\n\n[smoke]\n@ seed={1,2} # two\r\n[full]\n  @ seed={ 3 ,4,5}\n[perf]\n@ seed=1",
            &list, &err),
        0);
    assert_int_equal(list.count, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(list.items[i].seed, i < 5 ? i + 1 : 1);
    assert_int_equal(list.items[1].tier, TIER_SMOKE);
    assert_int_equal(list.items[2].tier, TIER_FULL);
    assert_int_equal(list.items[5].tier, TIER_PERF);
    assert_non_null(strstr(list.items[5].origin, ".case:8"));
    case_list_release(&list);
}

static void file_mistakes_name_the_line(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"@ seed=1\n", ".case:1: a case before the first [smoke]"},
        {"[smoke]\n\n[huge]\n", ".case:3: '[huge]' is no tier"},
        {"[smoke\n", ".case:1: '[smoke' is no tier"},
        {"[smoke]\nother seed=1\n", ".case:2: cases of this file start with"},
        {"[smoke]\n@ seed={1,2\n", ".case:2: '{' without its '}'"},
        {"[smoke]\n@ seed=1}\n", ".case:2: '}' without a '{'"},
        {"[smoke]\n@ seed={1,{2}}\n", ".case:2: braces inside braces"},
        {"[smoke]\n@ seed={1,,2}\n", ".case:2: an empty value"},
        {"[smoke]\n@ seed={}\n", ".case:2: an empty value"},
        {"[smoke]\n@ seed=1{2,3}\n", ".case:2: braces must be a whole value"},
        {"[smoke]\n@ {seed=1}\n", ".case:2: braces must be a whole value"},
        {"[smoke]\n@ seed={1,2}3\n", ".case:2: braces must be a whole value"},
        {"[smoke]\n@ seed={1,x}\n", ".case:2: "},
        {"[smoke]\n@ seed=1\n@ seed=1\n", ".case:3: the case"},
        {"[smoke]\n@ seed={1,2,1}\n", "is there already"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct case_list list;
        struct err err = ERR_INIT;
        assert_int_equal(read_body(rows[i][0], &list, &err), -1);
        assert_int_equal(err.kind, ERR_INPUT);
        if (strstr(err.text, rows[i][1]) == NULL)
            fail_msg("'%s' gives '%s', without '%s'", rows[i][0], err.text, rows[i][1]);
        assert_int_equal(list.count, 0);
        case_list_release(&list);
    }
}

static void a_product_typed_by_mistake_ends(void **state)
{
    (void)state;
    char line[4096];
    struct case_list list;
    struct err err = ERR_INIT;
    size_t n = (size_t)snprintf(line, sizeof(line), "%s seed={1", operator_table[0]->name);
    while (n < sizeof(line) - 40)
        n += (size_t)snprintf(line + n, sizeof(line) - n, ",%zu", n);
    snprintf(line + n, sizeof(line) - n, "}");
    case_list_init(&list);
    list.count = list.cap = 0;
    assert_int_equal(case_line_expand(line, TIER_FULL, &list, &err), 0);
    size_t one = list.count;
    assert_true(one > 500);
    for (size_t total = one; total + one <= CASE_LIST_MAX; total += one)
        assert_int_equal(case_line_expand(line, TIER_FULL, &list, &err), 0);
    assert_int_equal(case_line_expand(line, TIER_FULL, &list, &err), -1);
    assert_non_null(strstr(err.text, "more than 20000 cases"));
    case_list_release(&list);
}

static void nul_bytes_and_missing_files_are_refused(void **state)
{
    (void)state;
    struct case_list list;
    struct err err = ERR_INIT;
    case_list_init(&list);
    assert_int_equal(case_file_read(write_case_file("[smoke]\nab\0cd\n", 14), &list, &err), -1);
    assert_non_null(strstr(err.text, ".case:2: a NUL byte"));
    assert_int_equal(case_file_read("build/tmp/no-such-file.case", &list, &err), -1);
    assert_non_null(strstr(err.text, "build/tmp/no-such-file.case"));
    assert_int_equal(case_file_read("build", &list, &err), -1);
    case_list_release(&list);
}

/* --- random bytes ----------------------------------------------------------------------------- */

/* Whatever comes in: accepted with a canonical text that parses to itself, or one line of
 * ERR_INPUT. */
static void check_text(const char *text)
{
    struct test_case tc, again;
    struct err err = ERR_INIT;
    if (case_parse_for(&toy, text, &tc, &err) == 0) {
        assert_int_equal(case_parse_for(&toy, tc.text, &again, &err), 0);
        assert_string_equal(tc.text, again.text);
        return;
    }
    assert_int_equal(err.kind, ERR_INPUT);
    assert_true(err.text[0] != '\0');
    for (const char *c = err.text; *c != '\0'; c++)
        assert_true((unsigned char)*c >= 0x20);
}

static void random_and_mutated_texts_never_break_it(void **state)
{
    (void)state;
    static const char seed_text[] = "toy nk=12 gate=lazy big=4294967295 seed=77";
    uint64_t key = rng_key(1, "case fuzz");
    for (uint64_t round = 0; round < 40000; round++) {
        char text[64];
        size_t n = sizeof(seed_text) - 1;
        memcpy(text, seed_text, sizeof(seed_text));
        for (uint64_t m = 0; m <= rng_below(key, round * 8, 4); m++) {
            uint64_t at = rng_below(key, round * 8 + 1 + m, n);
            static const char likely[] = "= 0{},#[]nkseed9\t\x7f\xff";
            text[at] = likely[rng_below(key, round * 8 + 5 + m, sizeof(likely) - 1)];
        }
        text[rng_below(key, round * 8 + 7, n + 1)] = '\0';
        check_text(text);
    }
}

static void random_files_never_break_it(void **state)
{
    (void)state;
    uint64_t key = rng_key(2, "case file fuzz");
    static const char *const pieces[] = {"[smoke]", "[full]", "\n", " ",  "seed=", "{", "}", ",",
                                         "1",       "22",     "#",  "\t", "[",     "]", "=", "x"};
    size_t count = sizeof(pieces) / sizeof(pieces[0]);
    for (uint64_t round = 0; round < 1500; round++) {
        char body[600];
        size_t n = 0;
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t pick = rng_below(key, round * 64 + i, count + 1);
            const char *piece = pick == count ? operator_table[0]->name : pieces[pick];
            n += (size_t)snprintf(body + n, sizeof(body) - n, "%s", piece);
            if (n > sizeof(body) - 64)
                break;
        }
        struct case_list list;
        struct err err = ERR_INIT;
        case_list_init(&list);
        if (case_file_read(write_case_file(body, n), &list, &err) < 0) {
            assert_int_equal(err.kind, ERR_INPUT);
            assert_int_equal(list.count, 0);
        }
        case_list_release(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_canonical),
        cmocka_unit_test(values_are_found_by_key),
        cmocka_unit_test(mistakes_say_what_is_allowed),
        cmocka_unit_test(a_text_may_be_too_long),
        cmocka_unit_test(unknown_operators_list_the_known),
        cmocka_unit_test(files_have_tiers_comments_and_products),
        cmocka_unit_test(file_mistakes_name_the_line),
        cmocka_unit_test(a_product_typed_by_mistake_ends),
        cmocka_unit_test(nul_bytes_and_missing_files_are_refused),
        cmocka_unit_test(random_and_mutated_texts_never_break_it),
        cmocka_unit_test(random_files_never_break_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
