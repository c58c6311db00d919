/* Inputs and expectations of the KDA recurrence. */
#include "kernels/ops/kda_recurrence_common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda_recurrence_launch.h"
#include "problem/fill.h"
#include "reference/detmath.h"
#include "reference/kda_chunk.h"

const char *const kda_lowers[] = {"-5", "-2.5", "-1", NULL};
static const double lower_values[] = {-5.0, -2.5, -1.0};
const char *const kda_betas[] = {"mixed", "low", "high", NULL};
enum { BETA_MIXED, BETA_LOW, BETA_HIGH };
const char *const kda_states[] = {"carried", "zero", NULL};
const char *const kda_decays[] = {"log", "linear", NULL};
const char *const kda_pads[] = {"poison", "blank", "huge", NULL};
enum { PAD_POISON, PAD_BLANK, PAD_HUGE };

/* A state of the size that unit keys and values of unit variance settle at. */
#define STATE_SCALE 0.3

struct kda_sizes kda_sizes_of(const struct problem *p, bool chunked)
{
    struct kda_sizes n = {
        .heads = case_u32(&p->tc, "H"),
        .head_dim = case_u32(&p->tc, "D"),
        .tokens = case_u32(&p->tc, "T"),
        .chunk = chunked ? case_u32(&p->tc, "C") : 0,
    };

    n.rows = chunked ? (size_t)kda_padded_tokens(n.tokens, n.chunk) : n.tokens;
    return n;
}

int kda_add_vectors(struct problem *p, const char *name, enum dtype dtype, enum role role,
                    const struct kda_sizes *n, struct err *err)
{
    const struct dim dims[] = {
        {"token", n->rows}, {"head", n->heads}, {"channel", n->head_dim}, {NULL, 0}};
    int id;

    return problem_add(p, name, dtype, role, dims, &id, err);
}

int kda_add_scalars(struct problem *p, const char *name, enum dtype dtype, enum role role,
                    const struct kda_sizes *n, struct err *err)
{
    const struct dim dims[] = {{"token", n->rows}, {"head", n->heads}, {NULL, 0}};
    int id;

    return problem_add(p, name, dtype, role, dims, &id, err);
}

int kda_add_state(struct problem *p, const char *name, enum role role, const struct kda_sizes *n,
                  struct err *err)
{
    const struct dim dims[] = {
        {"head", n->heads}, {"key", n->head_dim}, {"value", n->head_dim}, {NULL, 0}};
    int id;

    return problem_add(p, name, DTYPE_F32, role, dims, &id, err);
}

/* A fill by blocks of rows (token, head), on all CPUs: every element depends on its index alone. */
struct fill {
    struct problem *p;
    struct buffer *b;
    const struct kda_sizes *n;
    uint64_t key;
    void (*rows)(const struct fill *f, size_t first, size_t count);
};

#define FILL_ROWS                                                                                  \
    1024 /* a multiple of 16: the number of a row decides whether it is a special one */

static void fill_block(size_t block, void *ctx)
{
    const struct fill *f = ctx;
    size_t rows = (size_t)f->n->tokens * f->n->heads, first = block * FILL_ROWS;

    f->rows(f, first, rows - first < FILL_ROWS ? rows - first : FILL_ROWS);
}

static void fill_all(struct problem *p, int id, const struct kda_sizes *n,
                     void (*rows)(const struct fill *f, size_t first, size_t count))
{
    struct buffer *b = &p->buffer[id];
    struct fill f = {p, b, n, rng_key(p->tc.seed, b->name), rows};

    if (!b->hollow)
        parallel_for(((size_t)n->tokens * n->heads + FILL_ROWS - 1) / FILL_ROWS, 0, fill_block, &f);
}

static void unit_rows(const struct fill *f, size_t first, size_t count)
{
    size_t d = f->n->head_dim;

    fill_unit_rows(f->b, f->key, first * d, count, d, d, true);
}

void kda_fill_unit(struct problem *p, int id, const struct kda_sizes *n)
{
    fill_all(p, id, n, unit_rows);
}

static void value_rows(const struct fill *f, size_t first, size_t count)
{
    size_t d = f->n->head_dim;

    fill_normal(f->b, f->key, first * d, count * d, 1.0, 0.0);
    scale_value_channels(f->b, d, first * d, count * d);
}

void kda_fill_value(struct problem *p, int id, const struct kda_sizes *n)
{
    fill_all(p, id, n, value_rows);
}

static void gate_rows(const struct fill *f, size_t first, size_t count)
{
    const struct test_case *tc = &f->p->tc;
    enum gate_regime regime = (enum gate_regime)case_u32(tc, "gate");
    double lower = lower_values[case_u32(tc, "lower")];
    bool linear = case_u32(tc, "decay") != 0;
    size_t d = f->n->head_dim;

    for (size_t i = first * d; i < (first + count) * d; i++) {
        double x = fill_log_decay(regime, f->key, i, i / d % f->n->heads, lower);
        dtype_store(f->b->dtype, f->b->init, i, linear ? det_exp(x) : x);
    }
}

void kda_fill_gate(struct problem *p, int id, const struct kda_sizes *n)
{
    fill_all(p, id, n, gate_rows);
}

static void beta_rows(const struct fill *f, size_t first, size_t count)
{
    uint32_t regime = case_u32(&f->p->tc, "beta");
    uint64_t pick_key = rng_bits(f->key, UINT64_MAX);

    for (size_t i = first; i < first + count; i++) {
        double u = rng_uniform(f->key, i), near = 1e-6 * u;
        uint64_t pick = regime == BETA_LOW ? 0 : 1;
        if (regime == BETA_MIXED)
            pick = rng_below(pick_key, i, 5);
        dtype_store(f->b->dtype, f->b->init, i, pick == 0 ? near : pick == 1 ? 1.0 - near : u);
    }
}

void kda_fill_beta(struct problem *p, int id, const struct kda_sizes *n)
{
    fill_all(p, id, n, beta_rows);
}

void kda_fill_state(struct problem *p, int id)
{
    struct buffer *b = &p->buffer[id];

    if (case_u32(&p->tc, "state") != 0)
        return;
    fill_normal(b, rng_key(p->tc.seed, "state"), 0, b->count, STATE_SCALE, 0.0);
    scale_value_channels(b, b->dim[b->ndim - 1], 0, b->count);
}

void kda_fill_pad(struct problem *p, int id, const struct kda_sizes *n)
{
    struct buffer *b = &p->buffer[id];
    size_t first = b->count / n->rows * n->tokens;
    uint32_t pad = case_u32(&p->tc, "pad");

    if (pad == PAD_POISON)
        buffer_poison(b, first, b->count - first);
    for (size_t i = first; pad != PAD_POISON && i < b->count && !b->hollow; i++)
        dtype_store(b->dtype, b->init, i, pad == PAD_HUGE ? 1e38 : 0.0);
}

int kda_check_gate(const struct problem *p, int id, const struct kda_sizes *n, struct err *err)
{
    const struct buffer *b = &p->buffer[id];
    size_t count = (size_t)n->tokens * n->heads * n->head_dim;

    for (size_t i = 0; i < count; i++) {
        double x = dtype_load(b->dtype, b->init, i);
        char where[128];
        if (x <= 0.0)
            continue;
        buffer_index_text(b, i, where, sizeof(where));
        return err_set(err, ERR_INPUT,
                       "gate > 0 at %s: %g is no log decay; KDA's kernels exponentiate their gate "
                       "(a decay in 0..1 is what the GDN kernels take)",
                       where, x);
    }
    return 0;
}

int kda_fill_inputs(struct problem *p, int first, const struct kda_sizes *n, struct err *err)
{
    kda_fill_unit(p, first + KDA_QUERY, n);
    kda_fill_unit(p, first + KDA_KEY, n);
    kda_fill_value(p, first + KDA_VALUE, n);
    kda_fill_gate(p, first + KDA_GATE, n);
    kda_fill_beta(p, first + KDA_BETA, n);
    return kda_check_gate(p, first + KDA_GATE, n, err);
}

struct kda_operand kda_operand_of(const struct problem *p, int id)
{
    return (struct kda_operand){p->buffer[id].init, p->buffer[id].dtype, 0};
}

struct kda_sequence kda_sequence_of(const struct problem *p, int first, const struct kda_sizes *n)
{
    return (struct kda_sequence){
        .heads = n->heads,
        .head_dim = n->head_dim,
        .tokens = n->tokens,
        .query = kda_operand_of(p, first + KDA_QUERY),
        .key = kda_operand_of(p, first + KDA_KEY),
        .value = kda_operand_of(p, first + KDA_VALUE),
        .gate = kda_operand_of(p, first + KDA_GATE),
        .beta = kda_operand_of(p, first + KDA_BETA),
        .scale = (double)kda_scale(n->head_dim),
    };
}

float kda_scale(size_t head_dim)
{
    return (float)(1.0 / sqrt((double)head_dim));
}

void kda_packed_init(struct kda_packed *x, size_t head_dim, size_t capacity)
{
    x->block = xcalloc((4 * head_dim + 1) * capacity, sizeof(*x->block));
    x->tokens = (struct kda_tokens){.head_dim = head_dim, .count = capacity};
}

void kda_packed_release(struct kda_packed *x)
{
    free(x->block);
}

/* `row` elements of each of `count` tokens from `first` on, in the head's place; packed rows have
   `width`. */
static const double *widen(double **to, const struct kda_operand *from, size_t width, size_t head,
                           size_t row, size_t first, size_t count)
{
    double *out = *to;
    size_t stride = from->stride != 0 ? from->stride : width;

    *to += count * row;
    for (size_t i = 0; from->data != NULL && i < count; i++)
        for (size_t k = 0; k < row; k++)
            out[i * row + k] =
                dtype_load(from->dtype, from->data, (first + i) * stride + head * row + k);
    return out;
}

void kda_packed_load(struct kda_packed *x, const struct kda_sequence *s, size_t head, size_t first,
                     size_t count)
{
    size_t d = s->head_dim, width = s->heads * d;
    double *to = x->block;

    x->tokens = (struct kda_tokens){
        .head_dim = d,
        .count = count,
        .query = widen(&to, &s->query, width, head, d, first, count),
        .key = widen(&to, &s->key, width, head, d, first, count),
        .value = widen(&to, &s->value, width, head, d, first, count),
        .gate = widen(&to, &s->gate, width, head, d, first, count),
        .beta = widen(&to, &s->beta, s->heads, head, 1, first, count),
        .scale = s->scale,
    };
}

struct heads {
    const struct kda_sequence *s;
    const float *state;
    size_t chunk, split;
    const struct kda_expected *e;
};

#define TOKEN_BLOCK 64 /* tokens taken at a time where there are no chunks */

/* How many tokens to take from `first` on: a chunk, or up to where the chunks start over. */
static size_t block_at(const struct heads *h, size_t first)
{
    size_t size = h->chunk != 0 ? h->chunk : TOKEN_BLOCK;
    size_t end = first < h->split ? h->split : h->s->tokens;

    return end - first < size ? end - first : size;
}

/* Replaces the radii of `to` by those of `from`. */
static void take_radii(struct kda_field *to, const struct kda_field *from, size_t count)
{
    memcpy(to->worst, from->worst, count * sizeof(*to->worst));
    memcpy(to->spread, from->spread, count * sizeof(*to->spread));
    memcpy(to->fixed, from->fixed, count * sizeof(*to->fixed));
}

static void expect_rows(const struct heads *h, size_t head, size_t first, size_t count,
                        const struct kda_field *rows)
{
    size_t d = h->s->head_dim;

    for (size_t i = 0; h->e->out != NULL && i < count * d; i++)
        expect_bounded(h->e->out, ((first + i / d) * h->s->heads + head) * d + i % d,
                       kda_field_at(rows, i), h->e->lambda);
}

static void expect_head(size_t head, void *ctx)
{
    const struct heads *h = ctx;
    size_t d = h->s->head_dim, capacity = h->chunk != 0 ? h->chunk : TOKEN_BLOCK;
    struct kda_state tokens, chunks;
    struct kda_field rows, radii;
    struct kda_packed x;

    kda_state_init(&tokens, d);
    kda_state_init(&chunks, d);
    kda_field_init(&rows, capacity * d);
    kda_field_init(&radii, capacity * d);
    kda_packed_init(&x, d, capacity);
    kda_state_load(&tokens, h->state + head * d * d);
    kda_state_load(&chunks, h->state + head * d * d);
    for (size_t first = 0, count; first < h->s->tokens; first += count) {
        count = block_at(h, first);
        kda_packed_load(&x, h->s, head, first, count);
        if (h->chunk == 0) {
            kda_recurrence_run(&x.tokens, &tokens, &rows);
        } else {
            kda_recurrence_values(&x.tokens, &tokens, &rows);
            kda_chunk_run(&x.tokens, h->chunk, &chunks, &radii);
            take_radii(&rows, &radii, count * d);
        }
        expect_rows(h, head, first, count, &rows);
    }
    if (h->chunk != 0)
        take_radii(&tokens.cell, &chunks.cell, d * d);
    for (size_t i = 0; h->e->state != NULL && i < d * d; i++)
        expect_bounded(h->e->state, head * d * d + i, kda_field_at(&tokens.cell, i), h->e->lambda);
    kda_packed_release(&x);
    kda_field_release(&radii);
    kda_field_release(&rows);
    kda_state_release(&chunks);
    kda_state_release(&tokens);
}

void kda_expect(const struct kda_sequence *s, const struct reference_env *env, const float *state,
                size_t chunk, size_t split, const struct kda_expected *e)
{
    struct heads h = {.s = s, .state = state, .chunk = chunk, .split = split, .e = e};

    parallel_for(s->heads, env->workers, expect_head, &h);
}

void kda_expect_same(struct expectation *to, const struct expectation *from, size_t count)
{
    memcpy(to->expect, from->expect, count * sizeof(*to->expect));
    memcpy(to->value, from->value, count * sizeof(*to->value));
    memcpy(to->worst, from->worst, count * sizeof(*to->worst));
    memcpy(to->likely, from->likely, count * sizeof(*to->likely));
}

double kda_recurrence_flops(const struct kda_sizes *n)
{
    double d = n->head_dim;

    return (double)n->tokens * n->heads * 7.0 * d * d;
}
