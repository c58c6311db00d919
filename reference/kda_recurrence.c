/* The token recurrence and the radii it carries; the derivation is in the header and at each step. */
#include "reference/kda_recurrence.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/detmath.h"

/* The reference's own roundings obey the same recurrence at u = 2^-53, 2^-29 of fp32's; doubled. */
#define OWN_SHARE 0x1p-28

static double *doubles(size_t count)
{
    double *p = calloc(count ? count : 1, sizeof(*p));
    if (!p) {
        fprintf(stderr, "out of memory: %zu doubles\n", count);
        abort();
    }
    return p;
}

void kda_field_init(struct kda_field *f, size_t count)
{
    double *p = doubles(4 * count);
    *f = (struct kda_field){
        .count = count,
        .value = p,
        .worst = p + count,
        .spread = p + 2 * count,
        .fixed = p + 3 * count,
    };
}

void kda_field_release(struct kda_field *f)
{
    free(f->value);
    memset(f, 0, sizeof(*f));
}

struct bounded kda_field_at(const struct kda_field *f, size_t i)
{
    double own = OWN_SHARE * f->worst[i];
    return (struct bounded){
        .value = f->value[i],
        .worst = f->worst[i] + own,
        .spread = f->spread[i],
        .fixed = f->fixed[i] + own,
    };
}

void kda_state_init(struct kda_state *s, size_t head_dim)
{
    double *p = doubles(4 * head_dim);
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

/* What one token is to every column. */
struct token {
    size_t dim;
    double root;               /* sqrt(D) */
    const double *key, *value; /* [D] */
    double *decay, *query;     /* [D]: exp(gate); scale * query */
    double *dot,
        *dot_abs;  /* [D], per column: sum_k S'_k key_k, and of magnitudes; S' = decayed S */
    double *norm;  /* [D]: |S'| */
    double *delta; /* [D] */
    double *out, *out_abs; /* [D]: sum_k S_k query_k, and of magnitudes */
    double *new_norm;      /* [D]: |S| */
    double beta;
    double max_decay, key_norm, query_norm;
    double decayed_key;            /* |key . decay| */
    double contraction;            /* L */
    double query_error, key_error; /* 2-norm of the used scaled query's and key's difference */
    const double *value_error;     /* [D], or NULL */
    double beta_error;
    double exp_error;   /* a decay's relative error: exp's and the gate's own */
    double decay_error; /* the same, and the rounding of its product with the state */
};

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
    t->max_decay = 0.0;
    for (size_t k = 0; k < d; k++) {
        t->decay[k] = det_exp(gate[k]);
        t->query[k] = all->scale * query[k];
        t->max_decay = t->decay[k] > t->max_decay ? t->decay[k] : t->max_decay;
        key_square += t->key[k] * t->key[k];
        query_square += t->query[k] * t->query[k];
        decayed_square += t->key[k] * t->decay[k] * t->key[k] * t->decay[k];
    }
    t->query_error = all->query_error ? fabs(all->scale) * all->query_error[i] : 0.0;
    t->key_error = all->key_error ? all->key_error[i] : 0.0;
    t->value_error = all->value_error ? all->value_error + i * d : NULL;
    t->beta_error = all->beta_error ? all->beta_error[i] : 0.0;
    t->exp_error = KDA_EXP_ERROR;
    if (all->gate_error)
        t->exp_error = (1.0 + KDA_EXP_ERROR) * (1.0 + det_expm1(all->gate_error[i])) - 1.0;
    t->decay_error = (1.0 + t->exp_error) * (1.0 + U_FP32) - 1.0;
    t->key_norm = sqrt(key_square);
    t->query_norm = sqrt(query_square);
    t->decayed_key = sqrt(decayed_square);
    t->contraction = contraction(t->beta, key_square);
    /* dot .. new_norm are one allocation, seven arrays from `dot` on. */
    memset(t->dot, 0, 7 * d * sizeof(*t->dot));
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

static double square(double x)
{
    return x * x;
}

/*
 * delta = beta (value - S'^T key). The sum over D rounds by gamma_D (sqrt(D) u when independent) of its
 * magnitudes; another key moves it by at most |S'| times the difference's norm; then a subtraction and a
 * product.
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
    c->delta_spread =
        used_beta * sqrt(d * square(U_FP32 * (c->reach + other_key)) + 2.0 * square(U_FP32 * miss));
    c->delta_fixed = beta * (other_key + value) + other_beta;
    c->delta_size = fabs(t->delta[j]) + beta * carried + c->delta_worst;
}

/*
 * One column's radii from those before the token. S' = S decay rounds by decay_error of |S'|; the map
 * I - beta k k^T carries the sum with L; delta's own error and the update's two roundings (of k delta and of
 * the sum) come on top.
 */
static void column_step(const struct token *t, const struct kda_state *s, size_t j,
                        struct column *c)
{
    double e = s->worst[j], size = t->norm[j] + t->max_decay * e;
    double key = t->key_norm, l = t->contraction;

    c->floor = FTZ_FP32 * (s->norm[j] + e) + 4.0 * t->root * TINY_FP32;
    c->worst1 = t->max_decay * e + t->decay_error * size + c->floor;
    double spread1 = sqrt(square(t->max_decay * s->spread[j]) + square(U_FP32 * size));
    double fixed1 = t->max_decay * s->fixed[j] + t->exp_error * size + c->floor;
    c->reach = t->dot_abs[j] + key * c->worst1;
    column_delta(t, j, c);

    double added = (key + t->key_error) * c->delta_size;
    double moved = t->key_error * c->delta_size;
    c->worst = l * c->worst1 + key * c->delta_worst + moved + U_FP32 * added;
    c->worst = (c->worst + U_FP32 * t->new_norm[j] + c->floor) / (1.0 - U_FP32);
    c->spread = sqrt(square(l * spread1) + square(key * c->delta_spread) + square(U_FP32 * added) +
                     square(U_FP32 * (t->new_norm[j] + c->worst)));
    c->fixed = l * fixed1 + key * c->delta_fixed + moved + c->floor;
}

/* out = sum_k S_k (scale q_k): D products and additions and the scale, wherever it is applied. */
static void column_out(const struct token *t, size_t j, const struct column *c,
                       const struct kda_field *out, size_t at)
{
    double n = (double)t->dim + 1.0, size = t->new_norm[j] + c->worst;
    double carried = t->query_norm * c->worst, other_query = t->query_error * size;
    double reach = t->out_abs[j] + carried + other_query;
    double floor = (n + 1.0) * TINY_FP32 * (1.0 + size);

    out->value[at] = t->out[j];
    out->worst[at] = carried + other_query + gamma_n(n, U_FP32) * reach + floor;
    out->spread[at] = sqrt(square(t->query_norm * c->spread) + n * square(U_FP32) * square(reach));
    out->fixed[at] = t->query_norm * c->fixed + other_query + floor;
}

static double least(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

/*
 * The radii of each element after the last token, from the column's before it: row k of the map
 * (I - beta k k^T) diag(decay) has norm^2 decay_k^2 (1 - beta k_k^2)^2 + (beta k_k)^2 sum_(m != k) (k_m decay_m)^2,
 * and the token's own roundings reach element k directly or through delta.
 */
static void column_cells(const struct token *t, struct kda_state *s, size_t j,
                         const struct column *c)
{
    size_t d = t->dim;
    double e = s->worst[j];

    for (size_t k = 0; k < d; k++) {
        size_t at = k * d + j;
        double key = fabs(t->key[k]), decay = t->decay[k], pull = fabs(t->beta) * key;
        double value = s->cell.value[at];
        double others = square(t->decayed_key) - square(key * decay);
        double row = sqrt(square(decay * (1.0 - t->beta * key * key)) +
                          square(pull) * (others > 0.0 ? others : 0.0));
        double own = fabs(value - t->key[k] * t->delta[j]) + decay * e;
        double cross = pull * (t->dot_abs[j] + t->decayed_key * e);
        double added = (key + t->key_error) * c->delta_size;
        double moved = t->key_error * c->delta_size;
        double worst = row * e + t->decay_error * (own + cross) + key * c->delta_worst + moved +
                       U_FP32 * added;
        worst = (worst + U_FP32 * fabs(value) + 2.0 * c->floor) / (1.0 - U_FP32);
        double spread = sqrt(square(row * s->spread[j]) + square(U_FP32 * own) +
                             square(U_FP32 * cross) + square(key * c->delta_spread) +
                             square(U_FP32 * added) + square(U_FP32 * (fabs(value) + worst)));
        double fixed = row * s->fixed[j] + t->exp_error * (own + cross) + key * c->delta_fixed +
                       moved + 2.0 * c->floor;
        s->cell.worst[at] = least(c->worst, worst);
        s->cell.spread[at] = least(c->spread, spread);
        s->cell.fixed[at] = least(c->fixed, fixed);
    }
}

/* A column's norm is no larger than that of its elements' radii. */
static void column_refine(struct kda_state *s, size_t j)
{
    size_t d = s->head_dim;
    double worst = 0.0, spread = 0.0, fixed = 0.0;

    for (size_t at = j; at < d * d; at += d) {
        worst += square(s->cell.worst[at]);
        spread += square(s->cell.spread[at]);
        fixed += square(s->cell.fixed[at]);
    }
    s->worst[j] = least(s->worst[j], sqrt(worst));
    s->spread[j] = least(s->spread[j], sqrt(spread));
    s->fixed[j] = least(s->fixed[j], sqrt(fixed));
}

static void token_close(const struct token *t, struct kda_state *s, const struct kda_field *out,
                        size_t i, bool last)
{
    struct column c;

    for (size_t j = 0; j < t->dim; j++) {
        column_step(t, s, j, &c);
        column_out(t, j, &c, out, i * t->dim + j);
        if (last)
            column_cells(t, s, j, &c);
        s->worst[j] = c.worst;
        s->spread[j] = c.spread;
        s->fixed[j] = c.fixed;
        s->norm[j] = t->new_norm[j];
        if (last)
            column_refine(s, j);
    }
}

void kda_recurrence_run(const struct kda_tokens *all, struct kda_state *s, struct kda_field *out)
{
    size_t d = all->head_dim;
    double *work = doubles(9 * d);
    struct token t = {
        .dim = d,
        .root = sqrt((double)d),
        .decay = work,
        .query = work + d,
        .dot = work + 2 * d,
        .dot_abs = work + 3 * d,
        .norm = work + 4 * d,
        .delta = work + 5 * d,
        .out = work + 6 * d,
        .out_abs = work + 7 * d,
        .new_norm = work + 8 * d,
    };

    for (size_t i = 0; i < all->count; i++) {
        token_open(&t, all, i);
        decay_state(&t, s->cell.value);
        update_state(&t, s->cell.value);
        token_close(&t, s, out, i, i + 1 == all->count);
    }
    free(work);
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
