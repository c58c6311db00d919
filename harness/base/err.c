#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line, always: a newline inside an error text would break the tables and records it
   ends in. */
static void keep_one_line(char *text)
{
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
}

static void format_text(char *out, size_t n, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

static void format_text(char *out, size_t n, const char *fmt, va_list args)
{
    int needed = vsnprintf(out, n, fmt, args);

    if (needed < 0)
        snprintf(out, n, "(an error text that could not be formatted)");
    else if ((size_t)needed >= n)
        memcpy(out + n - 4, "...", 4);
    keep_one_line(out);
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    /* Formatted aside, because the arguments may include err->text itself. */
    char text[sizeof err->text];
    va_list args;

    va_start(args, fmt);
    format_text(text, sizeof text, fmt, args);
    va_end(args);
    err->kind = kind;
    memcpy(err->text, text, sizeof text);
    return -1;
}

int err_context(struct err *err, const char *fmt, ...)
{
    char context[sizeof err->text];
    va_list args;

    va_start(args, fmt);
    format_text(context, sizeof context, fmt, args);
    va_end(args);
    return err_set(err, err->kind, "%s: %s", context, err->text);
}

const char *err_kind_name(enum err_kind kind)
{
    switch (kind) {
    case ERR_NONE:
        return "none";
    case ERR_INPUT:
        return "input";
    case ERR_REFUSED:
        return "refused";
    case ERR_FAULT:
        return "fault";
    case ERR_MISSING:
        return "missing";
    case ERR_SYSTEM:
        return "system";
    }
    return "none";
}

_Noreturn void bug_at(const char *file, int line, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "BUG %s:%d: ", file, line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
