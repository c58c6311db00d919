/* gc, u and w of one chunk; the derivation is in the header and at each step. */
#include "reference/kda_chunk_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/detmath.h"
#include "reference/kda_pointwise.h"

void kda_chunk_terms_init(struct kda_chunk_terms *x, size_t tokens, size_t head_dim)
{
    kda_field_init(&x->gc, tokens * head_dim);
    kda_field_init(&x->u, tokens * head_dim);
    kda_field_init(&x->w, tokens * head_dim);
}

void kda_chunk_terms_release(struct kda_chunk_terms *x)
{
    kda_field_release(&x->gc);
    kda_field_release(&x->u);
    kda_field_release(&x->w);
}

double kda_exponent_error(double s)
{
    return s <= 0.5 ? s * (1.0 + s) : HUGE_VAL; /* exp(s) - 1 <= s + s^2 for s <= 1.79 */
}

/* ---- exp(gc_i - gc_j) and the products with it ---- */

/* exp(gc_i - gc_(i-1)): the decays between neighbours, whose products are all the others. */
static double *neighbour_decays(const struct kda_decayed *in)
{
    size_t d = in->head_dim, n = in->count;
    double *step = kda_doubles(n * d);
    for (size_t at = d; at < n * d; at++)
        step[at] = det_exp(in->gc->value[at] - in->gc->value[at - d]);
    return step;
}

/* sum_d of left_i right_j exp(gc_i - gc_j), of its magnitudes, and of these times the error of the
   exponential. */
struct product {
    double value, mass, slack, max_slack;
};

/* The exponent is the rounded difference of two stored sums: their errors, and u of the
   difference. exp's own error comes on top. */
static struct product one_product(const struct kda_decayed *in, const double *decay, size_t i,
                                  size_t j)
{
    size_t d = in->head_dim;
    const double *left = in->left + i * d, *right = in->right + j * d;
    const double *gi = in->gc->value + i * d, *gj = in->gc->value + j * d;
    const double *ei = in->gc->worst + i * d, *ej = in->gc->worst + j * d;
    struct product p = {0};

    for (size_t k = 0; k < d; k++) {
        double term = left[k] * right[k] * decay[k];
        double error = i == j ? 0.0 : (ei[k] + ej[k]) * (1.0 + U_FP32);
        error += U_FP32 * fabs(gi[k] - gj[k]);
        error += kda_exp_error(fabs(gi[k] - gj[k]) + error);
        p.value += term;
        p.mass += fabs(term);
        p.slack += fabs(term) * error;
        p.max_slack = error > p.max_slack ? error : p.max_slack;
    }
    return p;
}

/* D products of three factors and D additions, and the caller's factor. */
static void store_product(const struct kda_decayed *in, const struct product *p, double norms,
                          struct kda_field *out, size_t at)
{
    double n = (double)in->head_dim + 2.0 + in->factor_roundings;
    double rounding = gamma_n(n, U_FP32);
    double top = p->max_slack + rounding;
    double curved = top > 0.0 ? kda_exponent_error(top) / top : 1.0;
    double floor = FTZ_FP32 * norms + n * TINY_FP32;
    double fixed = p->slack * curved;

    out->value[at] = p->value;
    out->fixed[at] = fixed + floor;
    out->worst[at] = fixed + rounding * p->mass * curved + floor;
    out->spread[at] = sqrt(n) * U_FP32 * p->mass * curved;
}

void kda_decayed_products(const struct kda_decayed *in, struct kda_field *out)
{
    size_t d = in->head_dim, n = in->count;
    double *step = neighbour_decays(in);
    double *run = step; /* row 0 of `step` is free: nothing decays before the first token */

    memset(out->value, 0, 4 * out->count * sizeof(*out->value));
    for (size_t j = 0; j < n; j++) {
        double right = kda_norm(in->right + j * d, d);
        for (size_t k = 0; k < d; k++)
            run[k] = 1.0;
        for (size_t i = j; i < n; i++) {
            for (size_t k = 0; i > j && k < d; k++)
                run[k] *= step[i * d + k];
            if (i == j && !in->diagonal)
                continue;
            struct product p = one_product(in, run, i, j);
            store_product(in, &p, kda_norm(in->left + i * d, d) * right, out, i * n + j);
        }
    }
    free(step);
}

/* ---- the triangular inverse ---- */

/* Matrices of one chunk, [n][n] each, lower triangular. */
struct inverse {
    size_t count;
    struct kda_field a; /* A with its radii, strictly lower */
    struct kda_field t; /* T; `worst` bounds |T^ - T|, the other radii are not used */
    struct kda_field r; /* the residual of row i's sums: `worst` and `spread` of R */
};

static void inverse_init(struct inverse *x, size_t n)
{
    x->count = n;
    kda_field_init(&x->a, n * n);
    kda_field_init(&x->t, n * n);
    kda_field_init(&x->r, n * n);
}

static void inverse_release(struct inverse *x)
{
    kda_field_release(&x->a);
    kda_field_release(&x->t);
    kda_field_release(&x->r);
}

/* A = -beta_i (its product): the factor's rounding is in the product's radii already. */
static void inverse_open(struct inverse *x, const struct kda_tokens *t, const struct kda_field *gc)
{
    size_t n = t->count;
    struct kda_decayed in = {
        .head_dim = t->head_dim,
        .count = n,
        .left = t->key,
        .right = t->key,
        .gc = gc,
        .factor_roundings = 1.0,
        .diagonal = false,
    };

    kda_decayed_products(&in, &x->a);
    for (size_t i = 0; i < n; i++) {
        double beta = fabs(t->beta[i]);
        for (size_t at = i * n; at < i * n + i; at++) {
            x->a.value[at] *= -t->beta[i];
            x->a.worst[at] = beta * x->a.worst[at] + TINY_FP32;
            x->a.spread[at] *= beta;
            x->a.fixed[at] = beta * x->a.fixed[at] + TINY_FP32;
        }
    }
}

/*
 * Row i of T: T_ij = A_ij + sum_(j<m<i) A_im T_mj, a sum of i - j terms: R_ij <= gamma_(i-j) of
 * the magnitudes. And |T^ - T|_ij <= sum_m |T_im| h_mj with h = |dA| |T^| + R: rows above only,
 * so one sweep. `h` is [n][n].
 */
static void inverse_row(struct inverse *x, size_t i, double *h)
{
    size_t n = x->count;
    const double *a = x->a.value, *da = x->a.worst;
    double *t = x->t.value, *dt = x->t.worst;

    t[i * n + i] = 1.0;
    for (size_t j = 0; j < i; j++) {
        double value = a[i * n + j], mass = fabs(value) + da[i * n + j], carried = da[i * n + j];
        for (size_t m = j + 1; m < i; m++) {
            double size = fabs(t[m * n + j]) + dt[m * n + j];
            value += a[i * n + m] * t[m * n + j];
            mass += (fabs(a[i * n + m]) + da[i * n + m]) * size;
            carried += da[i * n + m] * size;
        }
        double terms = (double)(i - j);
        t[i * n + j] = value;
        x->r.worst[i * n + j] = gamma_n(terms, U_FP32) * mass + terms * TINY_FP32;
        x->r.spread[i * n + j] = sqrt(terms) * U_FP32 * mass;
        h[i * n + j] = carried + x->r.worst[i * n + j];
    }
    for (size_t j = 0; j < i; j++) {
        double sum = h[i * n + j];
        for (size_t m = j + 1; m < i; m++)
            sum += fabs(t[i * n + m]) * h[m * n + j];
        dt[i * n + j] = sum;
    }
}

static void inverse_solve(struct inverse *x)
{
    double *h = kda_doubles(x->count * x->count);
    for (size_t i = 0; i < x->count; i++)
        inverse_row(x, i, h);
    free(h);
}

/* ---- T b with the radii of b ---- */

/* One row of the right-hand sides and of what the solution collects; [D] each. */
struct solve {
    size_t dim;
    struct kda_field h; /* dA z + R b + db, whose squares are kept in `spread` */
    struct kda_field z; /* T^ b^: `worst` is what later rows inflate by */
};

/*
 * z = T^ b^ differs from y = T b by T (dA z + R b^ + db): row i of h needs the rows of z above
 * it. Errors of A's elements are independent of each other, so are R's.
 */
static void collect(const struct inverse *x, const struct kda_field *b, const struct kda_field *y,
                    struct solve *s, size_t i)
{
    size_t n = x->count, d = s->dim;
    double *restrict worst = s->h.worst + i * d, *restrict spread = s->h.spread + i * d;
    double *restrict fixed = s->h.fixed + i * d;

    for (size_t k = 0; k < d; k++) {
        worst[k] = b->worst[i * d + k];
        spread[k] = kda_square(b->spread[i * d + k]);
        fixed[k] = b->fixed[i * d + k];
    }
    for (size_t m = 0; m < i; m++) {
        size_t at = i * n + m;
        double da = x->a.worst[at], da_spread = kda_square(x->a.spread[at]),
               da_fixed = x->a.fixed[at];
        double r = x->r.worst[at], r_spread = kda_square(x->r.spread[at]);
        for (size_t k = 0; k < d; k++) {
            double z = fabs(y->value[m * d + k]) + s->z.worst[m * d + k];
            double right = fabs(b->value[m * d + k]) + b->worst[m * d + k];
            worst[k] += da * z + r * right;
            spread[k] += da_spread * kda_square(z) + r_spread * kda_square(right);
            fixed[k] += da_fixed * z;
        }
    }
}

/* Row i of the kernel's sum: i + 1 products and additions over T^ b^. */
static void finish(const struct inverse *x, const struct kda_field *b, struct kda_field *y,
                   struct solve *s, size_t i)
{
    size_t n = x->count, d = s->dim;
    double terms = (double)(i + 1);

    for (size_t k = 0; k < d; k++) {
        double worst = 0.0, spread = 0.0, fixed = 0.0, mass = 0.0;
        for (size_t m = 0; m <= i; m++) {
            double t = fabs(x->t.value[i * n + m]), size = t + x->t.worst[i * n + m];
            worst += t * s->h.worst[m * d + k];
            spread += kda_square(t) * s->h.spread[m * d + k];
            fixed += t * s->h.fixed[m * d + k];
            mass += size * (fabs(b->value[m * d + k]) + b->worst[m * d + k]);
        }
        s->z.worst[i * d + k] = worst;
        y->worst[i * d + k] = worst + gamma_n(terms, U_FP32) * mass + terms * TINY_FP32;
        y->spread[i * d + k] = sqrt(spread + terms * kda_square(U_FP32 * mass));
        y->fixed[i * d + k] = fixed + terms * TINY_FP32;
    }
}

static void solve(const struct inverse *x, const struct kda_field *b, size_t dim,
                  struct kda_field *y)
{
    size_t n = x->count;
    struct solve s = {.dim = dim};

    kda_field_init(&s.h, n * dim);
    kda_field_init(&s.z, n * dim);
    memset(y->value, 0, n * dim * sizeof(*y->value));
    for (size_t i = 0; i < n; i++) {
        for (size_t m = 0; m <= i; m++)
            for (size_t k = 0; k < dim; k++)
                y->value[i * dim + k] += x->t.value[i * n + m] * b->value[m * dim + k];
        collect(x, b, y, &s, i);
        finish(x, b, y, &s, i);
    }
    kda_field_release(&s.h);
    kda_field_release(&s.z);
}

/* ---- the chunk ---- */

/* gc_i is a sum of i + 1 terms of one sign, hence gamma_i |gc_i|. The same gate in every channel
   rounds the same way in each: nothing here is independent. */
static void cumulate(const struct kda_tokens *t, struct kda_field *gc)
{
    size_t d = t->head_dim;

    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < d; k++) {
            size_t at = i * d + k;
            double before = i ? gc->value[at - d] : 0.0;
            gc->value[at] = before + t->gate[at];
            gc->worst[at] = gamma_n((double)i, U_FP32) * fabs(gc->value[at]);
            gc->spread[at] = 0.0;
            gc->fixed[at] = gc->worst[at];
        }
}

/* beta value: one rounding. */
static void value_side(const struct kda_tokens *t, struct kda_field *b)
{
    size_t d = t->head_dim;

    for (size_t at = 0; at < t->count * d; at++) {
        b->value[at] = t->beta[at / d] * t->value[at];
        b->spread[at] = U_FP32 * fabs(b->value[at]);
        b->fixed[at] = TINY_FP32;
        b->worst[at] = b->spread[at] + b->fixed[at];
    }
}

/* beta key exp(gc): two roundings, and exp of a sum with an error. */
static void key_side(const struct kda_tokens *t, const struct kda_field *gc, struct kda_field *b)
{
    size_t d = t->head_dim;

    for (size_t at = 0; at < t->count * d; at++) {
        double whole = t->beta[at / d] * t->key[at];
        double value = whole * det_exp(gc->value[at]);
        double rounding = gamma_n(2.0, U_FP32);
        double error = gc->worst[at] + kda_exp_error(fabs(gc->value[at]) + gc->worst[at]);
        double exponent = kda_exponent_error(error + rounding);
        b->value[at] = value;
        b->spread[at] = sqrt(2.0) * U_FP32 * fabs(value);
        b->fixed[at] = exponent * fabs(value) + FTZ_FP32 * fabs(whole) + 2.0 * TINY_FP32;
        b->worst[at] = b->fixed[at];
    }
}

void kda_chunk_prepare(const struct kda_tokens *t, struct kda_chunk_terms *out)
{
    struct inverse x;
    struct kda_field b;

    cumulate(t, &out->gc);
    inverse_init(&x, t->count);
    inverse_open(&x, t, &out->gc);
    inverse_solve(&x);
    kda_field_init(&b, t->count * t->head_dim);
    value_side(t, &b);
    solve(&x, &b, t->head_dim, &out->u);
    key_side(t, &out->gc, &b);
    solve(&x, &b, t->head_dim, &out->w);
    kda_field_release(&b);
    inverse_release(&x);
}
