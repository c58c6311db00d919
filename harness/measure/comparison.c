#include "measure/comparison.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

static void count_in(struct tally *t, size_t i)
{
    if (t->count++ == 0)
        t->first = i;
}

/* error/bound, where NaN in either is infinite: the callers look for a maximum. */
static double ratio_of(double error, double bound)
{
    if (error == 0.0 && bound >= 0.0)
        return 0.0;
    double ratio = error / bound;
    return ratio >= 0.0 ? ratio : INF64;
}

static bool is_bound(double x)
{
    return isfinite(x) && x >= 0.0;
}

static void classify(struct buffer_stats *s, double golden, double bound)
{
    s->exact_zeros += golden == 0.0;
    if (fabs(golden) <= bound && bound <= ZERO_BOUND) {
        s->zeros++;
        return;
    }
    s->golden_norm2 += golden * golden;
    s->bound_norm2 += bound * bound;
    if (fabs(golden) > bound)
        s->sharp++;
    else
        s->blind++;
}

struct element {
    const struct buffer *buffer;
    const void *before, *after;
    size_t i;
};

static void compare_value(struct element el, const struct expectation *e, struct buffer_stats *s)
{
    enum dtype t = el.buffer->dtype;
    double golden = e->value[el.i], likely = (double)e->likely[el.i],
           worst = (double)e->worst[el.i];
    double value = dtype_load(t, el.after, el.i);
    double error = fabs(value - golden);
    s->values++;
    if (!isfinite(golden) || !is_bound(likely) || !is_bound(worst)) {
        count_in(&s->unbounded, el.i);
        return;
    }
    if (isnan(error)) {
        error = INF64;
        count_in(&s->nans, el.i);
    }
    double bound = likely < worst ? likely : worst;
    if (!(error <= bound))
        count_in(&s->value_bad, el.i);
    if (el.buffer->role == ROLE_INOUT)
        s->idle += fabs(dtype_load(t, el.before, el.i) - golden) <= bound;
    classify(s, golden, bound);
    double ratio = ratio_of(error, bound);
    bool first = s->values == s->unbounded.count + 1;
    if (first || ratio > ratio_of(fabs(s->value - s->golden), s->bound)) {
        s->at = el.i;
        s->value = value;
        s->golden = golden;
        s->bound = bound;
    }
    s->max_error = error > s->max_error ? error : s->max_error;
    s->ratio_likely = fmax(s->ratio_likely, ratio_of(error, likely));
    s->ratio_worst = fmax(s->ratio_worst, ratio_of(error, worst));
}

static bool same_bits(const void *a, const void *b, size_t i, size_t size)
{
    return memcmp((const char *)a + i * size, (const char *)b + i * size, size) == 0;
}

static void compare_exact(struct element el, const struct expectation *e, struct buffer_stats *s)
{
    enum dtype t = el.buffer->dtype;
    size_t size = dtype_size(t);
    uint64_t want[1] = {0};
    dtype_store(t, want, 0, e->value[el.i]);
    s->exacts++;
    if (el.buffer->role == ROLE_INOUT)
        s->idle += memcmp((const char *)el.before + el.i * size, want, size) == 0;
    if (memcmp((const char *)el.after + el.i * size, want, size) == 0)
        return;
    if (s->exact_bad.count == 0) {
        s->exact_value = dtype_load(t, el.after, el.i);
        s->exact_golden = dtype_load(t, want, 0);
    }
    count_in(&s->exact_bad, el.i);
}

static void compare_element(struct element el, const struct expectation *e, struct buffer_stats *s)
{
    const struct buffer *b = el.buffer;
    enum expect what = expectation_at(e, el.i);
    if (what == EXPECT_FREE) {
        s->frees++;
        return;
    }
    if (what == EXPECT_KEEP) {
        s->keeps++;
        if (!same_bits(el.before, el.after, el.i, dtype_size(b->dtype)))
            count_in(&s->kept_bad, el.i);
        return;
    }
    if (b->role == ROLE_OUT && poison_is(b->dtype, el.after, el.i))
        count_in(&s->unwritten, el.i);
    if (what == EXPECT_EXACT)
        compare_exact(el, e, s);
    else
        compare_value(el, e, s);
}

void compare_buffer(const struct buffer *b, const struct expectation *e, const void *before,
                    const void *after, struct buffer_stats *out)
{
    memset(out, 0, sizeof(*out));
    if (e->expect == NULL && memcmp(before, after, b->bytes) == 0) {
        out->keeps = b->count; /* the common case of a large input, at the speed of memory */
        return;
    }
    for (size_t i = 0; i < b->count; i++)
        compare_element((struct element){b, before, after, i}, e, out);
    if (out->exact_bad.count > 0)
        out->ratio_likely = out->ratio_worst = INF64;
}

bool compare_runs(const struct buffer *b, const struct expectation *e, const void *one,
                  const void *other, size_t *first)
{
    if (memcmp(one, other, b->bytes) == 0)
        return true;
    size_t size = dtype_size(b->dtype);
    for (size_t i = 0; i < b->count; i++) {
        if (expectation_at(e, i) == EXPECT_FREE || same_bits(one, other, i, size))
            continue;
        *first = i;
        return false;
    }
    return true;
}
