/* The reference of the gated delta rule's operators, head by head. */
#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/gdn_common.h"

#include <stdlib.h>

#define ROWS GDN_VERIFY_ROWS

static void load_row(const struct problem *p, struct gdn_view v, size_t row, size_t column,
                     size_t n, double *out)
{
    const struct buffer *b = &p->buffer[v.buffer];

    for (size_t i = 0; i < n; i++)
        out[i] = dtype_load(b->dtype, b->init, v.first + row * v.stride + column + i);
}

void gdn_head_init(struct gdn_head *h, bool states)
{
    size_t vectors = (size_t)3 * ROWS * GDN_DIM;

    *h = (struct gdn_head){.operands = {.k_dim = GDN_DIM, .v_dim = GDN_DIM}};
    h->memory = xcalloc(vectors + GDN_HEAD_STATE, sizeof(double));
    h->scratch = xcalloc(gdn_verify_scratch(GDN_DIM), sizeof(double));
    for (size_t t = 0; t < ROWS; t++) {
        h->operands.query[t] = h->memory + t * GDN_DIM;
        h->operands.key[t] = h->memory + (ROWS + t) * GDN_DIM;
        h->operands.value[t] = h->memory + (2 * ROWS + t) * GDN_DIM;
    }
    h->operands.state = h->memory + vectors;
    h->results.u = xcalloc((size_t)ROWS * GDN_DIM, sizeof(struct bounded));
    h->results.output = xcalloc((size_t)ROWS * GDN_DIM, sizeof(struct bounded));
    for (size_t t = 0; t < ROWS && states; t++)
        h->results.state[t] = xcalloc(GDN_HEAD_STATE, sizeof(struct bounded));
}

void gdn_head_release(struct gdn_head *h)
{
    free(h->memory);
    free(h->scratch);
    free(h->results.u);
    free(h->results.output);
    for (size_t t = 0; t < ROWS; t++)
        free(h->results.state[t]);
}

void gdn_head_load(const struct problem *p, const struct gdn_views *v, size_t row, uint32_t vh,
                   struct gdn_head *h)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t kh = vh / (s.nv / s.nk);

    for (size_t t = 0; t < ROWS; t++) {
        double *out = h->memory + t * GDN_DIM;
        load_row(p, v->query, row + t, kh * GDN_DIM, GDN_DIM, out);
        load_row(p, v->key, row + t, kh * GDN_DIM, GDN_DIM, out + (size_t)ROWS * GDN_DIM);
        load_row(p, v->value, row + t, (size_t)vh * GDN_DIM, GDN_DIM,
                 out + (size_t)2 * ROWS * GDN_DIM);
        load_row(p, v->gate, row + t, vh, 1, &h->operands.gate[t]);
        load_row(p, v->beta, row + t, vh, 1, &h->operands.beta[t]);
    }
}

void gdn_head_state(const struct problem *p, int pool, bool table, size_t seq, uint32_t vh,
                    struct gdn_head *h)
{
    struct gdn_shape s = gdn_shape_of(p);
    size_t first = gdn_state_at(&s, table, seq, vh);
    double *state = h->memory + (size_t)3 * ROWS * GDN_DIM;

    for (size_t i = 0; i < GDN_HEAD_STATE; i++)
        state[i] = dtype_load(DTYPE_F32, p->buffer[pool].init, first + i);
}

static void run_head(size_t index, void *ctx)
{
    const struct gdn_run *run = ctx;
    struct gdn_shape s = gdn_shape_of(run->problem);
    struct gdn_views views = gdn_views_of(run->problem, run->layout);
    size_t seq = index / s.nv;
    uint32_t vh = (uint32_t)(index % s.nv);
    struct gdn_head h;

    gdn_head_init(&h, run->states);
    gdn_head_load(run->problem, &views, seq * ROWS, vh, &h);
    gdn_head_state(run->problem, problem_find(run->problem, run->pool), run->table, seq, vh, &h);
    gdn_verify_head(&h.operands, h.scratch, &h.results);
    run->emit(run, seq, vh, &h.results);
    gdn_head_release(&h);
}

void gdn_run_heads(const struct gdn_run *run)
{
    struct gdn_shape s = gdn_shape_of(run->problem);
    struct gdn_run copy = *run;

    parallel_for((size_t)s.batch * s.nv, run->env->workers, run_head, &copy);
}

void gdn_expect(struct expectation *e, size_t first, size_t n, const struct bounded *b,
                double lambda)
{
    for (size_t i = 0; i < n; i++)
        expect_bounded(e, first + i, b[i], lambda);
}

void gdn_expect_output(struct expectation *e, const struct gdn_shape *s, size_t first_row,
                       uint32_t vh, const struct bounded *output, double lambda)
{
    for (size_t t = 0; t < ROWS; t++)
        gdn_expect(e, ((first_row + t) * s->nv + vh) * GDN_DIM, GDN_DIM, output + t * GDN_DIM,
                   lambda);
}

void gdn_expect_stash(struct expectation *e, const struct gdn_run *run, size_t seq, uint32_t vh,
                      const struct gdn_results *r, double lambda)
{
    struct gdn_shape s = gdn_shape_of(run->problem);
    struct gdn_views views = gdn_views_of(run->problem, run->layout);
    size_t group = s.nv / s.nk;
    size_t kh = vh / group;
    size_t u = seq * s.stash;
    size_t g = u + (size_t)ROWS * s.nv * GDN_DIM;
    size_t k = g + (size_t)ROWS * s.nv;
    double row[GDN_DIM];

    for (size_t t = 0; t < ROWS; t++) {
        gdn_expect(e, u + (t * s.nv + vh) * GDN_DIM, GDN_DIM, r->u + t * GDN_DIM, lambda);
        expect_exact(e, g + t * s.nv + vh, r->gate[t]);
        if (vh % group != 0) /* one value head of those that share a key head speaks for it */
            continue;
        load_row(run->problem, views.key, seq * ROWS + t, kh * GDN_DIM, GDN_DIM, row);
        for (size_t i = 0; i < GDN_DIM; i++)
            expect_exact(e, k + (t * s.nk + kh) * GDN_DIM + i, row[i]);
    }
}
