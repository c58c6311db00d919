#include <stdio.h>
#include <string.h>

#include "problem/operator.h"

static const char *side_bytes(const struct outcome *out, const char *name, struct identity_side s,
                              size_t count)
{
    const struct problem *p = out->problem;
    if (s.buffer < 0 || (unsigned)s.buffer >= p->count)
        BUG("identity %s: buffer %d", name, s.buffer);
    const struct buffer *b = &p->buffer[s.buffer];
    if (s.first > b->count || count > b->count - s.first)
        BUG("identity %s: [%zu, +%zu) of buffer %s with %zu", name, s.first, count, b->name,
            b->count);
    if (b->dtype == DTYPE_PTR)
        BUG("identity %s: buffer %s holds addresses", name, b->name);
    const char *base = s.initial ? b->init : out->data[s.buffer];
    return base + s.first * dtype_size(b->dtype);
}

static void side_text(struct text *t, const struct outcome *out, struct identity_side s,
                      const char *bytes, size_t i, size_t size)
{
    const struct buffer *b = &out->problem->buffer[s.buffer];
    char where[128];
    uint32_t bits = 0;
    memcpy(&bits, bytes + i * size, size);
    buffer_index_text(b, s.first + i, where, sizeof(where));
    text_addf(t, "%s%s holds %.9g (0x%0*x)", where, s.initial ? " before the launch" : "",
              dtype_load(b->dtype, bytes, i), (int)(2 * size), bits);
}

void identity_equal(struct identity_report *rep, const struct outcome *out, const char *name,
                    struct identity_side a, struct identity_side b, size_t count)
{
    const char *left = side_bytes(out, name, a, count), *right = side_bytes(out, name, b, count);
    size_t size = dtype_size(out->problem->buffer[a.buffer].dtype);
    if (size != dtype_size(out->problem->buffer[b.buffer].dtype))
        BUG("identity %s: elements of different sizes", name);
    rep->checked++;
    if (memcmp(left, right, count * size) == 0)
        return;
    rep->broken++;
    if (rep->broken > 1)
        return;
    size_t differ = 0, first = count;
    for (size_t i = 0; i < count; i++) {
        if (memcmp(left + i * size, right + i * size, size) == 0)
            continue;
        if (differ++ == 0)
            first = i;
    }
    text_addf(&rep->text, "%s: ", name);
    side_text(&rep->text, out, a, left, first, size);
    text_add(&rep->text, ", ");
    side_text(&rep->text, out, b, right, first, size);
    text_addf(&rep->text, "; %zu of %zu elements differ", differ, count);
}
