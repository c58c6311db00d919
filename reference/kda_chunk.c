/* The scan of one chunk; the derivation is in the header and at each step. */
#include "reference/kda_chunk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/detmath.h"
#include "reference/kda_pointwise.h"

/* What the chunk is to every value column. Rows are tokens, [n][D] and per token [n]. */
struct chunk {
    size_t dim, count;
    const struct kda_tokens *t;
    const struct kda_chunk_terms *x;
    const struct kda_state *s;
    double carry;
    struct kda_field p;    /* [n][n]: P with its radii */
    struct kda_field tail; /* [n][D]: key_i exp(gc_last - gc_i); `fixed` its exponent's share */
    struct kda_field head; /* [n][D]: scale query_i exp(gc_i); likewise */
    struct kda_field
        v; /* [n][D]: v'; radii of what the chunk adds to it, exact S assumed; `spread` is
                              that of independent roundings */
    double *v_common; /* [n][D]: spread that prepare's errors give, shared between tokens */
    double *v_size;   /* [n][D]: largest |v'| in the kernel */
    double *tail_norm, *tail_fixed, *head_norm, *head_fixed, *w_norm; /* [n] */
    double *w_worst, *w_spread, *w_fixed;                             /* [n]: norms of w's radii */
    double *row_norm;              /* [n]: |row of the map from S to out_i| */
    double *key_norm, *query_norm; /* [n]: what an underflowing exp is multiplied by */
    double *decay, *decay_error;   /* [D]: exp(gc_last), its relative error */
    double max_decay, max_decay_error;
    double *row, *mass; /* [D] each: scratch */
    double *block;      /* the allocation of all but the fields */
};

static void chunk_init(struct chunk *c, const struct kda_tokens *t)
{
    size_t n = t->count, d = t->head_dim, total = 2 * n * d + 11 * n + 4 * d;
    double *p = kda_doubles(total);
    c->block = p;
    c->v_common = p;
    c->v_size = p + n * d;
    p += 2 * n * d;
    c->tail_norm = p;
    c->tail_fixed = p + n;
    c->head_norm = p + 2 * n;
    c->head_fixed = p + 3 * n;
    c->w_norm = p + 4 * n;
    c->w_worst = p + 5 * n;
    c->w_spread = p + 6 * n;
    c->w_fixed = p + 7 * n;
    c->row_norm = p + 8 * n;
    c->key_norm = p + 9 * n;
    c->query_norm = p + 10 * n;
    c->decay = p + 11 * n;
    c->decay_error = c->decay + d;
    c->row = c->decay + 2 * d;
    c->mass = c->decay + 3 * d;
    kda_field_init(&c->p, n * n);
    kda_field_init(&c->tail, n * d);
    kda_field_init(&c->head, n * d);
    kda_field_init(&c->v, n * d);
}

static void chunk_release(struct chunk *c)
{
    kda_field_release(&c->p);
    kda_field_release(&c->tail);
    kda_field_release(&c->head);
    kda_field_release(&c->v);
    free(c->block);
}

/* The relative error of exp(gc) for a gc with an error of its own. */
static double stored_exponent(double gc, double error)
{
    return kda_exponent_error(error + kda_exp_error(fabs(gc) + error));
}

/* The rows that exponentiate: an exponent gc has gc's error, a difference of two both and a
   rounding, but gc_last - gc_last is 0 in any arithmetic. Products by the key, the query and the
   scale are counted where the rows are used. */
static void exponent_rows(struct chunk *c)
{
    size_t d = c->dim, n = c->count;
    const double *gc = c->x->gc.value, *error = c->x->gc.worst;
    const double *last = gc + (n - 1) * d, *last_error = error + (n - 1) * d;

    for (size_t at = 0; at < n * d; at++) {
        size_t i = at / d, k = at % d;
        double difference = last[k] - gc[at];
        double slack = i + 1 == n ? 0.0 : (last_error[k] + error[at]) * (1.0 + U_FP32);
        slack += U_FP32 * fabs(difference);
        slack += kda_exp_error(fabs(difference) + slack);
        c->tail.value[at] = c->t->key[at] * det_exp(difference);
        c->tail.fixed[at] = kda_exponent_error(slack) * fabs(c->tail.value[at]);
        c->head.value[at] = c->t->scale * c->t->query[at] * det_exp(gc[at]);
        c->head.fixed[at] = stored_exponent(gc[at], error[at]) * fabs(c->head.value[at]);
    }
    for (size_t k = 0; k < d; k++) {
        c->decay[k] = det_exp(last[k]);
        c->decay_error[k] = stored_exponent(last[k], last_error[k]);
        c->max_decay = fmax(c->max_decay, c->decay[k]);
        c->max_decay_error = fmax(c->max_decay_error, c->decay[k] * c->decay_error[k]);
    }
}

/* P, and the rows of the map from S to the outputs: head_i - sum_(j<=i) P_ij w_j. */
static void output_rows(struct chunk *c)
{
    size_t d = c->dim, n = c->count;
    double scale = fabs(c->t->scale), *row = c->row;
    struct kda_decayed in = {
        .head_dim = d,
        .count = n,
        .left = c->t->query,
        .right = c->t->key,
        .gc = &c->x->gc,
        .factor_roundings = 1.0,
        .diagonal = true,
    };

    kda_decayed_products(&in, &c->p);
    for (size_t at = 0; at < n * n; at++) {
        c->p.value[at] *= c->t->scale;
        c->p.worst[at] *= scale;
        c->p.spread[at] *= scale;
        c->p.fixed[at] *= scale;
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(row, c->head.value + i * d, d * sizeof(*row));
        for (size_t j = 0; j <= i; j++)
            for (size_t k = 0; k < d; k++)
                row[k] -= c->p.value[i * n + j] * c->x->w.value[j * d + k];
        c->row_norm[i] = kda_norm(row, d);
    }
}

static void chunk_open(struct chunk *c)
{
    size_t d = c->dim;

    exponent_rows(c);
    output_rows(c);
    for (size_t i = 0; i < c->count; i++) {
        c->tail_norm[i] = kda_norm(c->tail.value + i * d, d);
        c->tail_fixed[i] = kda_norm(c->tail.fixed + i * d, d);
        c->head_norm[i] = kda_norm(c->head.value + i * d, d);
        c->head_fixed[i] = kda_norm(c->head.fixed + i * d, d);
        c->key_norm[i] = kda_norm(c->t->key + i * d, d);
        c->query_norm[i] = fabs(c->t->scale) * kda_norm(c->t->query + i * d, d);
        c->w_norm[i] = kda_norm(c->x->w.value + i * d, d);
        c->w_worst[i] = kda_norm(c->x->w.worst + i * d, d);
        c->w_spread[i] = kda_norm(c->x->w.spread + i * d, d);
        c->w_fixed[i] = kda_norm(c->x->w.fixed + i * d, d);
    }
}

/* value[j] = sum_k row_k S_kj, and of magnitudes. */
static void row_times_state(const double *row, const struct kda_state *s, double *restrict value,
                            double *restrict mass)
{
    size_t d = s->head_dim;

    memset(value, 0, d * sizeof(*value));
    memset(mass, 0, d * sizeof(*mass));
    for (size_t k = 0; k < d; k++) {
        const double *restrict cells = s->cell.value + k * d;
        double x = row[k], x_abs = fabs(x);
        for (size_t j = 0; j < d; j++) {
            value[j] += x * cells[j];
            mass[j] += x_abs * fabs(cells[j]);
        }
    }
}

/*
 * v'_i = u_i - w_i S: D products, D additions, one subtraction over the kernel's u and w. What
 * their radii move, |dw_i S| <= |dw_i| |S|, is shared between the tokens (all come from the same
 * T).
 */
static void corrected_row(struct chunk *c, size_t i)
{
    size_t d = c->dim;
    double *product = c->row, *mass = c->mass;
    const struct kda_field *u = &c->x->u;
    double n = (double)d + 1.0;

    row_times_state(c->x->w.value + i * d, c->s, product, mass);
    for (size_t j = 0; j < d; j++) {
        size_t at = i * d + j;
        double e = c->s->worst[j], state = c->s->norm[j] + e;
        double sum = fabs(u->value[at]) + u->worst[at] + mass[j] + c->w_norm[i] * e;
        sum += c->w_worst[i] * state;
        double floor = n * TINY_FP32;
        c->v.value[at] = u->value[at] - product[j];
        c->v.worst[at] = u->worst[at] + c->w_worst[i] * state + gamma_n(n, U_FP32) * sum + floor;
        c->v.spread[at] = sqrt(n) * U_FP32 * sum;
        c->v.fixed[at] = u->fixed[at] + c->w_fixed[i] * state + floor;
        c->v_common[at] = u->spread[at] + c->w_spread[i] * state;
        c->v_size[at] = fabs(c->v.value[at]) + c->w_norm[i] * e + c->v.worst[at];
    }
}

/* The part of out_i that P v' makes, for one column: its value and what it adds to the radii. */
struct intra {
    double value, mass, worst, independent, common, fixed;
};

static struct intra intra_chunk(const struct chunk *c, size_t i, size_t j)
{
    size_t n = c->count, d = c->dim;
    struct intra x = {0};

    for (size_t m = 0; m <= i; m++) {
        size_t pair = i * n + m, at = m * d + j;
        double p = c->p.value[pair], p_abs = fabs(p), size = c->v_size[at];
        x.value += p * c->v.value[at];
        x.mass += (p_abs + c->p.worst[pair]) * size;
        x.worst += p_abs * c->v.worst[at] + c->p.worst[pair] * size;
        x.independent += kda_square(p * c->v.spread[at]) + kda_square(c->p.spread[pair] * size);
        x.common += p_abs * c->v_common[at];
        x.fixed += p_abs * c->v.fixed[at] + c->p.fixed[pair] * size;
    }
    return x;
}

/* D + i + 1 terms; the products by query, scale and S (or v') round three times at most. */
static void output_row(const struct chunk *c, size_t i, struct kda_field *out)
{
    size_t d = c->dim;
    double *product = c->row, *mass = c->mass;
    double n = (double)(d + i + 1) + 3.0;

    row_times_state(c->head.value + i * d, c->s, product, mass);
    for (size_t j = 0; j < d; j++) {
        size_t at = i * d + j;
        double e = c->s->worst[j], state = c->s->norm[j] + e;
        struct intra in = intra_chunk(c, i, j);
        double carried = c->row_norm[i];
        double sum = mass[j] + c->head_norm[i] * e + c->head_fixed[i] * state + in.mass;
        double floor = FTZ_FP32 * c->query_norm[i] * state + n * TINY_FP32 * (1.0 + state);
        double fixed = c->head_fixed[i] * state + in.fixed + floor;
        out->value[at] = product[j] + in.value;
        out->worst[at] =
            carried * e + c->head_fixed[i] * state + in.worst + gamma_n(n, U_FP32) * sum + floor;
        out->spread[at] = sqrt(kda_square(carried * c->s->spread[j]) + in.independent +
                               kda_square(in.common) + n * kda_square(U_FP32 * sum));
        out->fixed[at] = carried * c->s->fixed[j] + fixed;
    }
}

/* Of one value column: what the chunk adds to the state's radii, as if every tail row were its
   norm. */
struct update {
    double mass, worst, independent, common, fixed, floor;
};

static struct update column_update(const struct chunk *c, size_t j)
{
    struct update x = {0};

    for (size_t i = 0; i < c->count; i++) {
        size_t at = i * c->dim + j;
        double tail = c->tail_norm[i], size = c->v_size[at];
        x.mass += (tail + c->tail_fixed[i]) * size;
        x.worst += tail * c->v.worst[at];
        x.independent += kda_square(tail * c->v.spread[at]);
        x.common += tail * c->v_common[at];
        x.fixed += tail * c->v.fixed[at];
        double exponent = c->tail_fixed[i] * size;
        x.worst += exponent;
        x.fixed += exponent;
        x.floor += FTZ_FP32 * c->key_norm[i] * size;
    }
    return x;
}

/* n + 1 terms of up to two products each. */
static double update_roundings(const struct chunk *c)
{
    return (double)(c->count + 1) + 2.0;
}

/* The new radii of the columns, in place; the norms become those of the new state afterwards. */
static void carry_columns(const struct chunk *c, struct kda_state *s)
{
    size_t d = c->dim;
    double n = update_roundings(c);

    for (size_t j = 0; j < d; j++) {
        double state = s->norm[j] + s->worst[j];
        struct update x = column_update(c, j);
        double sum = c->max_decay * state + c->max_decay_error * state + x.mass;
        double floor = x.floor + FTZ_FP32 * state + sqrt((double)d) * n * TINY_FP32;
        double exponent = c->max_decay_error * state;
        s->worst[j] =
            c->carry * s->worst[j] + x.worst + exponent + gamma_n(n, U_FP32) * sum + floor;
        s->spread[j] = sqrt(kda_square(c->carry * s->spread[j]) + x.independent +
                            kda_square(x.common) + n * kda_square(U_FP32 * sum));
        s->fixed[j] = c->carry * s->fixed[j] + x.fixed + exponent + floor;
    }
}

/* Row k of M, the map from the state before to the state after. */
static double map_row_norm(const struct chunk *c, size_t k)
{
    size_t d = c->dim;
    double *row = c->row;

    memset(row, 0, d * sizeof(*row));
    row[k] = c->decay[k];
    for (size_t i = 0; i < c->count; i++)
        for (size_t m = 0; m < d; m++)
            row[m] -= c->tail.value[i * d + k] * c->x->w.value[i * d + m];
    return kda_norm(row, d);
}

/* The radii of element (k, j) after the chunk; `s` holds the state and radii before it. */
static void update_cell(const struct chunk *c, struct kda_state *s, size_t k, size_t j, double row)
{
    size_t d = c->dim, at = k * d + j;
    double n = update_roundings(c), decay = c->decay[k];
    double cell = fabs(s->cell.value[at]) + s->worst[j];
    double exponent = decay * c->decay_error[k] * cell;
    double sum = decay * cell + exponent, floor = FTZ_FP32 * cell + n * TINY_FP32;
    double worst = exponent, fixed = exponent, independent = 0.0, common = 0.0;

    for (size_t i = 0; i < c->count; i++) {
        size_t v = i * d + j;
        double tail = fabs(c->tail.value[i * d + k]), share = c->tail.fixed[i * d + k];
        double size = c->v_size[v];
        sum += (tail + share) * size;
        worst += tail * c->v.worst[v] + share * size;
        fixed += tail * c->v.fixed[v] + share * size;
        independent += kda_square(tail * c->v.spread[v]);
        common += tail * c->v_common[v];
        floor += FTZ_FP32 * fabs(c->t->key[i * d + k]) * size;
    }
    s->cell.worst[at] = row * s->worst[j] + worst + gamma_n(n, U_FP32) * sum + floor;
    s->cell.spread[at] = sqrt(kda_square(row * s->spread[j]) + independent + kda_square(common) +
                              n * kda_square(U_FP32 * sum));
    s->cell.fixed[at] = row * s->fixed[j] + fixed + floor;
}

static void update_cells(const struct chunk *c, struct kda_state *s)
{
    size_t d = c->dim;

    for (size_t k = 0; k < d; k++) {
        double norm = map_row_norm(c, k);
        for (size_t j = 0; j < d; j++)
            update_cell(c, s, k, j, norm);
    }
}

/* S = diag(decay) S + tail^T v', and the norms of its columns. */
static void update_values(const struct chunk *c, struct kda_state *s)
{
    size_t d = c->dim;
    double *restrict norm = s->norm;

    memset(norm, 0, d * sizeof(*norm));
    for (size_t k = 0; k < d; k++) {
        double *restrict cells = s->cell.value + k * d;
        for (size_t j = 0; j < d; j++)
            cells[j] *= c->decay[k];
        for (size_t i = 0; i < c->count; i++) {
            double tail = c->tail.value[i * d + k];
            const double *restrict v = c->v.value + i * d;
            for (size_t j = 0; j < d; j++)
                cells[j] += tail * v[j];
        }
        for (size_t j = 0; j < d; j++)
            norm[j] += kda_square(cells[j]);
    }
    for (size_t j = 0; j < d; j++)
        norm[j] = sqrt(norm[j]);
}

/* No element errs by more than its column, and no column by more than its elements. */
static void reconcile(struct kda_state *s)
{
    size_t d = s->head_dim;

    for (size_t j = 0; j < d; j++) {
        double worst = 0.0, spread = 0.0, fixed = 0.0;
        for (size_t at = j; at < d * d; at += d) {
            worst += kda_square(s->cell.worst[at] = kda_least(s->cell.worst[at], s->worst[j]));
            spread += kda_square(s->cell.spread[at] = kda_least(s->cell.spread[at], s->spread[j]));
            fixed += kda_square(s->cell.fixed[at] = kda_least(s->cell.fixed[at], s->fixed[j]));
        }
        s->worst[j] = kda_least(s->worst[j], sqrt(worst));
        s->spread[j] = kda_least(s->spread[j], sqrt(spread));
        s->fixed[j] = kda_least(s->fixed[j], sqrt(fixed));
    }
}

void kda_chunk_scan(const struct kda_tokens *t, const struct kda_chunk_terms *x, double carry,
                    struct kda_state *s, struct kda_field *out)
{
    size_t d = t->head_dim;
    struct chunk c = {.dim = d, .count = t->count, .t = t, .x = x, .s = s, .carry = carry};

    chunk_init(&c, t);
    chunk_open(&c);
    for (size_t i = 0; i < t->count; i++)
        corrected_row(&c, i);
    for (size_t i = 0; i < t->count; i++)
        output_row(&c, i, out);
    update_cells(&c, s);
    carry_columns(&c, s);
    update_values(&c, s);
    reconcile(s);
    chunk_release(&c);
}

double kda_chunk_carry(const struct kda_tokens *t, const struct kda_chunk_terms *x)
{
    size_t d = t->head_dim, n = t->count;
    const double *last = x->gc.value + (n - 1) * d;
    double tail = 0.0, w = 0.0, deepest = 0.0;

    /* The rounded terms' map differs from the tokens' by their exponents' and w's relative
       errors, in the Frobenius norms of diag(exp(gc_last)) (at most 1 per channel, diagonal) and
       of tail^T w. */
    for (size_t at = 0; at < n * d; at++) {
        double gc = x->gc.value[at];
        tail += kda_square(t->key[at] * det_exp(last[at % d] - gc));
        w += kda_square(x->w.value[at]);
        deepest = fmax(deepest, fabs(gc));
    }
    double exponent = kda_exponent_error(2.0 * U_FP32 * deepest);
    double relative = (exponent + U_FP32) * (1.0 + exponent) * (1.0 + U_FP32);
    return kda_contraction(t) + relative * (1.0 + sqrt(tail) * sqrt(w));
}

/* Tokens [first, first + count) of t. */
static struct kda_tokens slice(const struct kda_tokens *t, size_t first, size_t count)
{
    struct kda_tokens part = *t;
    size_t at = first * t->head_dim;

    part.count = count;
    part.query += at;
    part.key += at;
    part.value += at;
    part.gate += at;
    part.beta += first;
    return part;
}

static struct kda_field field_slice(const struct kda_field *f, size_t first, size_t count)
{
    return (struct kda_field){
        .count = count,
        .value = f->value + first,
        .worst = f->worst + first,
        .spread = f->spread + first,
        .fixed = f->fixed + first,
    };
}

void kda_chunk_run(const struct kda_tokens *t, size_t chunk, struct kda_state *s,
                   struct kda_field *out)
{
    size_t d = t->head_dim;
    struct kda_chunk_terms x;

    for (size_t first = 0; first < t->count; first += chunk) {
        size_t n = t->count - first < chunk ? t->count - first : chunk;
        struct kda_tokens part = slice(t, first, n);
        struct kda_field rows = field_slice(out, first * d, n * d);
        kda_chunk_terms_init(&x, n, d);
        kda_chunk_prepare(&part, &x);
        kda_chunk_scan(&part, &x, kda_contraction(&part), s, &rows);
        kda_chunk_terms_release(&x);
    }
}
