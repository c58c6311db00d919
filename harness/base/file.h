/*
 * Files: whole reads with a stated limit, atomic replacement, durable appends, directories.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* Appends the file's bytes to `out`. ERR_INPUT naming the path when it is missing, a directory,
   unreadable, or longer than `limit` bytes. */
int file_read(const char *path, size_t limit, struct text *out, struct err *err);

/* Writes `path`.tmp.<pid>, fsyncs, renames: a reader sees the old or the new file, never half. What
   is there must be a regular file. */
int file_replace(const char *path, const void *bytes, size_t n, struct err *err);
/* Whether `path` could be written now: asked before long work whose result goes there. Makes and
   removes a file beside it. ERR_INPUT naming the path when it is a directory or nothing can be
   created there. */
int file_writable(const char *path, struct err *err);

/* Appends in one write() and fsyncs, so a crash afterwards loses nothing already appended. */
int file_append_sync(const char *path, const void *bytes, size_t n, struct err *err);

/* mkdir -p. */
int dir_make(const char *path, struct err *err);

bool file_exists(const char *path);

/* Calls `visit` for the name of each regular file, and each broken link, in the directory, in byte
   order; stops and returns -1 when visit does. ERR_INPUT when the directory cannot be read. */
int dir_each(const char *path, int (*visit)(const char *name, void *ctx, struct err *err),
             void *ctx, struct err *err);

#endif
