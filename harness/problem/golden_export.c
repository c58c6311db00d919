#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "problem/golden.h"
#include "problem/npy.h"

static const char *descr_of(enum dtype t)
{
    switch (t) {
    case DTYPE_BF16:
        return "<u2";
    case DTYPE_F32:
        return "<f4";
    case DTYPE_U32:
        return "<u4";
    case DTYPE_PTR:
        break;
    }
    return NULL;
}

static int export_array(const char *dir, const struct buffer *b, const char *what,
                        const char *descr, const void *data, size_t size, struct err *err)
{
    char path[4096];
    if (data == NULL)
        return 0;
    snprintf(path, sizeof(path), "%s/%s.%s.npy", dir, b->name, what);
    return npy_write(path, descr, b->dim, b->ndim, data, b->count * size, err);
}

int golden_export(const char *dir, const struct problem *p, const struct golden *g, struct err *err)
{
    if (dir_make(dir, err) < 0)
        return -1;
    for (unsigned i = 0; i < p->count; i++) {
        const struct buffer *b = &p->buffer[i];
        const struct expectation *e = &g->of[i];
        const char *descr = descr_of(b->dtype);
        if (descr == NULL)
            continue;
        if (export_array(dir, b, "init", descr, b->init, dtype_size(b->dtype), err) < 0)
            return -1;
        if (e->value == NULL)
            continue;
        if (export_array(dir, b, "expect", "|u1", e->expect, 1, err) < 0 ||
            export_array(dir, b, "value", "<f8", e->value, sizeof(*e->value), err) < 0 ||
            export_array(dir, b, "worst", "<f4", e->worst, sizeof(*e->worst), err) < 0 ||
            export_array(dir, b, "likely", "<f4", e->likely, sizeof(*e->likely), err) < 0)
            return -1;
    }
    return 0;
}
