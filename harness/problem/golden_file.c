/*
 * The golden cache's files, format GOLDEN_FORMAT, little-endian:
 *
 *     header   8 bytes magic, u32 format, u32 buffers, u32 length of the text, u32 0, 16 bytes key
 *     text     the case text
 *     buffer   u32 length of its name, the name, u64 elements, u8 form, u8 fill, u8 has values,
 *              u8 has bounds; form ARRAY: a byte of enum expect each; values: f64 each; bounds:
 *              f32 worst each, then f32 likely each
 *     end      16 bytes checksum over all before it
 *
 * Every size is known from the problem before it is read, so a hostile file cannot make the reader
 * allocate; the checksum is folded piece by piece, in the pieces that are written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "problem/golden.h"
#include "problem/operator.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "golden files are little-endian; this machine needs byte swaps here"
#endif

#define MAGIC "DELTAGLD"
#define STALE 1 /* made by another reference, from other inputs, or in another format */

enum form { FORM_KEEP, FORM_UNIFORM, FORM_ARRAY };

struct header {
    char magic[8];
    uint32_t format, buffers, text_len, unused;
    struct hash key;
};

struct section {
    uint64_t count;
    uint8_t form, fill, values, bounds;
};

static struct hash hash_buffer(const struct buffer *b)
{
    uint64_t shape[3 + BUFFER_MAX_DIMS] = {b->dtype, b->role, b->ndim};
    for (unsigned d = 0; d < b->ndim; d++)
        shape[3 + d] = b->dim[d];
    struct hash h =
        hash_join(hash_bytes(b->name, strlen(b->name)), hash_bytes(shape, sizeof(shape)));
    h = hash_join(h, hash_bytes(b->init, b->bytes));
    for (size_t i = 0; b->refs != NULL && i < b->count; i++) {
        uint64_t ref[2] = {(uint64_t)(int64_t)b->refs[i].buffer, b->refs[i].offset};
        h = hash_join(h, hash_bytes(ref, sizeof(ref)));
    }
    return h;
}

static struct hash golden_key(const struct problem *p)
{
    uint64_t versions[2] = {GOLDEN_FORMAT, p->tc.op->reference_version};
    struct hash h = hash_join(case_hash(&p->tc), hash_bytes(versions, sizeof(versions)));
    h = hash_join(h, hash_bytes(reference_digest, strlen(reference_digest)));
    for (unsigned i = 0; i < p->count; i++)
        h = hash_join(h, hash_buffer(&p->buffer[i]));
    return h;
}

void golden_path(const char *dir, const struct problem *p, char *out, size_t n)
{
    char hex[HASH_HEX];
    hash_hex(case_hash(&p->tc), hex);
    snprintf(out, n, "%s/%s.golden", dir, hex);
}

/* --- writing ---------------------------------------------------------------------------------- */

struct stream {
    FILE *file;
    const char *path;
    struct hash sum;
};

static bool put(struct stream *s, const void *bytes, size_t n)
{
    s->sum = hash_join(s->sum, hash_bytes(bytes, n));
    return n == 0 || fwrite(bytes, n, 1, s->file) == 1;
}

static struct section describe(const struct expectation *e)
{
    struct section s = {.count = e->count, .form = FORM_KEEP};
    if (e->expect == NULL || e->count == 0)
        return s;
    s.form = FORM_UNIFORM;
    s.fill = e->expect[0];
    for (size_t i = 0; i < e->count; i++) {
        if (e->expect[i] != s.fill)
            s.form = FORM_ARRAY;
        s.values |= e->expect[i] == EXPECT_VALUE || e->expect[i] == EXPECT_EXACT;
        s.bounds |= e->expect[i] == EXPECT_VALUE;
    }
    if (s.form == FORM_ARRAY)
        s.fill = 0;
    return s;
}

static bool put_section(struct stream *out, const struct buffer *b, const struct expectation *e)
{
    struct section s = describe(e);
    uint32_t name_len = (uint32_t)strlen(b->name);
    size_t n = e->count;
    uint8_t flags[4] = {s.form, s.fill, s.values, s.bounds};
    return put(out, &name_len, sizeof(name_len)) && put(out, b->name, name_len) &&
           put(out, &s.count, sizeof(s.count)) && put(out, flags, sizeof(flags)) &&
           (s.form != FORM_ARRAY || put(out, e->expect, n)) &&
           (!s.values || put(out, e->value, n * sizeof(*e->value))) &&
           (!s.bounds || (put(out, e->worst, n * sizeof(*e->worst)) &&
                          put(out, e->likely, n * sizeof(*e->likely))));
}

static bool put_all(struct stream *out, const struct problem *p, const struct golden *g)
{
    struct header h = {.format = GOLDEN_FORMAT,
                       .buffers = g->count,
                       .text_len = (uint32_t)strlen(p->tc.text),
                       .key = golden_key(p)};
    memcpy(h.magic, MAGIC, sizeof(h.magic));
    if (!put(out, &h, sizeof(h)) || !put(out, p->tc.text, h.text_len))
        return false;
    for (unsigned i = 0; i < g->count; i++)
        if (!put_section(out, &p->buffer[i], &g->of[i]))
            return false;
    struct hash sum = out->sum;
    return put(out, &sum, sizeof(sum));
}

int golden_store(const char *dir, const struct problem *p, const struct golden *g, struct err *err)
{
    char path[4096], temp[4128];
    if (dir_make(dir, err) < 0)
        return -1;
    golden_path(dir, p, path, sizeof(path));
    snprintf(temp, sizeof(temp), "%s.tmp.%ld", path, (long)getpid());
    struct stream out = {.file = fopen(temp, "wb"), .path = path};
    if (out.file == NULL)
        return err_set(err, ERR_SYSTEM, "%s: cannot create: %s", temp, strerror(errno));
    bool ok = put_all(&out, p, g);
    int why = errno;
    if (fclose(out.file) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(temp, path) == 0)
        return 0;
    if (ok)
        why = errno;
    unlink(temp);
    return err_set(err, ERR_SYSTEM, "%s: cannot write: %s", path, strerror(why));
}

/* --- reading ---------------------------------------------------------------------------------- */

static int bad(const struct stream *in, const char *what, struct err *err)
{
    return err_set(err, ERR_INPUT, "%s: %s; delete the file, the next verify computes it anew",
                   in->path, what);
}

static int get(struct stream *in, void *bytes, size_t n, struct err *err)
{
    if (n > 0 && fread(bytes, n, 1, in->file) != 1)
        return bad(in, ferror(in->file) ? "cannot be read" : "truncated golden", err);
    in->sum = hash_join(in->sum, hash_bytes(bytes, n));
    return 0;
}

/* Reads n bytes that must be these. */
static int get_same(struct stream *in, const void *want, size_t n, const char *what,
                    struct err *err)
{
    char have[CASE_MAX_TEXT];
    if (n > sizeof(have))
        return bad(in, what, err);
    if (get(in, have, n, err) < 0)
        return -1;
    return memcmp(have, want, n) == 0 ? 0 : bad(in, what, err);
}

static int get_array(struct stream *in, void **out, size_t count, size_t size, struct err *err)
{
    *out = xcalloc(count > 0 ? count : 1, size);
    return get(in, *out, count * size, err);
}

static int get_expect(struct stream *in, const struct section *s, struct expectation *e,
                      struct err *err)
{
    void *expect;
    if (s->form == FORM_ARRAY) {
        if (get_array(in, &expect, s->count, 1, err) < 0) {
            free(expect);
            return -1;
        }
    } else {
        expect = xcalloc(s->count > 0 ? s->count : 1, 1);
        memset(expect, s->fill, s->count);
    }
    e->expect = expect;
    e->count = s->count;
    struct section seen = describe(e);
    for (size_t i = 0; i < e->count; i++)
        if (e->expect[i] > EXPECT_FREE)
            return bad(in, "corrupt golden (an unknown expectation)", err);
    if (seen.values != s->values || seen.bounds != s->bounds)
        return bad(in, "corrupt golden (its flags contradict its elements)", err);
    return 0;
}

static int get_section(struct stream *in, const struct buffer *b, struct expectation *e,
                       struct err *err)
{
    struct section s = {.count = 0};
    uint32_t name_len = (uint32_t)strlen(b->name);
    uint8_t flags[4];
    const char *other = "golden of another problem";
    if (get_same(in, &name_len, sizeof(name_len), other, err) < 0 ||
        get_same(in, b->name, name_len, other, err) < 0 ||
        get(in, &s.count, sizeof(s.count), err) < 0 || get(in, flags, sizeof(flags), err) < 0)
        return -1;
    s.form = flags[0];
    s.fill = flags[1];
    s.values = flags[2];
    s.bounds = flags[3];
    if (s.form > FORM_ARRAY || (s.count != b->count && !(s.count == 0 && s.form == FORM_KEEP)))
        return bad(in, "corrupt golden (impossible section)", err);
    if (s.form == FORM_KEEP)
        return s.values || s.bounds ? bad(in, "corrupt golden (impossible section)", err) : 0;
    if (get_expect(in, &s, e, err) < 0)
        return -1;
    void *value = NULL, *worst = NULL, *likely = NULL;
    int rc = 0;
    if (s.values)
        rc = get_array(in, &value, s.count, sizeof(*e->value), err);
    if (s.bounds && rc == 0)
        rc = get_array(in, &worst, s.count, sizeof(*e->worst), err);
    if (s.bounds && rc == 0)
        rc = get_array(in, &likely, s.count, sizeof(*e->likely), err);
    e->value = value;
    e->worst = worst;
    e->likely = likely;
    return rc;
}

static int get_all(struct stream *in, const struct problem *p, struct golden *g, struct err *err)
{
    struct header h;
    if (get(in, &h, sizeof(h), err) < 0)
        return -1;
    if (memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0)
        return bad(in, "not a golden file", err);
    if (h.format != GOLDEN_FORMAT)
        return STALE;
    if (h.text_len != strlen(p->tc.text))
        return bad(in, "golden of another case", err);
    if (get_same(in, p->tc.text, h.text_len, "golden of another case", err) < 0)
        return -1;
    if (!hash_equal(h.key, golden_key(p)))
        return STALE;
    if (h.buffers != p->count)
        return bad(in, "corrupt golden (impossible header)", err);
    for (unsigned i = 0; i < p->count; i++) {
        free(g->of[i].expect); /* the FREE that golden_init() gave to scratch */
        g->of[i] = (struct expectation){.count = 0};
        if (get_section(in, &p->buffer[i], &g->of[i], err) < 0)
            return -1;
    }
    struct hash want = in->sum, have;
    if (get(in, &have, sizeof(have), err) < 0)
        return -1;
    if (!hash_equal(want, have))
        return bad(in, "corrupt golden (its checksum does not match)", err);
    return fgetc(in->file) == EOF ? 0 : bad(in, "corrupt golden (bytes behind its end)", err);
}

int golden_load(const char *dir, const struct problem *p, struct golden *g, struct err *err)
{
    char path[4096];
    golden_path(dir, p, path, sizeof(path));
    struct stream in = {.file = fopen(path, "rb"), .path = path};
    if (in.file == NULL && (errno == ENOENT || errno == ENOTDIR))
        return 1;
    if (in.file == NULL)
        return err_set(err, ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
    int rc = get_all(&in, p, g, err);
    fclose(in.file);
    if (rc < 0) {
        golden_release(g);
        golden_init(g, p);
    }
    return rc;
}
