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

/* A dot product of a vector with a column of the state, and what bounds its error. */
struct column_dot {
    double value;
    double magnitude;           /* sum |x_i| (|s_i| + error) */
    double carried, carried_sd; /* the state's own error seen through x */
};

static struct column_dot dot_column(const struct gdr_state *s, const double *x, double norm,
                                    size_t v)
{
    struct column_dot d = {0};
    double worst = 0.0;
    double spread = 0.0;
    for (size_t i = 0; i < s->k_dim; i++) {
        size_t at = i * s->v_dim + v;
        d.value += x[i] * s->value[at];
        d.magnitude += fabs(x[i] * s->value[at]);
        if (s->element != NULL) {
            worst += fabs(x[i]) * s->element[at].worst;
            spread += fabs(x[i]) * s->element[at].spread;
        }
    }
    if (s->column != NULL) {
        d.carried = smaller(worst, norm * s->column[v].worst);
        d.carried_sd = smaller(spread, norm * s->column[v].spread);
    }
    d.magnitude += d.carried;
    return d;
}

/* u of column v; the radii are those of its own roundings: `d` holds the inherited error. */
static struct bounded delta(const struct gdr_state *s, const struct gdr_token *t,
                            const struct column_dot *d, size_t v)
{
    double n = (double)s->k_dim;
    double beta = fabs(t->beta);
    double dot = t->gate * d->magnitude;
    double value = fabs(t->value[v]);
    double floor = (n + EXTRA_DELTA) * TINY_FP32;
    struct bounded u = {.value = (t->value[v] - t->gate * d->value) * t->beta};
    if (s->column == NULL)
        return u;
    u.worst = beta * (gamma_n(n + EXTRA_DELTA, U_FP32) * dot +
                      gamma_n(EXTRA_VALUE, U_FP32) * value + floor) +
              floor;
    u.spread = beta * (U_FP32 * sqrt((n + EXTRA_DELTA) * dot * dot + EXTRA_VALUE * value * value) +
                       floor) +
               floor;
    return u;
}

/*
 * The column's update and its errors. Each element is rounded three times at most: g s, k u,
 * their sum. `through` is u's whole error, its own and beta g k.e.
 */
static void advance(const struct gdr_state *s, const struct gdr_token *t, struct bounded own,
                    struct gdr_error through, double key_norm, size_t v)
{
    struct gdr_error norm = {0};
    for (size_t i = 0; i < s->k_dim; i++) {
        size_t at = i * s->v_dim + v;
        double decayed = t->gate * s->value[at];
        double added = t->key[i] * own.value;
        s->value[at] = decayed + added;
        if (s->column == NULL)
            continue;
        struct gdr_error *e = &s->element[at];
        double k = fabs(t->key[i]);
        double r1 = rounding_error(fabs(decayed) + t->gate * e->worst, format_fp32);
        double r2 = rounding_error(fabs(added) + k * through.worst, format_fp32);
        double grown = t->gate * e->worst + k * through.worst + r1 + r2;
        double r3 = rounding_error(fabs(s->value[at]) + grown, format_fp32);
        double rounding = r1 * r1 + r2 * r2 + r3 * r3;
        double inherited = t->gate * e->spread + k * through.spread;
        e->worst = grown + r3;
        e->spread = sqrt(inherited * inherited + k * own.spread * k * own.spread + rounding);
        norm.worst += (r1 + r2 + r3) * (r1 + r2 + r3);
        norm.spread += rounding;
    }
    if (s->column == NULL)
        return;
    struct gdr_error *c = &s->column[v];
    double shrink = t->gate * gdr_contraction(t->beta, key_norm * key_norm);
    double carried = shrink * c->spread;
    double from_u = key_norm * own.spread;
    c->worst = shrink * c->worst + key_norm * own.worst + sqrt(norm.worst);
    c->spread = sqrt(carried * carried + from_u * from_u + norm.spread);
    for (size_t i = 0; i < s->k_dim; i++) {
        struct gdr_error *e = &s->element[i * s->v_dim + v];
        e->worst = smaller(e->worst, c->worst);
        e->spread = smaller(e->spread, c->spread);
    }
}

static struct bounded read_out(const struct gdr_state *s, const struct gdr_token *t,
                               double query_norm, size_t v)
{
    double n = (double)s->k_dim + EXTRA_OUTPUT;
    struct column_dot d = dot_column(s, t->query, query_norm, v);
    struct bounded o = {.value = s->scale * d.value};
    if (s->column == NULL)
        return o;
    double scale = s->scale * (1.0 + GDR_SCALE_ERROR);
    double of_scale = GDR_SCALE_ERROR * s->scale * fabs(d.value);
    double floor = n * TINY_FP32;
    double dot = sqrt(n) * U_FP32 * d.magnitude;
    o.worst = scale * (d.carried + gamma_n(n, U_FP32) * d.magnitude) + of_scale + floor;
    o.spread = scale * sqrt(d.carried_sd * d.carried_sd + dot * dot);
    o.fixed = of_scale + floor;
    return rounded(o, s->out);
}

void gdr_step(const struct gdr_state *s, const struct gdr_token *t, struct bounded *u,
              struct bounded *output)
{
    double key_norm = sqrt(square_norm(t->key, s->k_dim));
    double query_norm = sqrt(square_norm(t->query, s->k_dim));
    for (size_t v = 0; v < s->v_dim; v++) {
        struct column_dot d = dot_column(s, t->key, key_norm, v);
        struct bounded own = delta(s, t, &d, v);
        double pull = fabs(t->beta) * t->gate;
        struct gdr_error through = {own.worst + pull * d.carried, pull * d.carried_sd};
        advance(s, t, own, through, key_norm, v);
        if (u != NULL) {
            u[v] = own;
            u[v].worst = through.worst;
            u[v].spread = sqrt(own.spread * own.spread + through.spread * through.spread);
        }
        if (output != NULL)
            output[v] = read_out(s, t, query_norm, v);
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
