#include "reference/gated_delta_rule.h"

/*
 * Roundings between a stored operand and u, per term of the dot: its n products and additions,
 * the decay (of the state or of the dot), the subtraction, the product with beta; 3 to spare for
 * a kernel that rounds g k or g beta first. v meets the last two. Output terms: the dot and the
 * scale, on q or on the sum.
 */
#define EXTRA_DELTA  6.0
#define EXTRA_VALUE  2.0
#define EXTRA_OUTPUT 3.0

double gdr_contraction(double beta, double key_square)
{
    double along_key = fabs(1.0 - beta * key_square);
    return along_key > 1.0 ? along_key : 1.0;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double square_norm(const double *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

#define COLUMNS 8 /* worked on at a time: a row of the state is read a cache line at a time */

/* Dot products of a vector with adjacent columns of the state, and what bounds their errors. */
struct column_dots {
    double value[COLUMNS];
    double magnitude[COLUMNS];         /* sum |x_i| (|s_i| + error) */
    struct gdr_error carried[COLUMNS]; /* the state's own error seen through x */
};

static void dot_errors(const struct gdr_state *s, const double *x, double norm, size_t first,
                       size_t width, struct column_dots *d)
{
    for (size_t i = 0; i < s->k_dim; i++)
        for (size_t c = 0; c < width; c++) {
            const struct gdr_error *e = &s->element[i * s->v_dim + first + c];
            d->carried[c].worst += fabs(x[i]) * e->worst;
            d->carried[c].spread += fabs(x[i]) * e->spread;
        }
    for (size_t c = 0; c < width; c++) {
        d->carried[c].worst = smaller(d->carried[c].worst, norm * s->column[first + c].worst);
        d->carried[c].spread = smaller(d->carried[c].spread, norm * s->column[first + c].spread);
        d->magnitude[c] += d->carried[c].worst;
    }
}

static void dot_columns(const struct gdr_state *s, const double *x, double norm, size_t first,
                        size_t width, struct column_dots *d)
{
    *d = (struct column_dots){.value = {0.0}};
    for (size_t i = 0; i < s->k_dim; i++)
        for (size_t c = 0; c < width; c++) {
            double term = x[i] * s->value[i * s->v_dim + first + c];
            d->value[c] += term;
            d->magnitude[c] += fabs(term);
        }
    if (s->column != NULL)
        dot_errors(s, x, norm, first, width, d);
}

/* u of a column with the radii of its own roundings; inherited errors are not among them. */
static struct bounded delta(const struct gdr_state *s, const struct gdr_token *t, double dot,
                            double magnitude, double value)
{
    double n = (double)s->k_dim;
    double beta = fabs(t->beta);
    double product = t->gate * magnitude;
    double floor = (n + EXTRA_DELTA) * TINY_FP32;
    double square = (n + EXTRA_DELTA) * product * product + EXTRA_VALUE * value * value;
    struct bounded u = {.value = (value - t->gate * dot) * t->beta};

    if (s->column == NULL)
        return u;
    u.worst = beta * (gamma_n(n + EXTRA_DELTA, U_FP32) * product +
                      gamma_n(EXTRA_VALUE, U_FP32) * fabs(value) + floor) +
              floor;
    u.spread = beta * (U_FP32 * sqrt(square) + floor) + floor;
    return u;
}

/* What a block of columns takes from u: the value, its own roundings, and all of its error. */
struct deltas {
    struct bounded own[COLUMNS];
    struct gdr_error inherited[COLUMNS]; /* beta g k.e */
};

static void advance(const struct gdr_state *s, const struct gdr_token *t, const struct deltas *u,
                    size_t first, size_t width)
{
    for (size_t i = 0; i < s->k_dim; i++)
        for (size_t c = 0; c < width; c++) {
            double *h = &s->value[i * s->v_dim + first + c];
            *h = t->gate * *h + t->key[i] * u->own[c].value;
        }
}

/*
 * The same with errors. Each element is rounded three times at most: g s, k u, their sum. norm
 * gets the 2-norms of these roundings over the columns.
 */
static void advance_errors(const struct gdr_state *s, const struct gdr_token *t,
                           const struct deltas *u, size_t first, size_t width,
                           struct gdr_error norm[COLUMNS])
{
    for (size_t i = 0; i < s->k_dim; i++)
        for (size_t c = 0; c < width; c++) {
            size_t at = i * s->v_dim + first + c;
            struct gdr_error *e = &s->element[at];
            double k = fabs(t->key[i]);
            double of_u = k * (u->own[c].worst + u->inherited[c].worst);
            double decayed = t->gate * s->value[at];
            double added = t->key[i] * u->own[c].value;
            double r1 = rounding_error(fabs(decayed) + t->gate * e->worst, format_fp32);
            double r2 = rounding_error(fabs(added) + of_u, format_fp32);
            double grown = t->gate * e->worst + of_u + r1 + r2;
            double r3 = rounding_error(fabs(decayed + added) + grown, format_fp32);
            double square = r1 * r1 + r2 * r2 + r3 * r3;
            double inherited = t->gate * e->spread + k * u->inherited[c].spread;
            double own = k * u->own[c].spread;
            s->value[at] = decayed + added;
            e->worst = grown + r3;
            e->spread = sqrt(inherited * inherited + own * own + square);
            norm[c].worst += (r1 + r2 + r3) * (r1 + r2 + r3);
            norm[c].spread += square;
        }
    for (size_t c = 0; c < width; c++)
        norm[c] = (struct gdr_error){sqrt(norm[c].worst), sqrt(norm[c].spread)};
}

/* The columns' norms, by contraction; then no element's error is larger than its column's. */
static void contract(const struct gdr_state *s, const struct gdr_token *t, const struct deltas *u,
                     double key_norm, size_t first, size_t width,
                     const struct gdr_error norm[COLUMNS])
{
    double shrink = t->gate * gdr_contraction(t->beta, key_norm * key_norm);

    for (size_t c = 0; c < width; c++) {
        struct gdr_error *e = &s->column[first + c];
        double carried = shrink * e->spread;
        double of_u = key_norm * u->own[c].spread;
        e->worst = shrink * e->worst + key_norm * u->own[c].worst + norm[c].worst;
        e->spread = sqrt(carried * carried + of_u * of_u + norm[c].spread * norm[c].spread);
        for (size_t i = 0; i < s->k_dim; i++) {
            struct gdr_error *x = &s->element[i * s->v_dim + first + c];
            x->worst = smaller(x->worst, e->worst);
            x->spread = smaller(x->spread, e->spread);
        }
    }
}

static struct bounded read_out(const struct gdr_state *s, const struct column_dots *d, size_t c)
{
    double n = (double)s->k_dim + EXTRA_OUTPUT;
    double scale = s->scale * (1.0 + GDR_SCALE_ERROR);
    double of_scale = GDR_SCALE_ERROR * s->scale * fabs(d->value[c]);
    double floor = n * TINY_FP32;
    double dot = sqrt(n) * U_FP32 * d->magnitude[c];
    struct bounded o = {.value = s->scale * d->value[c]};

    if (s->column == NULL)
        return o;
    o.worst =
        scale * (d->carried[c].worst + gamma_n(n, U_FP32) * d->magnitude[c]) + of_scale + floor;
    o.spread = scale * sqrt(d->carried[c].spread * d->carried[c].spread + dot * dot);
    o.fixed = of_scale + floor;
    return rounded(o, s->out);
}

/* The state and u of a block of columns. */
static void step_columns(const struct gdr_state *s, const struct gdr_token *t, double key_norm,
                         size_t first, size_t width, struct deltas *u)
{
    struct column_dots d;
    struct gdr_error norm[COLUMNS] = {{0.0, 0.0}};
    double pull = fabs(t->beta) * t->gate;

    dot_columns(s, t->key, key_norm, first, width, &d);
    for (size_t c = 0; c < width; c++) {
        u->own[c] = delta(s, t, d.value[c], d.magnitude[c], t->value[first + c]);
        u->inherited[c] = (struct gdr_error){pull * d.carried[c].worst, pull * d.carried[c].spread};
    }
    if (s->column == NULL) {
        advance(s, t, u, first, width);
        return;
    }
    advance_errors(s, t, u, first, width, norm);
    contract(s, t, u, key_norm, first, width, norm);
}

void gdr_step(const struct gdr_state *s, const struct gdr_token *t, struct bounded *u,
              struct bounded *output)
{
    double key_norm = sqrt(square_norm(t->key, s->k_dim));
    double query_norm = sqrt(square_norm(t->query, s->k_dim));

    for (size_t first = 0; first < s->v_dim; first += COLUMNS) {
        size_t width = s->v_dim - first < COLUMNS ? s->v_dim - first : COLUMNS;
        struct column_dots d;
        struct deltas deltas;
        step_columns(s, t, key_norm, first, width, &deltas);
        for (size_t c = 0; c < width && u != NULL; c++) {
            struct gdr_error e = deltas.inherited[c];
            struct bounded *x = &u[first + c];
            *x = deltas.own[c];
            x->worst += e.worst;
            x->spread = sqrt(x->spread * x->spread + e.spread * e.spread);
        }
        if (output == NULL)
            continue;
        dot_columns(s, t->query, query_norm, first, width, &d);
        for (size_t c = 0; c < width; c++)
            output[first + c] = read_out(s, &d, c);
    }
}

struct bounded gdr_element(const struct gdr_state *s, size_t row, size_t column)
{
    size_t at = row * s->v_dim + column;
    struct bounded b = {.value = s->value[at]};

    if (s->element != NULL) {
        b.worst = s->element[at].worst;
        b.spread = s->element[at].spread;
    }
    return b;
}
