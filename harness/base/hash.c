#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/mem.h"

#define HASH_BLOCK 65536

static struct hash from_xxh(XXH128_hash_t h)
{
    return (struct hash){.hi = h.high64, .lo = h.low64};
}

static void put_big_endian(uint64_t v, unsigned char out[8])
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(v >> (56 - 8 * i));
}

struct hash hash_bytes(const void *bytes, size_t n)
{
    return from_xxh(XXH3_128bits(bytes, n));
}

struct hash hash_join(struct hash a, struct hash b)
{
    /* A fixed byte order, so that x86-64 and aarch64 (and any other machine) agree. */
    unsigned char both[32];

    put_big_endian(a.hi, both);
    put_big_endian(a.lo, both + 8);
    put_big_endian(b.hi, both + 16);
    put_big_endian(b.lo, both + 24);
    return hash_bytes(both, sizeof both);
}

int hash_equal(struct hash a, struct hash b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

void hash_hex(struct hash h, char out[HASH_HEX])
{
    snprintf(out, HASH_HEX, "%016llx%016llx", (unsigned long long)h.hi, (unsigned long long)h.lo);
}

static int hash_stream(int fd, const char *path, XXH3_state_t *state, struct err *err)
{
    unsigned char *block = xcalloc(HASH_BLOCK, 1);
    int rc = 0;

    for (;;) {
        ssize_t n = read(fd, block, HASH_BLOCK);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = err_set(err, ERR_INPUT, "%s: cannot read: %s", path, strerror(errno));
        if (n <= 0)
            break;
        XXH3_128bits_update(state, block, (size_t)n);
    }
    free(block);
    return rc;
}

int hash_file(const char *path, struct hash *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    XXH3_state_t *state;
    int rc;

    if (fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
    state = XXH3_createState();
    if (!state)
        BUG("out of memory: hash state");
    XXH3_128bits_reset(state);
    rc = hash_stream(fd, path, state, err);
    if (rc == 0)
        *out = from_xxh(XXH3_128bits_digest(state));
    XXH3_freeState(state);
    close(fd);
    return rc;
}
