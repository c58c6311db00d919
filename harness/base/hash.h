/*
 * Content hashes (XXH3, 128 bit: a checksum and an identity, not a signature).
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hash {
    uint64_t hi, lo;
};

#define HASH_HEX 33 /* 32 digits and the NUL */

struct hash hash_bytes(const void *bytes, size_t n);
struct hash hash_join(struct hash a, struct hash b); /* order matters */
int hash_equal(struct hash a, struct hash b);
void hash_hex(struct hash h, char out[HASH_HEX]);
int hash_file(const char *path, struct hash *out, struct err *err);

#endif
