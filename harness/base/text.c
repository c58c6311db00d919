#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define TEXT_FIRST_CAP 64

/* Makes room for `extra` more bytes and the NUL; doubling keeps appends amortised constant. */
static void reserve(struct text *t, size_t extra)
{
    size_t cap = t->cap;

    if (extra > SIZE_MAX / 2 - t->len - 1)
        BUG("a text of %zu and %zu bytes is too long", t->len, extra);
    while (cap < t->len + extra + 1)
        cap = cap * 2;
    if (cap == t->cap)
        return;
    t->data = xrealloc(t->data, cap, 1);
    t->cap = cap;
}

void text_init(struct text *t)
{
    t->data = xcalloc(TEXT_FIRST_CAP, 1);
    t->len = 0;
    t->cap = TEXT_FIRST_CAP;
}

void text_release(struct text *t)
{
    free(t->data);
    t->data = NULL;
    t->len = t->cap = 0;
}

void text_clear(struct text *t)
{
    t->len = 0;
    t->data[0] = '\0';
}

void text_add(struct text *t, const char *s)
{
    text_add_bytes(t, s, strlen(s));
}

void text_add_bytes(struct text *t, const void *bytes, size_t n)
{
    reserve(t, n);
    if (n)
        memcpy(t->data + t->len, bytes, n);
    t->len += n;
    t->data[t->len] = '\0';
}

void text_addf(struct text *t, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        BUG("text_addf: bad format \"%s\"", fmt);
    reserve(t, (size_t)n);
    va_start(args, fmt);
    vsnprintf(t->data + t->len, (size_t)n + 1, fmt, args);
    va_end(args);
    t->len += (size_t)n;
}

const char *plural(unsigned long long n)
{
    return n == 1 ? "" : "s";
}
