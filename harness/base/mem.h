/*
 * Allocation that cannot be forgotten to be checked: these abort with a message when memory is
 * out (sizes that come from input files are validated with size_product() and limits BEFORE
 * allocation, so an abort here is a machine without memory, not a hostile file).
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *xcalloc(size_t count, size_t size);             /* zeroed; free() it */
void *xrealloc(void *old, size_t count, size_t size); /* overflow-checked count*size */
char *xstrdup(const char *s);

/* *out = a * b; false when it overflows size_t (then *out is untouched). */
bool size_product(size_t a, size_t b, size_t *out);

#endif
