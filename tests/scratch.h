/*
 * A folder of its own for a test program, removed with what is in it.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scratch {
    char dir[256];
};

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
                                     struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void scratch_open(struct scratch *s)
{
    const char *parent = getenv("TMPDIR");

    /* mkdtemp wants six X at the end. */
    snprintf(s->dir, sizeof s->dir, "%s/deltarig-%*s", parent ? parent : P_tmpdir, 6, "");
    memset(s->dir + strlen(s->dir) - 6, 'X', 6);
    if (!mkdtemp(s->dir)) {
        perror(s->dir);
        exit(1);
    }
}

static inline void scratch_close(struct scratch *s)
{
    nftw(s->dir, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* "<folder>/<name>", in a buffer of the caller's. */
static inline const char *scratch_path(const struct scratch *s, const char *name, char *out,
                                       size_t n)
{
    snprintf(out, n, "%s/%s", s->dir, name);
    return out;
}

static inline void scratch_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

#endif
