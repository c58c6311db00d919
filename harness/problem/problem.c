#include "problem/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/*
 * The poison of every type. The two NaNs are signalling ones: arithmetic on one gives a quiet NaN
 * of other bits, so "still poison" means "never written", and "computed from poison" shows up as
 * NaN. The words are too large to be an index or a count, and the address is nobody's.
 */
#define POISON_BF16 UINT16_C(0x7fa5)
#define POISON_F32  UINT32_C(0x7fa5dead)
#define POISON_U32  UINT32_C(0xdeadbeef)
#define POISON_PTR  UINT64_C(0xdeadbeefdeadbee0)

void problem_init(struct problem *p, const struct test_case *tc)
{
    memset(p, 0, sizeof(*p));
    p->tc = *tc;
}

void problem_init_hollow(struct problem *p, const struct test_case *tc)
{
    problem_init(p, tc);
    p->hollow = true;
}

void problem_release(struct problem *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        free(p->buffer[i].init);
        free(p->buffer[i].refs);
    }
    memset(p, 0, sizeof(*p));
}

static size_t problem_bytes(const struct problem *p)
{
    size_t sum = 0;
    for (unsigned i = 0; i < p->count; i++)
        sum += p->buffer[i].bytes;
    return sum;
}

static int set_dims(struct buffer *b, const struct dim *dims, struct err *err)
{
    b->count = 1;
    for (; dims[b->ndim].axis != NULL; b->ndim++) {
        if (b->ndim == BUFFER_MAX_DIMS)
            BUG("buffer %s has more than %d dims", b->name, BUFFER_MAX_DIMS);
        size_t size = dims[b->ndim].size;
        b->axis[b->ndim] = dims[b->ndim].axis;
        b->dim[b->ndim] = size;
        if (!size_product(b->count, size, &b->count))
            return err_set(err, ERR_INPUT,
                           "buffer %s: its dims multiply to more than 2^64 elements", b->name);
    }
    if (!size_product(b->count, dtype_size(b->dtype), &b->bytes))
        return err_set(err, ERR_INPUT, "buffer %s: more than 2^64 bytes", b->name);
    return 0;
}

static void set_contents(struct buffer *b)
{
    b->init = xcalloc(b->bytes > 0 ? b->bytes : 1, 1);
    if (b->role == ROLE_OUT || b->role == ROLE_SCRATCH)
        buffer_poison(b, 0, b->count);
    if (b->dtype != DTYPE_PTR)
        return;
    b->refs = xcalloc(b->count > 0 ? b->count : 1, sizeof(*b->refs));
    for (size_t i = 0; i < b->count; i++)
        b->refs[i].buffer = POINTER_POISON;
}

int problem_add(struct problem *p, const char *name, enum dtype dtype, enum role role,
                const struct dim *dims, int *id, struct err *err)
{
    if (p->count == PROBLEM_MAX_BUFFERS)
        BUG("buffer %s: a problem has at most %d buffers", name, PROBLEM_MAX_BUFFERS);
    if (problem_find(p, name) >= 0)
        BUG("buffer %s is declared twice", name);
    if (dtype == DTYPE_PTR && role != ROLE_IN)
        BUG("buffer %s: pointer tables are inputs", name);
    struct buffer *b = &p->buffer[p->count];
    *b = (struct buffer){.name = name, .dtype = dtype, .role = role};
    b->hollow = p->hollow && (dtype == DTYPE_BF16 || dtype == DTYPE_F32);
    if (set_dims(b, dims, err) < 0)
        return -1;
    size_t held = problem_bytes(p);
    if (b->bytes > PROBLEM_MAX_BYTES - held)
        return err_set(err, ERR_INPUT,
                       "buffer %s: %zu bytes, and %zu in the buffers before it, are more than the "
                       "limit of %zu; make the dims smaller",
                       name, b->bytes, held, PROBLEM_MAX_BYTES);
    set_contents(b);
    *id = (int)p->count++;
    return 0;
}

int problem_find(const struct problem *p, const char *name)
{
    for (unsigned i = 0; i < p->count; i++)
        if (strcmp(p->buffer[i].name, name) == 0)
            return (int)i;
    return -1;
}

void buffer_poison(struct buffer *b, size_t first, size_t count)
{
    if (first > b->count || count > b->count - first)
        BUG("buffer %s: poison of [%zu, +%zu) of %zu", b->name, first, count, b->count);
    if (b->hollow)
        return;
    for (size_t i = first; i < first + count; i++) {
        switch (b->dtype) {
        case DTYPE_BF16:
            ((uint16_t *)b->init)[i] = POISON_BF16;
            break;
        case DTYPE_F32:
            ((uint32_t *)b->init)[i] = POISON_F32;
            break;
        case DTYPE_U32:
            ((uint32_t *)b->init)[i] = POISON_U32;
            break;
        case DTYPE_PTR:
            ((uint64_t *)b->init)[i] = POISON_PTR;
            break;
        }
    }
}

bool poison_is(enum dtype t, const void *array, size_t i)
{
    switch (t) {
    case DTYPE_BF16:
        return ((const uint16_t *)array)[i] == POISON_BF16;
    case DTYPE_F32:
        return ((const uint32_t *)array)[i] == POISON_F32;
    case DTYPE_U32:
        return ((const uint32_t *)array)[i] == POISON_U32;
    case DTYPE_PTR:
        return ((const uint64_t *)array)[i] == POISON_PTR;
    }
    BUG("dtype %d", (int)t);
}

void buffer_index_text(const struct buffer *b, size_t i, char *out, size_t n)
{
    size_t index[BUFFER_MAX_DIMS] = {0};
    for (unsigned d = b->ndim; d-- > 0;) {
        index[d] = b->dim[d] > 0 ? i % b->dim[d] : 0;
        i = b->dim[d] > 0 ? i / b->dim[d] : 0;
    }
    size_t used = (size_t)snprintf(out, n, "%s[", b->name);
    for (unsigned d = 0; d < b->ndim && used < n; d++)
        used += (size_t)snprintf(out + used, n - used, "%s%s=%zu", d > 0 ? " " : "", b->axis[d],
                                 index[d]);
    if (used < n)
        snprintf(out + used, n - used, "]");
}
