/* Tables, escapes and JUnit XML: whatever a text holds, the format around it stays whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "report/escape.h"
#include "report/junit.h"
#include "report/table.h"
#include "tests/synthetic.h"

/* --- a small judge of XML --------------------------------------------------------------------- */

static size_t name_length(const char *p)
{
    return strcspn(p, " \t\n/>=\"'<&");
}

/* The end of a start tag, its attributes well formed; NULL when they are not. */
static const char *skip_attributes(const char *p)
{
    while (*p == ' ') {
        size_t n = name_length(++p);

        if (n == 0 || strncmp(p + n, "=\"", 2) != 0)
            return NULL;
        p += n + 2;
        while (*p && *p != '"' && *p != '<')
            p++;
        if (*p++ != '"')
            return NULL;
    }
    return p;
}

static bool references_are_whole(const char *xml)
{
    for (const char *p = strchr(xml, '&'); p; p = strchr(p + 1, '&'))
        if (p[1] != '#' || p[2 + strspn(p + 2, "0123456789")] != ';')
            return false;
    return true;
}

static bool characters_are_allowed(const char *xml)
{
    while (*xml) {
        size_t n = utf8_length(xml);

        if (n == 0 || ((unsigned char)*xml < 0x20 && *xml != '\n'))
            return false;
        xml += n;
    }
    return true;
}

/* Tags nest, attributes are quoted, references end, no character is forbidden. */
static bool well_formed(const char *xml)
{
    char open[16][32];
    int depth = 0;
    const char *p = strstr(xml, "?>");

    for (p = p ? strchr(p, '<') : NULL; p; p = strchr(p, '<')) {
        bool closing = *++p == '/';
        size_t n = name_length(p += closing);

        if (n == 0 || n >= sizeof open[0] || depth == 16)
            return false;
        if (closing) {
            if (depth-- == 0 || strncmp(open[depth], p, n) != 0 || open[depth][n] != '\0')
                return false;
            p += n;
        } else {
            snprintf(open[depth++], sizeof open[0], "%.*s", (int)n, p);
            if (!(p = skip_attributes(p + n)))
                return false;
            depth -= *p == '/';
            p += *p == '/';
        }
        if (*p != '>')
            return false;
    }
    return depth == 0 && references_are_whole(xml) && characters_are_allowed(xml);
}

static void the_judge_tells_good_from_bad(void **state)
{
    (void)state;
    assert_true(well_formed("<?xml version=\"1.0\"?>\n<a b=\"1\"><c/>x&#38;</a>\n"));
    assert_false(well_formed("<?xml version=\"1.0\"?><a><c></a>"));
    assert_false(well_formed("<?xml version=\"1.0\"?><a b=\"<\"/>"));
    assert_false(well_formed("<?xml version=\"1.0\"?><a>&</a>"));
    assert_false(well_formed("<?xml version=\"1.0\"?><a>\x01</a>"));
    assert_false(well_formed("<?xml version=\"1.0\"?><a>\xff</a>"));
}

/* --- junit ------------------------------------------------------------------------------------ */

static void junit_survives_any_reason(void **state)
{
    static const char nasty[] =
        "]]> <b> & \"quoted\" 'q' \x01\x1b[31m \xff\xfe \xc3\xa9 \xef\xbf\xbf\ttab\nline";
    static const enum verdict verdicts[] = {VERDICT_PASS, VERDICT_FAIL, VERDICT_SKIP,
                                            VERDICT_MISTRUST, VERDICT_ERROR};
    const struct verify_record *list[5];
    struct text out;

    (void)state;
    text_init(&out);
    for (int i = 0; i < 5; i++) {
        struct verify_record *r = synthetic_verify("op a=1 <&>", verdicts[i]);

        snprintf(r->reason, sizeof r->reason, "%s", nasty);
        snprintf(r->repro, sizeof r->repro, "%s", nasty);
        r->device_s = i == 0 ? NAN64 : 0.5;
        list[i] = r;
    }
    junit_write(&out, "suite \"x\"", "2026-01-01T00:00:00Z", list, 5);
    assert_true(well_formed(out.data));
    assert_non_null(
        strstr(out.data, "tests=\"5\" failures=\"2\" errors=\"1\" skipped=\"1\" time=\"2.0"));
    assert_non_null(strstr(out.data, "type=\"MISTRUST\""));
    assert_null(strstr(out.data, "nan"));
    for (int i = 0; i < 5; i++)
        free((void *)(uintptr_t)list[i]);
    text_release(&out);
}

static void junit_of_nothing_is_a_document(void **state)
{
    struct text out;

    (void)state;
    text_init(&out);
    junit_write(&out, "empty", "", NULL, 0);
    assert_true(well_formed(out.data));
    assert_non_null(strstr(out.data, "tests=\"0\""));
    text_release(&out);
}

/* --- escapes and tables ----------------------------------------------------------------------- */

static void escapes_keep_the_format(void **state)
{
    struct text t;

    (void)state;
    text_init(&t);
    escape_xml(&t, "a<b>&\"'\n\x02\xff\xe2\x82\xac");
    assert_string_equal(t.data,
                        "a&#60;b&#62;&#38;&#34;&#39;&#10;\xef\xbf\xbd\xef\xbf\xbd\xe2\x82\xac");
    text_clear(&t);
    escape_markdown(&t, "a|b\n`c` <d> [e](f) *g* _h_");
    assert_string_equal(t.data, "a\\|b \\`c\\` \\<d\\> \\[e\\](f) \\*g\\* \\_h\\_");
    text_clear(&t);
    escape_gnuplot(&t, "a\"b\\n\n`id`");
    assert_string_equal(t.data, "\"a\\\"b\\\\n `id`\"");
    text_clear(&t);
    escape_line(&t, "a\x1b[2Jb\nc\td\x7f\xc2\x9b"
                    "e\xc2\xa0\xff\xe2\x82\xac");
    assert_string_equal(t.data, "a [2Jb c d  e\xc2\xa0\xef\xbf\xbd\xe2\x82\xac");
    text_release(&t);
}

/* A record's text neither adds a row nor reaches the terminal's cursor. */
static void a_cell_stays_on_its_line(void **state)
{
    static const struct column columns[] = {{"case", 'l'}, {"verdict", 'l'}};
    struct table t;
    struct text out;

    (void)state;
    text_init(&out);
    table_init(&t, columns, 2);
    table_cell(&t, "op\x1b[1A\nop b=1  PASS");
    table_cell(&t, "FAIL");
    table_text(&t, &out);
    assert_string_equal(out.data, "case                 verdict\n"
                                  "op [1A op b=1  PASS  FAIL\n");
    table_release(&t);
    text_release(&out);
}

static void tables_align(void **state)
{
    static const struct column columns[] = {{"name", 'l'}, {"value", 'r'}, {"", 'l'}};
    struct table t;
    struct text out;

    (void)state;
    text_init(&out);
    table_init(&t, columns, 3);
    table_cell(&t, "short");
    table_cell(&t, "%d", 7);
    table_cell(&t, "x");
    table_cell(&t, "\xc3\xa9 is longer");
    table_cell(&t, "12345678");
    table_cell(&t, "%s", "");
    table_cell(&t, "a cell of an unfinished row is not shown");
    assert_int_equal(table_rows(&t), 2);
    table_text(&t, &out);
    assert_string_equal(out.data, "name            value\n"
                                  "short               7  x\n"
                                  "\xc3\xa9 is longer  12345678\n");
    text_clear(&out);
    table_markdown(&t, &out);
    assert_string_equal(out.data, "| name | value |  |\n|---|---:|---|\n| short | 7 | x |\n"
                                  "| \xc3\xa9 is longer | 12345678 |  |\n");
    text_clear(&out);
    table_html(&t, &out);
    assert_non_null(strstr(out.data, "<td class=\"r\">12345678</td>"));
    table_release(&t);
    text_release(&out);
}

static void utf8_is_told_from_bytes(void **state)
{
    (void)state;
    assert_int_equal(utf8_length("a"), 1);
    assert_int_equal(utf8_length("\xc3\xa9"), 2);
    assert_int_equal(utf8_length("\xe2\x82\xac"), 3);
    assert_int_equal(utf8_length("\xf0\x9f\x98\x80"), 4);
    assert_int_equal(utf8_length("\xc0\x80"), 0);         /* overlong */
    assert_int_equal(utf8_length("\xed\xa0\x80"), 0);     /* a surrogate */
    assert_int_equal(utf8_length("\xf4\x90\x80\x80"), 0); /* above U+10FFFF */
    assert_int_equal(utf8_length("\xe2\x82"), 0);         /* cut off */
    assert_int_equal(utf8_count("a\xc3\xa9\xff"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_judge_tells_good_from_bad),
        cmocka_unit_test(junit_survives_any_reason),
        cmocka_unit_test(junit_of_nothing_is_a_document),
        cmocka_unit_test(escapes_keep_the_format),
        cmocka_unit_test(a_cell_stays_on_its_line),
        cmocka_unit_test(tables_align),
        cmocka_unit_test(utf8_is_told_from_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
