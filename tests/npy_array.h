/*
 * Reads a whole .npy of little-endian bf16 bit patterns ('<u2'), floats or doubles as doubles, for
 * tests.
 */
#ifndef TESTS_NPY_ARRAY_H
#define TESTS_NPY_ARRAY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/dtype.h"

struct npy_array {
    size_t count;
    double *value; /* free() it */
};

static inline double npy_value(const unsigned char *at, size_t size)
{
    uint16_t half;
    float single;
    double wide;

    if (size == 8) {
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    if (size == 4) {
        memcpy(&single, at, sizeof(single));
        return (double)single;
    }
    memcpy(&half, at, sizeof(half));
    return (double)bf16_to_float(half);
}

/* tests/data/<name>.npy, which must be there: aborts otherwise. */
static inline struct npy_array npy_array_read(const char *name)
{
    static unsigned char bytes[1 << 20];
    char path[256];
    struct npy_array a;

    snprintf(path, sizeof(path), "tests/data/%s.npy", name);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        abort();
    }
    size_t n = fread(bytes, 1, sizeof(bytes) - 1, f);
    fclose(f);
    bytes[n] = '\0';
    size_t data = 10 + bytes[8] + 256 * (size_t)bytes[9];
    const char *descr = strstr((const char *)bytes + 10, "'<");
    if (n < data || descr == NULL || descr[3] < '2' || descr[3] > '8')
        abort();
    size_t size = (size_t)(descr[3] - '0');
    a.count = (n - data) / size;
    a.value = calloc(a.count, sizeof(*a.value));
    if (a.value == NULL)
        abort();
    for (size_t i = 0; i < a.count; i++)
        a.value[i] = npy_value(bytes + data + i * size, size);
    return a;
}

#endif
