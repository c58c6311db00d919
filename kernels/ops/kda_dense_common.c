/* Buffers, golden and cost of the projections. */
#include "kernels/ops/kda_dense_common.h"

#include <math.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "problem/fill.h"

const char *const dense_fills[] = {"unit", "normal", "cancel", "scaled", "integer", NULL};

enum fill { FILL_UNIT, FILL_NORMAL, FILL_CANCEL, FILL_SCALED, FILL_INTEGER };

#define INTEGER_MOST    8      /* magnitude of the integers */
#define INTEGER_LARGEST 0x1p24 /* fp32 holds all of them up to here */

/* Row after row another power of two, from 2^-40 to 2^40. */
static void scale_rows(struct buffer *b)
{
    for (size_t i = 0; i < b->count && !b->hollow; i++)
        dtype_store(b->dtype, b->init, i,
                    ldexp(dtype_load(b->dtype, b->init, i), ((int)(i / b->dim[1] % 5) - 2) * 20));
}

static void fill_integers(struct buffer *b, uint64_t key)
{
    for (size_t i = 0; i < b->count && !b->hollow; i++)
        dtype_store(b->dtype, b->init, i,
                    (double)rng_below(key, i, 2 * INTEGER_MOST + 1) - INTEGER_MOST);
}

static void fill_operand(struct problem *p, int id, enum fill fill)
{
    struct buffer *b = &p->buffer[id];
    uint64_t key = rng_key(p->tc.seed, b->name);

    if (fill == FILL_UNIT)
        fill_unit_rows(b, key, 0, b->dim[0], b->dim[1], b->dim[1], true);
    else if (fill == FILL_INTEGER)
        fill_integers(b, key);
    else
        fill_normal(b, key, 0, b->count, 1.0, 0.0);
    if (fill == FILL_SCALED)
        scale_rows(b);
}

/* Makes the second half of each row the first half's mirror, times `sign`; where `nudge`, a quarter
   of its elements go to the next bf16. */
static void mirror_halves(struct buffer *b, double sign, bool nudge, uint64_t key)
{
    uint16_t *bits = b->init;
    size_t k = b->dim[1];

    for (size_t i = 0; i < b->count && !b->hollow; i++) {
        if (i % k < k / 2)
            continue;
        dtype_store(DTYPE_BF16, bits, i, sign * dtype_load(DTYPE_BF16, bits, i - k / 2));
        if (nudge && rng_below(key, i, 4) == 0)
            bits[i]++;
    }
}

int dense_shape(struct problem *p, uint32_t m, uint32_t gap, struct err *err)
{
    uint32_t n = case_u32(&p->tc, "N"), k = case_u32(&p->tc, "K");
    enum fill fill = (enum fill)case_u32(&p->tc, "fill");

    if (k % 8 != 0)
        return err_set(err, ERR_INPUT,
                       "K=%u must be a multiple of 8: rows are read 16 bytes at a time", k);
    if (fill == FILL_INTEGER && (double)k * INTEGER_MOST * INTEGER_MOST > INTEGER_LARGEST)
        return err_set(err, ERR_INPUT, "fill=integer: sums of K=%u products may not be exact", k);
    if (add_rows(p, "A", DTYPE_BF16, ROLE_IN, (struct dim){"row", m}, (struct dim){"k", k}, err) <
            0 ||
        add_rows(p, "B", DTYPE_BF16, ROLE_IN, (struct dim){"column", n}, (struct dim){"k", k},
                 err) < 0 ||
        add_rows(p, "C", DTYPE_BF16, ROLE_OUT, (struct dim){"row", m},
                 (struct dim){"column", (size_t)n + gap}, err) < 0)
        return -1;
    fill_operand(p, DENSE_A, fill);
    fill_operand(p, DENSE_B, fill);
    if (fill == FILL_CANCEL) {
        mirror_halves(&p->buffer[DENSE_A], 1.0, false, 0);
        mirror_halves(&p->buffer[DENSE_B], -1.0, true, rng_key(p->tc.seed, "nudge"));
    }
    return 0;
}

struct kda_dense_args dense_args_of(const struct operator_run *run, uint32_t m)
{
    return (struct kda_dense_args){
        .a = run->ptr[DENSE_A],
        .b = run->ptr[DENSE_B],
        .c = run->ptr[DENSE_C],
        .m = m,
        .n = case_u32(&run->problem->tc, "N"),
        .k = case_u32(&run->problem->tc, "K"),
    };
}

struct columns {
    const float *a, *b;
    struct bounded (*element)(const float *a, const float *b, size_t k);
    struct expectation *out;
    size_t m, k, stride;
    bool exact; /* sums are, in any order: what they are rounded to is known */
    double lambda;
};

/* One column of C: a row of B against every row of A. */
static void expect_column(size_t n, void *ctx)
{
    const struct columns *c = ctx;

    for (size_t m = 0; m < c->m; m++) {
        struct bounded x = c->element(c->a + m * c->k, c->b + n * c->k, c->k);
        size_t at = m * c->stride + n;
        if (c->exact)
            expect_exact(c->out, at, (double)bf16_to_float(bf16_from_float((float)x.value)));
        else
            expect_bounded(c->out, at, x, c->lambda);
    }
}

void dense_expect(const struct problem *p, const struct reference_env *env,
                  struct bounded (*element)(const float *a, const float *b, size_t k),
                  struct golden *g, int out, uint32_t m, size_t stride)
{
    uint32_t n = case_u32(&p->tc, "N"), k = case_u32(&p->tc, "K");
    float *a = buffer_floats(&p->buffer[DENSE_A]), *b = buffer_floats(&p->buffer[DENSE_B]);
    struct columns columns = {
        .a = a,
        .b = b,
        .element = element,
        .out = golden_open(g, p, out),
        .m = m,
        .k = k,
        .stride = stride,
        .exact = case_u32(&p->tc, "fill") == FILL_INTEGER,
        .lambda = verdict_lambda((size_t)m * n),
    };

    parallel_for(n, env->workers, expect_column, &columns);
    free(b);
    free(a);
}

void dense_cost(const struct problem *p, uint32_t m, struct cost *cost)
{
    double n = case_u32(&p->tc, "N"), k = case_u32(&p->tc, "K");

    cost->read_bytes = 2 * (m * k + n * k);
    cost->write_bytes = 2 * m * n;
    cost->flops = 2 * m * n * k;
    cost->unit = COST_BF16_MMA; /* bf16 operands: a matrix unit may do it */
}
