/*
 * What a run says on standard error while it goes on: how far it is, in one line that is
 * overwritten, on a terminal only; notes; and warnings, each once however many workers and cases
 * have it.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    bool terminal; /* standard error is one */
    char **told;   /* the warnings so far */
    size_t ntold;
};

void progress_init(struct progress *p);
void progress_release(struct progress *p); /* takes the line away */

/* Shows the line, cut to the terminal's width: what ran over into a second row would stay there. */
void progress_show(const struct progress *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Takes it away: before anything else is printed, on either stream. */
void progress_clear(const struct progress *p);

/* One line `deltarig: <what>: <text>`. */
void progress_note(const struct progress *p, const char *what, const char *text);
/* The same with "warning", the first time; `progress` is a struct progress. */
void progress_warn(void *progress, const char *text);

#endif
