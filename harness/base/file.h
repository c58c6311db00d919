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

/* ERR_INPUT naming the path when a directory, a device, a pipe or the name of an open stream
   (/dev/stdout) is there: nothing that results are kept in. */
int file_refuse_special(const char *path, struct err *err);
/* Writes `path`.tmp.<pid>, fsyncs, renames: a reader sees the old or the new file, never half. What
   is there must be a regular file. */
int file_replace(const char *path, const void *bytes, size_t n, struct err *err);
/* Whether file_replace() would succeed now: asked before long work whose result goes there. Makes
   the folder, and makes and removes a file in it. ERR_INPUT naming the path when it would not. */
int file_writable(const char *path, struct err *err);
/* What follows the last '/' of a path; the path when it has none. Borrows. */
const char *path_last(const char *path);
/* Whether both name one file, or would if it were made. */
bool file_same(const char *a, const char *b);

/* Appends in one write() and fsyncs, so a crash afterwards loses nothing already appended. */
int file_append_sync(const char *path, const void *bytes, size_t n, struct err *err);

/* mkdir -p. */
int dir_make(const char *path, struct err *err);
int dir_make_parent(const char *path, struct err *err); /* the folder that a file is to lie in */
/* Makes the folder and finds out whether files can be made in it. ERR_INPUT naming it if not. */
int dir_writable(const char *path, struct err *err);

bool file_exists(const char *path);

/* Calls `visit` for the name of each regular file, and each broken link, in the directory, in byte
   order; stops and returns -1 when visit does. ERR_INPUT when the directory cannot be read. */
int dir_each(const char *path, int (*visit)(const char *name, void *ctx, struct err *err),
             void *ctx, struct err *err);

#endif
