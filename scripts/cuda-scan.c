/* The scanner of cuda-prepass: words, literals, brackets. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda-prepass.h"

void die(const struct prepass *p, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s:%ld: error: ", p->file, p->line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

const char *skip_space(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return s;
}

/* Past the string or character literal at s; s itself when there is none. Raw strings included. */
const char *skip_literal(const char *s)
{
    if (s[0] == 'R' && s[1] == '"') {
        const char *open = strchr(s, '('), *end;
        size_t n = open ? (size_t)(open - s - 2) : 0;

        for (end = open; end && (end = strchr(end + 1, ')'));)
            if (!strncmp(end + 1, s + 2, n) && end[1 + n] == '"')
                return end + n + 2;
        return s + 1;
    }
    if (*s != '"' && *s != '\'')
        return s;
    for (const char *p = s + 1; *p && *p != '\n'; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == *s)
            return p + 1;
    }
    return s + 1;
}

/* Past the bracket that closes the one at s. */
const char *skip_group(const struct prepass *p, const char *s)
{
    int depth = 0;

    for (const char *q = s; *q;) {
        const char *lit = skip_literal(q);

        if (lit != q) {
            q = lit;
            continue;
        }
        depth += (*q == '(' || *q == '{' || *q == '[') - (*q == ')' || *q == '}' || *q == ']');
        q++;
        if (!depth)
            return q;
    }
    die(p, "no closing bracket for \"%.20s\"", s);
    return s;
}

struct span word_at(const char *s)
{
    const char *e = s;

    while (word_char(*e))
        e++;
    return (struct span){s, (size_t)(e - s)};
}

bool is(struct span w, const char *text)
{
    return w.len == strlen(text) && !memcmp(w.at, text, w.len);
}

void put(struct span s)
{
    fwrite(s.at, 1, s.len, stdout);
}

/* The newlines of a replaced text, so that later lines keep their numbers. */
void put_newlines(struct prepass *p, const char *from, const char *to)
{
    for (; from < to; from++)
        if (*from == '\n') {
            putchar('\n');
            p->line++;
        }
}

bool in_function(const struct prepass *p)
{
    for (unsigned i = 0; i < p->depth; i++)
        if (p->function[i])
            return true;
    return false;
}
