/* The token recurrence and the radii it carries; the derivation is in the header and at each
   step. */
#include "reference/kda_recurrence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/detmath.h"
#include "reference/kda_pointwise.h"

void kda_state_init(struct kda_state *s, size_t head_dim)
{
    double *p = kda_doubles(4 * head_dim);
    *s = (struct kda_state){
        .head_dim = head_dim,
        .worst = p,
        .spread = p + head_dim,
        .fixed = p + 2 * head_dim,
        .norm = p + 3 * head_dim,
    };
    kda_field_init(&s->cell, head_dim * head_dim);
}

void kda_state_release(struct kda_state *s)
{
    kda_field_release(&s->cell);
    free(s->worst);
    memset(s, 0, sizeof(*s));
}

void kda_state_load(struct kda_state *s, const float *cells)
{
    size_t d = s->head_dim;
    memset(s->worst, 0, 4 * d * sizeof(*s->worst));
    memset(s->cell.value, 0, 4 * d * d * sizeof(*s->cell.value));
    for (size_t k = 0; k < d; k++)
        for (size_t j = 0; j < d; j++) {
            double x = (double)cells[k * d + j];
            s->cell.value[k * d + j] = x;
            s->norm[j] += x * x;
        }
    for (size_t j = 0; j < d; j++)
        s->norm[j] = sqrt(s->norm[j]);
}

/* What one token is to every column; arrays are [D], one allocation. */
struct token {
    size_t dim;
    double root;               /* sqrt(D) */
    const double *key, *value; /* the caller's */
    double *decay, *query;     /* exp(gate); scale * query */
    /* Per value column, zeroed for each token: */
    double *dot, *dot_abs; /* sum_k S'_k key_k, and of magnitudes; S' is S decayed */
    double *norm;          /* |S'| */
    double *delta;
    double *out, *out_abs;                            /* sum_k S_k query_k, and of magnitudes */
    double *new_norm;                                 /* |S| */
    double *pull_worst, *pull_spread, *pull_fixed;    /* sum_k |key_k| decay_k radius_k, before */
    double *seen_worst, *seen_spread, *seen_fixed;    /* sum_k |query_k| radius_k, after */
    double *total_worst, *total_spread, *total_fixed; /* sum_k radius_k^2, after */
    double beta;
    double max_decay, key_norm, query_norm;
    double decayed_key;            /* |key . decay| */
    double contraction;            /* L */
    double query_error, key_error; /* 2-norm of the used scaled query's and key's difference */
    const double *value_error;     /* or NULL */
    double beta_error;
    double exp_error;   /* a decay's relative error: exp's and the gate's own */
    double decay_error; /* the same, and the rounding of its product with the state */
};

#define TOKEN_ARRAYS 18

/* Carves the arrays out of one allocation, which starts at `decay`. */
static void token_init(struct token *t, size_t d)
{
    double *work = kda_doubles(TOKEN_ARRAYS * d);
    double **const arrays[TOKEN_ARRAYS] = {
        &t->decay,       &t->query,        &t->dot,         &t->dot_abs,     &t->norm,
        &t->delta,       &t->out,          &t->out_abs,     &t->new_norm,    &t->pull_worst,
        &t->pull_spread, &t->pull_fixed,   &t->seen_worst,  &t->seen_spread, &t->seen_fixed,
        &t->total_worst, &t->total_spread, &t->total_fixed,
    };

    t->dim = d;
    t->root = sqrt((double)d);
    for (size_t i = 0; i < TOKEN_ARRAYS; i++)
        *arrays[i] = work + i * d;
}

static double contraction(double beta, double key_square)
{
    double along_key = fabs(1.0 - beta * key_square);
    return along_key > 1.0 ? along_key : 1.0;
}

static void token_open(struct token *t, const struct kda_tokens *all, size_t i)
{
    size_t d = t->dim;
    const double *query = all->query + i * d;
    const double *gate = all->gate + i * d;
    double key_square = 0.0, query_square = 0.0, decayed_square = 0.0;

    t->key = all->key + i * d;
    t->value = all->value + i * d;
    t->beta = all->beta[i];
    double farthest = 0.0; /* from 0, of the log decays */
    t->max_decay = 0.0;
    for (size_t k = 0; k < d; k++) {
        t->decay[k] = det_exp(gate[k]);
        t->query[k] = all->scale * query[k];
        farthest = fabs(gate[k]) > farthest ? fabs(gate[k]) : farthest;
        t->max_decay = t->decay[k] > t->max_decay ? t->decay[k] : t->max_decay;
        key_square += t->key[k] * t->key[k];
        query_square += t->query[k] * t->query[k];
        decayed_square += t->key[k] * t->decay[k] * t->key[k] * t->decay[k];
    }
    t->query_error = all->query_error ? fabs(all->scale) * all->query_error[i] : 0.0;
    t->key_error = all->key_error ? all->key_error[i] : 0.0;
    t->value_error = all->value_error ? all->value_error + i * d : NULL;
    t->beta_error = all->beta_error ? all->beta_error[i] : 0.0;
    t->exp_error = kda_exp_error(farthest + (all->gate_error ? all->gate_error[i] : 0.0));
    if (all->gate_error)
        t->exp_error = (1.0 + t->exp_error) * (1.0 + det_expm1(all->gate_error[i])) - 1.0;
    t->decay_error = (1.0 + t->exp_error) * (1.0 + U_FP32) - 1.0;
    t->key_norm = sqrt(key_square);
    t->query_norm = sqrt(query_square);
    t->decayed_key = sqrt(decayed_square);
    t->contraction = contraction(t->beta, key_square);
    memset(t->dot, 0, (TOKEN_ARRAYS - 2) * d * sizeof(*t->dot)); /* all but decay and query */
}

/* S' = diag(decay) S, and what it gives with the key. */
static void decay_state(struct token *t, double *cells)
{
    size_t d = t->dim;
    double *restrict dot = t->dot, *restrict dot_abs = t->dot_abs, *restrict square = t->norm;

    for (size_t k = 0; k < d; k++) {
        double *restrict row = cells + k * d;
        double decay = t->decay[k], key = t->key[k], key_abs = fabs(key);
        for (size_t j = 0; j < d; j++) {
            double x = row[j] * decay;
            row[j] = x;
            dot[j] += x * key;
            dot_abs[j] += fabs(x) * key_abs;
            square[j] += x * x;
        }
    }
    for (size_t j = 0; j < d; j++)
        t->norm[j] = sqrt(t->norm[j]);
}

/* S += key delta^T, and what it gives with the query. */
static void update_state(struct token *t, double *cells)
{
    size_t d = t->dim;
    double *restrict out = t->out, *restrict out_abs = t->out_abs, *restrict square = t->new_norm;
    double *restrict delta = t->delta;

    for (size_t j = 0; j < d; j++)
        delta[j] = t->beta * (t->value[j] - t->dot[j]);
    for (size_t k = 0; k < d; k++) {
        double *restrict row = cells + k * d;
        double key = t->key[k], query = t->query[k], query_abs = fabs(query);
        for (size_t j = 0; j < d; j++) {
            double x = row[j] + key * delta[j];
            row[j] = x;
            out[j] += x * query;
            out_abs[j] += fabs(x) * query_abs;
            square[j] += x * x;
        }
    }
    for (size_t j = 0; j < d; j++)
        t->new_norm[j] = sqrt(t->new_norm[j]);
}

/* The errors of one column within one token. */
struct column {
    double floor;                /* underflow, in any element */
    double worst1;               /* |error of S'| */
    double reach;                /* what the kernel's sum with the key may run through */
    double delta_worst;          /* local error of delta: all but what S' brings */
    double delta_spread;         /* of it, independent roundings */
    double delta_fixed;          /* of it, the operands' own errors */
    double delta_size;           /* largest |delta| in the kernel */
    double worst, spread, fixed; /* of the new column, in the 2-norm */
};

/*
 * delta = beta (value - S'^T key). The sum over D rounds by gamma_D (sqrt(D) u when independent)
 * of its magnitudes; another key moves it by at most |S'| times the difference's norm; then a
 * subtraction and a product.
 */
static void column_delta(const struct token *t, size_t j, struct column *c)
{
    double d = (double)t->dim, beta = fabs(t->beta);
    double value = t->value_error ? t->value_error[j] : 0.0;
    double other_key = t->key_error * (t->norm[j] + c->worst1);
    double sum = gamma_n(d, U_FP32) * (c->reach + other_key) + other_key + d * TINY_FP32;
    double carried = t->key_norm * c->worst1;
    double miss = fabs(t->value[j] - t->dot[j]) + value + carried + sum;
    double other_beta = t->beta_error * miss, used_beta = beta + t->beta_error;

    c->delta_worst = beta * (sum + value) + other_beta + 4.0 * TINY_FP32;
    c->delta_worst += gamma_n(2.0, U_FP32) * used_beta * miss;
    c->delta_spread = used_beta * sqrt(d * kda_square(U_FP32 * (c->reach + other_key)) +
                                       2.0 * kda_square(U_FP32 * miss));
    c->delta_fixed = beta * (other_key + value) + other_beta;
    c->delta_size = fabs(t->delta[j]) + beta * carried + c->delta_worst;
}

/*
 * One column's radii from those before the token. S' = S decay rounds by decay_error of |S'|; the
 * map I - beta k k^T carries the sum with L; delta's own error and the update's two roundings (of
 * k delta and of the sum) come on top.
 */
static void column_step(const struct token *t, const struct kda_state *s, size_t j,
                        struct column *c)
{
    double e = s->worst[j], size = t->norm[j] + t->max_decay * e;
    double key = t->key_norm, l = t->contraction;

    c->floor = FTZ_FP32 * (s->norm[j] + e) + 4.0 * t->root * TINY_FP32;
    c->worst1 = t->max_decay * e + t->decay_error * size + c->floor;
    double spread1 = sqrt(kda_square(t->max_decay * s->spread[j]) + kda_square(U_FP32 * size));
    double fixed1 = t->max_decay * s->fixed[j] + t->exp_error * size + c->floor;
    c->reach = t->dot_abs[j] + key * c->worst1;
    column_delta(t, j, c);

    double added = (key + t->key_error) * c->delta_size;
    double moved = t->key_error * c->delta_size;
    c->worst = l * c->worst1 + key * c->delta_worst + moved + U_FP32 * added;
    c->worst = (c->worst + U_FP32 * t->new_norm[j] + c->floor) / (1.0 - U_FP32);
    c->spread = sqrt(kda_square(l * spread1) + kda_square(key * c->delta_spread) +
                     kda_square(U_FP32 * added) + kda_square(U_FP32 * (t->new_norm[j] + c->worst)));
    c->fixed = l * fixed1 + key * c->delta_fixed + moved + c->floor;
}

/* What the key makes of the elements' radii before the token. */
static void pull_radii(const struct token *t, const struct kda_state *s)
{
    size_t d = t->dim;
    double *restrict worst = t->pull_worst, *restrict spread = t->pull_spread;
    double *restrict fixed = t->pull_fixed;

    for (size_t k = 0; k < d; k++) {
        double weight = fabs(t->key[k]) * t->decay[k];
        for (size_t j = 0; j < d; j++) {
            worst[j] += weight * s->cell.worst[k * d + j];
            spread[j] += weight * s->cell.spread[k * d + j];
            fixed[j] += weight * s->cell.fixed[k * d + j];
        }
    }
}

/* Row k of the map (I - beta k k^T) diag(decay). */
struct map_row {
    double key, pull; /* |key_k|, |beta key_k| */
    double keep;      /* what element k keeps of itself */
    double self;      /* |key_k| decay_k, element k's share of the columns' pull */
    double norm;      /* of the row */
};

static struct map_row map_row_of(const struct token *t, size_t k)
{
    double key = fabs(t->key[k]), decay = t->decay[k];
    double others = kda_square(t->decayed_key) - kda_square(key * decay);
    struct map_row r = {
        .key = key,
        .pull = fabs(t->beta) * key,
        .keep = decay * fabs(1.0 - t->beta * key * key),
        .self = key * decay,
    };

    r.norm = sqrt(kda_square(r.keep) + kda_square(r.pull) * (others > 0.0 ? others : 0.0));
    return r;
}

/* What the map makes of an element's radius: by the column's norm, or element by element, where
   the others of its column add `pulled`. */
static double carry(const struct map_row *r, double own, double pulled, double column)
{
    double others = pulled - r->self * own;

    return kda_least(r->norm * column, r->keep * own + r->pull * (others > 0.0 ? others : 0.0));
}

/*
 * The radii of each element after the token: the radii before through the map, and the token's
 * own roundings, which reach element (k, j) directly or through delta; never more than the
 * column's.
 */
static void update_cells(const struct token *t, struct kda_state *s, const struct column *columns,
                         size_t k)
{
    size_t d = t->dim;
    const struct map_row r = map_row_of(t, k);
    double query = fabs(t->query[k]);

    for (size_t j = 0; j < d; j++) {
        const struct column *c = &columns[j];
        size_t at = k * d + j;
        double value = s->cell.value[at];
        double own = fabs(value - t->key[k] * t->delta[j]) + t->decay[k] * s->cell.worst[at];
        double cross = r.pull * (t->dot_abs[j] + t->pull_worst[j]);
        double added = (r.key + t->key_error) * c->delta_size;
        double moved = t->key_error * c->delta_size;
        double worst = carry(&r, s->cell.worst[at], t->pull_worst[j], s->worst[j]) +
                       t->decay_error * (own + cross) + r.key * c->delta_worst + moved +
                       U_FP32 * added;
        worst = (worst + U_FP32 * fabs(value) + 2.0 * c->floor) / (1.0 - U_FP32);
        double spread = carry(&r, s->cell.spread[at], t->pull_spread[j], s->spread[j]);
        spread = sqrt(kda_square(spread) + kda_square(U_FP32 * own) + kda_square(U_FP32 * cross) +
                      kda_square(r.key * c->delta_spread) + kda_square(U_FP32 * added) +
                      kda_square(U_FP32 * (fabs(value) + worst)));
        double fixed = carry(&r, s->cell.fixed[at], t->pull_fixed[j], s->fixed[j]) +
                       t->exp_error * (own + cross) + r.key * c->delta_fixed + moved +
                       2.0 * c->floor;
        s->cell.worst[at] = worst = kda_least(c->worst, worst);
        s->cell.spread[at] = spread = kda_least(c->spread, spread);
        s->cell.fixed[at] = fixed = kda_least(c->fixed, fixed);
        t->total_worst[j] += kda_square(worst);
        t->total_spread[j] += kda_square(spread);
        t->total_fixed[j] += kda_square(fixed);
        t->seen_worst[j] += query * worst;
        t->seen_spread[j] += query * spread;
        t->seen_fixed[j] += query * fixed;
    }
}

/* out = sum_k S_k (scale q_k): D products and additions and the scale, wherever it is applied. */
static void column_out(const struct token *t, const struct kda_state *s, size_t j,
                       const struct kda_field *out, size_t at)
{
    double n = (double)t->dim + 1.0, size = s->norm[j] + s->worst[j];
    double carried = kda_least(t->query_norm * s->worst[j], t->seen_worst[j]);
    double spread = kda_least(t->query_norm * s->spread[j], t->seen_spread[j]);
    double fixed = kda_least(t->query_norm * s->fixed[j], t->seen_fixed[j]);
    double other_query = t->query_error * size;
    double reach = t->out_abs[j] + carried + other_query;
    double floor = (n + 1.0) * TINY_FP32 * (1.0 + size);

    out->value[at] = t->out[j];
    out->worst[at] = carried + other_query + gamma_n(n, U_FP32) * reach + floor;
    out->spread[at] = sqrt(kda_square(spread) + n * kda_square(U_FP32) * kda_square(reach));
    out->fixed[at] = fixed + other_query + floor;
}

/* The radii after the token, of columns, elements and outputs. */
static void token_close(const struct token *t, struct kda_state *s, struct column *columns,
                        const struct kda_field *out, size_t i)
{
    size_t d = t->dim;

    for (size_t j = 0; j < d; j++)
        column_step(t, s, j, &columns[j]);
    for (size_t k = 0; k < d; k++)
        update_cells(t, s, columns, k);
    for (size_t j = 0; j < d; j++) {
        s->norm[j] = t->new_norm[j];
        s->worst[j] = kda_least(columns[j].worst, sqrt(t->total_worst[j]));
        s->spread[j] = kda_least(columns[j].spread, sqrt(t->total_spread[j]));
        s->fixed[j] = kda_least(columns[j].fixed, sqrt(t->total_fixed[j]));
        column_out(t, s, j, out, i * d + j);
    }
}

void kda_recurrence_run(const struct kda_tokens *all, struct kda_state *s, struct kda_field *out)
{
    struct token t = {0};
    struct column *columns = calloc(all->head_dim, sizeof(*columns));

    if (!columns) {
        fprintf(stderr, "out of memory: %zu columns\n", all->head_dim);
        abort();
    }
    token_init(&t, all->head_dim);
    for (size_t i = 0; i < all->count; i++) {
        token_open(&t, all, i);
        pull_radii(&t, s);
        decay_state(&t, s->cell.value);
        update_state(&t, s->cell.value);
        token_close(&t, s, columns, out, i);
    }
    free(columns);
    free(t.decay);
}

void kda_recurrence_values(const struct kda_tokens *all, struct kda_state *s, struct kda_field *out)
{
    struct token t = {0};

    token_init(&t, all->head_dim);
    for (size_t i = 0; i < all->count; i++) {
        token_open(&t, all, i);
        decay_state(&t, s->cell.value);
        update_state(&t, s->cell.value);
        memcpy(out->value + i * t.dim, t.out, t.dim * sizeof(*t.out));
    }
    free(t.decay);
}

double kda_contraction(const struct kda_tokens *t)
{
    size_t d = t->head_dim;
    double product = 1.0;

    for (size_t i = 0; i < t->count; i++) {
        const double *key = t->key + i * d, *gate = t->gate + i * d;
        double key_square = 0.0, max_gate = gate[0];
        for (size_t k = 0; k < d; k++) {
            key_square += key[k] * key[k];
            max_gate = gate[k] > max_gate ? gate[k] : max_gate;
        }
        product *= contraction(t->beta[i], key_square) * det_exp(max_gate);
    }
    return product;
}
