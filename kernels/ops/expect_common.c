/* From bounded values to expectations. */
#include "kernels/ops/expect_common.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"

double verdict_lambda(size_t values)
{
    return bounds_lambda(values > 0 ? (double)values : 1.0, BOUNDS_ALARM);
}

void expect_bounded(struct expectation *e, size_t i, struct bounded b, double lambda)
{
    expect_value(e, i, b.value, b.worst, bounded_likely(b, lambda));
}

float *buffer_floats(const struct buffer *b)
{
    float *out = xcalloc(b->count > 0 ? b->count : 1, sizeof(*out));

    for (size_t i = 0; i < b->count; i++)
        out[i] = (float)dtype_load(b->dtype, b->init, i);
    return out;
}

void buffer_copy(struct buffer *to, const struct buffer *from)
{
    if (to->dtype != from->dtype || to->count != from->count)
        BUG("buffers %s and %s differ in type or size", to->name, from->name);
    memcpy(to->init, from->init, from->bytes);
}

int add_rows(struct problem *p, const char *name, enum dtype dtype, enum role role,
             struct dim outer, struct dim inner, struct err *err)
{
    const struct dim dims[] = {outer, inner, {NULL, 0}};
    int id;

    return problem_add(p, name, dtype, role, dims, &id, err);
}

static double channel_scale(size_t channel)
{
    return channel % 16 == 3 ? 0x1p20 : channel % 16 == 9 ? 0x1p-20 : 1.0;
}

void scale_value_channels(struct buffer *b, size_t channels, size_t first, size_t count)
{
    for (size_t i = 0; i < count && !b->hollow; i++)
        dtype_store(b->dtype, b->init, first + i,
                    channel_scale(i % channels) * dtype_load(b->dtype, b->init, first + i));
}
