#include "problem/golden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

static uint8_t *fresh_expect(size_t count, enum expect what)
{
    uint8_t *expect = xcalloc(count > 0 ? count : 1, 1);
    memset(expect, what, count);
    return expect;
}

void golden_init(struct golden *g, const struct problem *p)
{
    memset(g, 0, sizeof(*g));
    g->count = p->count;
    for (unsigned i = 0; i < p->count; i++) {
        if (p->buffer[i].role != ROLE_SCRATCH)
            continue;
        g->of[i].count = p->buffer[i].count;
        g->of[i].expect = fresh_expect(p->buffer[i].count, EXPECT_FREE);
    }
}

void golden_release(struct golden *g)
{
    for (unsigned i = 0; i < g->count; i++) {
        free(g->of[i].expect);
        free(g->of[i].value);
        free(g->of[i].worst);
        free(g->of[i].likely);
    }
    memset(g, 0, sizeof(*g));
}

struct expectation *golden_open(struct golden *g, const struct problem *p, int id)
{
    if (id < 0 || (unsigned)id >= g->count || p->count != g->count)
        BUG("golden of buffer %d of %u", id, g->count);
    const struct buffer *b = &p->buffer[id];
    struct expectation *e = &g->of[id];
    if (e->expect != NULL)
        BUG("the golden of buffer %s is opened twice or is scratch", b->name);
    if (b->dtype == DTYPE_PTR || b->role == ROLE_IN)
        BUG("buffer %s is an input: it has no golden", b->name);
    size_t n = b->count > 0 ? b->count : 1;
    e->count = b->count;
    e->expect = fresh_expect(b->count, EXPECT_KEEP);
    e->value = xcalloc(n, sizeof(*e->value));
    e->worst = xcalloc(n, sizeof(*e->worst));
    e->likely = xcalloc(n, sizeof(*e->likely));
    for (size_t i = 0; i < b->count; i++) {
        e->value[i] = NAN64;
        e->worst[i] = e->likely[i] = (float)NAN64;
    }
    return e;
}

/* The smallest float that is not below x. */
static float round_up(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

void expect_value(struct expectation *e, size_t i, double value, double worst, double likely)
{
    if (i >= e->count)
        BUG("golden element %zu of %zu", i, e->count);
    e->expect[i] = EXPECT_VALUE;
    e->value[i] = value;
    e->worst[i] = round_up(worst);
    e->likely[i] = round_up(likely);
}

void expect_exact(struct expectation *e, size_t i, double value)
{
    if (i >= e->count)
        BUG("golden element %zu of %zu", i, e->count);
    e->expect[i] = EXPECT_EXACT;
    e->value[i] = value;
}

enum expect expectation_at(const struct expectation *e, size_t i)
{
    return e->expect != NULL ? (enum expect)e->expect[i] : EXPECT_KEEP;
}

size_t golden_values(const struct golden *g, const struct problem *p)
{
    size_t n = 0;
    for (unsigned b = 0; b < p->count; b++)
        for (size_t i = 0; i < g->of[b].count; i++)
            n += g->of[b].expect[i] == EXPECT_VALUE;
    return n;
}
