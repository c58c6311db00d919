/*
 * Other programs: quoting for a POSIX shell, running one without a shell, reading what it prints.
 */
#ifndef BASE_SHELL_H
#define BASE_SHELL_H

#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* Appends `word` so that a POSIX shell reads it back as one word: as it is when it holds
   only safe characters, else in single quotes. */
void shell_quote(struct text *out, const char *word);

/*
 * Runs argv[0] (searched in PATH, no shell) in the folder `dir` (NULL: where we are), waits for
 * it, and appends up to `limit` bytes of its standard output to `out`, the rest is read and
 * dropped; standard error joins it when `with_stderr`, else goes to /dev/null. *status is its
 * exit code, or 128 + the signal that ended it. ERR_MISSING when the program is not there,
 * ERR_SYSTEM when it cannot be started; an exit code other than 0 is data, not an error.
 */
struct shell_run {
    const char *dir;
    size_t limit;
    int with_stderr;
};
int shell_capture(char *const argv[], const struct shell_run *how, struct text *out, int *status,
                  struct err *err);

#endif
