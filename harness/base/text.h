/*
 * A growing text buffer. Invariants: data is never NULL after init and data[len] == '\0'.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

struct text {
    char *data;
    size_t len;
    size_t cap;
};

void text_init(struct text *t);
void text_release(struct text *t); /* safe to call twice */
void text_clear(struct text *t);   /* len = 0, keeps the memory */
void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, const void *bytes, size_t n);
void text_addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The end of a noun behind that number: "s", "" behind 1. */
const char *plural(unsigned long long n);

#endif
