#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"

#define CLEAR         "\r\033[K"
#define USUAL_COLUMNS 80 /* when the terminal does not say */

void progress_init(struct progress *p)
{
    *p = (struct progress){.terminal = isatty(STDERR_FILENO)};
}

void progress_release(struct progress *p)
{
    progress_clear(p);
    for (size_t i = 0; i < p->ntold; i++)
        free(p->told[i]);
    free(p->told);
    *p = (struct progress){.terminal = false};
}

/* One less than there are: in the last one some terminals begin a new row. */
static int columns(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;

    return (known ? size.ws_col : USUAL_COLUMNS) - 1;
}

void progress_show(const struct progress *p, const char *fmt, ...)
{
    char text[512];
    va_list args;

    if (!p->terminal)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(stderr, CLEAR "%.*s", columns(), text);
}

void progress_clear(const struct progress *p)
{
    if (p->terminal)
        fputs(CLEAR, stderr);
}

void progress_note(const struct progress *p, const char *what, const char *text)
{
    progress_clear(p);
    fprintf(stderr, "deltarig: %s: %s\n", what, text);
}

void progress_warn(void *progress, const char *text)
{
    struct progress *p = progress;

    for (size_t i = 0; i < p->ntold; i++)
        if (!strcmp(p->told[i], text))
            return;
    p->told = xrealloc(p->told, p->ntold + 1, sizeof *p->told);
    p->told[p->ntold++] = xstrdup(text);
    progress_note(p, "warning", text);
}
