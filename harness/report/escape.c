#include "report/escape.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

/* The characters that XML 1.0 (section 2.2) allows; `n` is the length of the sequence at s. */
static bool xml_allows(const char *s, size_t n)
{
    unsigned char c = (unsigned char)*s;

    if (n == 1)
        return c >= 0x20 || c == '\t' || c == '\n' || c == '\r';
    return n != 0 && memcmp(s, "\xef\xbf\xbe", 3) != 0 && memcmp(s, "\xef\xbf\xbf", 3) != 0;
}

void escape_xml(struct text *out, const char *s)
{
    while (*s) {
        size_t n = utf8_length(s);

        if (!xml_allows(s, n))
            text_add(out, UTF8_REPLACEMENT);
        else if (strchr("&<>\"'\t\n\r", *s))
            text_addf(out, "&#%d;", *s);
        else
            text_add_bytes(out, s, n);
        s += n ? n : 1;
    }
}

void escape_markdown(struct text *out, const char *s)
{
    while (*s) {
        size_t n = utf8_length(s);
        unsigned char c = (unsigned char)*s;

        if (n == 0)
            text_add(out, UTF8_REPLACEMENT);
        else if (c < 0x20 || c == 0x7f)
            text_add(out, " ");
        else if (strchr("\\`*_{}[]<>#|~", c))
            text_addf(out, "\\%c", c);
        else
            text_add_bytes(out, s, n);
        s += n ? n : 1;
    }
}

void escape_line(struct text *out, const char *s)
{
    while (*s) {
        size_t n = utf8_length(s);
        unsigned char c = (unsigned char)*s;
        bool c1 = n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0; /* U+0080 to U+009F */

        if (n == 0)
            text_add(out, UTF8_REPLACEMENT);
        else if (c < 0x20 || c == 0x7f || c1)
            text_add(out, " ");
        else
            text_add_bytes(out, s, n);
        s += n ? n : 1;
    }
}

void escape_gnuplot(struct text *out, const char *s)
{
    text_add(out, "\"");
    while (*s) {
        size_t n = utf8_length(s);
        unsigned char c = (unsigned char)*s;

        if (n == 0)
            text_add(out, UTF8_REPLACEMENT);
        else if (c < 0x20 || c == 0x7f)
            text_add(out, " ");
        else if (c == '"' || c == '\\')
            text_addf(out, "\\%c", c);
        else
            text_add_bytes(out, s, n);
        s += n ? n : 1;
    }
    text_add(out, "\"");
}
