#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

bool size_product(size_t a, size_t b, size_t *out)
{
    size_t product;

    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

void *xcalloc(size_t count, size_t size)
{
    /* At least one byte, so that NULL always means failure. */
    void *p = calloc(count ? count : 1, size ? size : 1);

    if (!p)
        BUG("out of memory: %zu elements of %zu bytes", count, size);
    return p;
}

void *xrealloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    void *p;

    if (!size_product(count, size, &bytes))
        BUG("%zu elements of %zu bytes overflow", count, size);
    p = realloc(old, bytes ? bytes : 1);
    if (!p)
        BUG("out of memory: %zu bytes", bytes);
    return p;
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;

    return memcpy(xcalloc(n, 1), s, n);
}
