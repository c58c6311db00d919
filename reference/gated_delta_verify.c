#include "reference/gated_delta_verify.h"

/*
 * Roundings on the longest way from an operand to its result, by counting the kernel's operations.
 * u_3, from the state: n products and additions of the dot, 2 + 1 products of gates with it, 3
 * additions of the other tokens, then g_3, the subtraction and beta: n + 9; three to spare for
 * another association. v_t: the subtraction and beta. Outputs: the same way to the state's terms
 * in a form without states, then the scale on q or on the sum.
 */
#define EXTRA_U      12.0
#define EXTRA_VALUE  2.0
#define EXTRA_OUTPUT 14.0

#define COLUMNS 8 /* worked on at a time: a fixed inner loop that vectorises */

#define T GDN_TOKENS

/* What does not depend on the value column. Index [t][j], j <= t. */
struct head {
    size_t n; /* k_dim */
    double scale;
    double gate[T], beta[T];
    double decay[T][T];   /* D(t,j) */
    double from_start[T]; /* D(t,-1) */
    double contract[T];   /* what the 2-norm of an initial error is multiplied by, after token t */
    double key_norm[T], query_norm[T];
    double kd[T][T], kd_abs[T][T]; /* k_t . k_j and its sum of magnitudes */
    double qk[T][T], qk_abs[T][T]; /* q_t . k_j likewise */
    double to_u[T][T];             /* L */
    double to_output[T][T];        /* N */
    const double *const *query, *const *key;
};

/* COLUMNS value columns on their way; rows of k_dim are in caller's scratch. */
struct lanes {
    double (*h)[COLUMNS];        /* the state */
    double (*reach)[COLUMNS];    /* a bound on its whole error, for second-order terms */
    double (*local)[COLUMNS];    /* bound on the error by its updates' roundings, decayed */
    double (*variance)[COLUMNS]; /* their squares, decayed */
    double before[COLUMNS], before_sd[COLUMNS];
    double hk[T][COLUMNS], hk_abs[T][COLUMNS], hq_abs[T][COLUMNS];
    double u[T][COLUMNS], u_reach[T][COLUMNS];
    double eps[T][COLUMNS];    /* worst of u_t's own roundings, updates' included */
    double eps_sd[T][COLUMNS]; /* spread of the independent ones */
    double eps_up[T][COLUMNS]; /* spread of what comes from earlier updates: added, not squared */
};

double gdn_clamp_gate(double gate)
{
    const double low = (double)1e-6f;
    const double high = (double)(1.0f - 1e-6f);
    if (!(gate > low))
        return low;
    return gate < high ? gate : high;
}

/* --- per head ---------------------------------------------------------------------------- */

static double dot_abs(const double *a, const double *b, size_t n, double *magnitude)
{
    double sum = 0.0;
    *magnitude = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
        *magnitude += fabs(a[i] * b[i]);
    }
    return sum;
}

static void head_gates(struct head *h, const struct gdn_operands *in)
{
    for (int t = 0; t < T; t++) {
        double square;
        h->gate[t] = gdn_clamp_gate(in->gate[t]);
        h->beta[t] = in->beta[t];
        h->from_start[t] = h->gate[t] * (t > 0 ? h->from_start[t - 1] : 1.0);
        h->decay[t][t] = 1.0;
        for (int j = 0; j < t; j++)
            h->decay[t][j] = h->gate[t] * h->decay[t - 1][j];
        square = dot_abs(in->key[t], in->key[t], h->n, &square);
        h->key_norm[t] = sqrt(square);
        h->query_norm[t] = sqrt(dot_abs(in->query[t], in->query[t], h->n, &square));
        h->contract[t] = (t > 0 ? h->contract[t - 1] : 1.0) * h->gate[t] *
                         gdr_contraction(h->beta[t], h->key_norm[t] * h->key_norm[t]);
    }
}

static void head_init(struct head *h, const struct gdn_operands *in)
{
    *h = (struct head){.n = in->k_dim, .query = in->query, .key = in->key};
    h->scale = 1.0 / sqrt((double)in->k_dim);
    head_gates(h, in);
    for (int t = 0; t < T; t++)
        for (int j = 0; j <= t; j++) {
            h->kd[t][j] = dot_abs(in->key[t], in->key[j], h->n, &h->kd_abs[t][j]);
            h->qk[t][j] = dot_abs(in->query[t], in->key[j], h->n, &h->qk_abs[t][j]);
        }
    for (int t = 0; t < T; t++)
        for (int s = 0; s <= t; s++) {
            double sum = 0.0;
            for (int j = s; j < t; j++)
                sum += h->decay[t][j] * h->kd[t][j] * h->to_u[j][s];
            h->to_u[t][s] = s == t ? 1.0 : -h->beta[t] * sum;
        }
    for (int t = 0; t < T; t++)
        for (int s = 0; s <= t; s++)
            for (int j = s; j <= t; j++)
                h->to_output[t][s] += h->decay[t][j] * h->qk[t][j] * h->to_u[j][s];
}

/* M_ts of row i: what eps_s does to the state after token t. */
static double to_state(const struct head *h, int t, int s, size_t i)
{
    double sum = 0.0;
    for (int j = s; j <= t; j++)
        sum += h->decay[t][j] * h->key[j][i] * h->to_u[j][s];
    return sum;
}

/* --- per block of columns ---------------------------------------------------------------- */

size_t gdn_verify_scratch(size_t k_dim)
{
    return 4 * k_dim * COLUMNS;
}

/* Columns past v_dim are zero. */
static void lanes_load(struct lanes *x, const struct gdn_operands *in, double *scratch,
                       size_t first)
{
    size_t n = in->k_dim;
    size_t width = in->v_dim - first < COLUMNS ? in->v_dim - first : COLUMNS;
    *x = (struct lanes){.h = (double(*)[COLUMNS])scratch};
    x->reach = x->h + n;
    x->local = x->reach + n;
    x->variance = x->local + n;
    for (size_t c = 0; c < width && in->before != NULL; c++) {
        x->before[c] = in->before[first + c].worst;
        x->before_sd[c] = in->before[first + c].spread;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < COLUMNS; c++) {
            x->h[i][c] = c < width ? in->state[i * in->v_dim + first + c] : 0.0;
            x->reach[i][c] = x->before[c];
            x->local[i][c] = x->variance[i][c] = 0.0;
        }
}

/* hk_t = H^T k_t, and the magnitudes that bound the roundings of these dots and of H^T q_t. */
static void project(const struct head *h, struct lanes *x)
{
    for (size_t i = 0; i < h->n; i++)
        for (int t = 0; t < T; t++) {
            double k = h->key[t][i];
            double k_abs = fabs(k);
            double q_abs = fabs(h->query[t][i]);
            for (size_t c = 0; c < COLUMNS; c++) {
                x->hk[t][c] += k * x->h[i][c];
                x->hk_abs[t][c] += k_abs * fabs(x->h[i][c]);
                x->hq_abs[t][c] += q_abs * fabs(x->h[i][c]);
            }
        }
}

/* The roundings of earlier updates as k_t sees them, decayed by g_t: worst, and the sum of
   squares. */
static void seen_updates(const struct head *h, const struct lanes *x, int t, double worst[COLUMNS],
                         double square[COLUMNS])
{
    for (size_t c = 0; c < COLUMNS; c++)
        worst[c] = square[c] = 0.0;
    for (size_t i = 0; i < h->n && t > 0; i++) {
        double k = fabs(h->gate[t] * h->key[t][i]);
        for (size_t c = 0; c < COLUMNS; c++) {
            worst[c] += k * x->local[i][c];
            square[c] += k * k * x->variance[i][c];
        }
    }
}

static void solve(const struct head *h, struct lanes *x, const double *value, size_t width, int t)
{
    double n = (double)h->n + EXTRA_U;
    double beta = fabs(h->beta[t]);
    double worst[COLUMNS];
    double square[COLUMNS];
    seen_updates(h, x, t, worst, square);
    for (size_t c = 0; c < COLUMNS; c++) {
        double v = c < width ? value[c] : 0.0;
        double sum = h->from_start[t] * x->hk[t][c];
        double magnitude = h->from_start[t] * (x->hk_abs[t][c] + h->key_norm[t] * x->before[c]);
        double floor = n * TINY_FP32 * (1.0 + beta);
        double reach = 0.0;
        magnitude += worst[c];
        for (int j = 0; j < t; j++) {
            sum += h->decay[t][j] * h->kd[t][j] * x->u[j][c];
            magnitude += h->decay[t][j] * h->kd_abs[t][j] * (fabs(x->u[j][c]) + x->u_reach[j][c]);
            floor += beta * n * TINY_FP32 * fabs(x->u[j][c]);
            reach += fabs(h->to_u[t][j]) * x->eps[j][c];
        }
        x->u[t][c] = h->beta[t] * (v - sum);
        x->eps[t][c] = beta * (gamma_n(n, U_FP32) * magnitude +
                               gamma_n(EXTRA_VALUE, U_FP32) * fabs(v) + worst[c]) +
                       floor;
        x->eps_sd[t][c] =
            beta * U_FP32 * sqrt((n + 1.0) * magnitude * magnitude + EXTRA_VALUE * v * v) + floor;
        x->eps_up[t][c] = beta * sqrt(square[c]);
        x->u_reach[t][c] =
            reach + x->eps[t][c] +
            beta * h->gate[t] * h->key_norm[t] * x->before[c] * (t > 0 ? h->contract[t - 1] : 1.0);
    }
}

/* H = g H + k u^T with its three roundings an element: g h, k u, their sum. */
static void update(const struct head *h, struct lanes *x, int t)
{
    double g = h->gate[t];
    for (size_t i = 0; i < h->n; i++) {
        double k = h->key[t][i];
        double k_abs = fabs(k);
        for (size_t c = 0; c < COLUMNS; c++) {
            double decayed = g * x->h[i][c];
            double added = k * x->u[t][c];
            double reach = g * x->reach[i][c] + k_abs * x->u_reach[t][c];
            double r1 = rounding_error(fabs(decayed) + g * x->reach[i][c], format_fp32);
            double r2 = rounding_error(fabs(added) + k_abs * x->u_reach[t][c], format_fp32);
            double r3 = rounding_error(fabs(decayed + added) + reach + r1 + r2, format_fp32);
            x->h[i][c] = decayed + added;
            x->reach[i][c] = reach + r1 + r2 + r3;
            x->local[i][c] = g * x->local[i][c] + r1 + r2 + r3;
            x->variance[i][c] = g * g * x->variance[i][c] + r1 * r1 + r2 * r2 + r3 * r3;
        }
    }
}

/* --- results ----------------------------------------------------------------------------- */

/* What the eps_s, weighted by w_s, and an initial error, weighted by `before`, do to one result
   of column c after token t: the worst, and the spread's squares and linear part. */
struct moved {
    double worst, square, linear;
};

static struct moved moved_by(const struct lanes *x, const double *w, double before, int t, size_t c)
{
    double carried = before * x->before_sd[c];
    struct moved m = {.worst = before * x->before[c], .square = carried * carried};
    for (int s = 0; s <= t; s++) {
        double of_s = w[s] * x->eps_sd[s][c];
        m.worst += fabs(w[s]) * x->eps[s][c];
        m.square += of_s * of_s;
        m.linear += fabs(w[s]) * x->eps_up[s][c];
    }
    return m;
}

static struct bounded output_of(const struct head *h, const struct lanes *x, int t, size_t c)
{
    double n = (double)h->n + EXTRA_OUTPUT;
    double before = h->query_norm[t] * h->contract[t];
    struct moved m = moved_by(x, h->to_output[t], before, t, c);
    double dot = 0.0;
    double magnitude = h->from_start[t] * (x->hq_abs[t][c] + h->query_norm[t] * x->before[c]);
    double floor = n * TINY_FP32;
    double updates = 0.0;
    for (size_t i = 0; i < h->n; i++) {
        double q = fabs(h->query[t][i]);
        dot += h->query[t][i] * x->h[i][c];
        updates += q * x->local[i][c];
        m.square += q * q * x->variance[i][c];
    }
    for (int j = 0; j <= t; j++) {
        magnitude += h->decay[t][j] * h->qk_abs[t][j] * (fabs(x->u[j][c]) + x->u_reach[j][c]);
        floor += n * TINY_FP32 * fabs(x->u[j][c]);
    }
    magnitude += updates;
    double scale = h->scale * (1.0 + GDR_SCALE_ERROR);
    double of_scale = GDR_SCALE_ERROR * h->scale * fabs(dot);
    struct bounded o = {.value = h->scale * dot};
    o.worst = scale * (m.worst + updates + gamma_n(n, U_FP32) * magnitude) + of_scale + floor;
    o.spread = scale * (sqrt(m.square + n * U_FP32 * magnitude * U_FP32 * magnitude) + m.linear);
    o.fixed = of_scale + floor;
    return rounded(o, format_bf16);
}

static struct bounded u_of(const struct head *h, const struct lanes *x, int t, size_t c)
{
    double before = fabs(h->beta[t]) * h->gate[t] * h->key_norm[t];
    before *= t > 0 ? h->contract[t - 1] : 1.0;
    struct moved m = moved_by(x, h->to_u[t], before, t, c);
    return (struct bounded){x->u[t][c], m.worst, sqrt(m.square) + m.linear, 0.0};
}

/* The states after token t of a block of columns, and the norms of their errors. */
static void states_of(const struct head *h, const struct lanes *x, int t, size_t first,
                      size_t width, size_t v_dim, struct gdn_results *out)
{
    double worst[COLUMNS] = {0};
    double square[COLUMNS] = {0};
    double linear[COLUMNS] = {0};
    for (size_t i = 0; i < h->n; i++) {
        double w[T] = {0};
        for (int s = 0; s <= t; s++)
            w[s] = to_state(h, t, s, i);
        for (size_t c = 0; c < width; c++) {
            struct moved m = moved_by(x, w, 0.0, t, c);
            double carried = h->contract[t] * x->before[c];
            double carried_sd = h->contract[t] * x->before_sd[c];
            m.worst += x->local[i][c];
            m.square += x->variance[i][c];
            worst[c] += m.worst * m.worst;
            square[c] += m.square;
            linear[c] += m.linear * m.linear;
            if (out->state[t] == NULL)
                continue;
            out->state[t][i * v_dim + first + c] =
                (struct bounded){x->h[i][c], m.worst + carried,
                                 sqrt(m.square + carried_sd * carried_sd) + m.linear, 0.0};
        }
    }
    for (size_t c = 0; c < width && out->after[t] != NULL; c++) {
        double carried_sd = h->contract[t] * x->before_sd[c];
        struct gdr_error *e = &out->after[t][first + c];
        e->worst = h->contract[t] * x->before[c] + sqrt(worst[c]);
        e->spread = sqrt(square[c] + carried_sd * carried_sd) + sqrt(linear[c]);
    }
}

void gdn_verify_head(const struct gdn_operands *in, double *scratch, struct gdn_results *out)
{
    struct head h;
    struct lanes x;
    head_init(&h, in);
    for (int t = 0; t < T; t++)
        out->gate[t] = h.gate[t];
    for (size_t first = 0; first < in->v_dim; first += COLUMNS) {
        size_t width = in->v_dim - first < COLUMNS ? in->v_dim - first : COLUMNS;
        lanes_load(&x, in, scratch, first);
        project(&h, &x);
        for (int t = 0; t < T; t++) {
            size_t at = (size_t)t * in->v_dim + first;
            solve(&h, &x, in->value[t] + first, width, t);
            update(&h, &x, t);
            for (size_t c = 0; c < width && out->u != NULL; c++)
                out->u[at + c] = u_of(&h, &x, t, c);
            for (size_t c = 0; c < width && out->output != NULL; c++)
                out->output[at + c] = output_of(&h, &x, t, c);
            if (out->state[t] != NULL || out->after[t] != NULL)
                states_of(&h, &x, t, first, width, in->v_dim, out);
        }
    }
}

/* One element: three roundings an update, as in update(). */
static struct bounded fold_element(const struct gdn_fold *in, size_t row, size_t column)
{
    struct bounded h = {.value = in->state[row * in->v_dim + column]};
    double variance = 0.0;

    for (size_t t = 0; t < in->tokens; t++) {
        double g = in->gate[t];
        double decayed = g * h.value;
        double added = in->key[t][row] * in->u[t][column];
        double r1 = rounding_error(fabs(decayed) + g * h.worst, format_fp32);
        double r2 = rounding_error(fabs(added), format_fp32);
        double grown = g * h.worst + r1 + r2;
        double r3 = rounding_error(fabs(decayed + added) + grown, format_fp32);
        h.value = decayed + added;
        h.worst = grown + r3;
        variance = g * g * variance + r1 * r1 + r2 * r2 + r3 * r3;
    }
    h.spread = sqrt(variance);
    return h;
}

void gdn_fold_head(const struct gdn_fold *in, struct bounded *state)
{
    for (size_t i = 0; i < in->k_dim; i++)
        for (size_t v = 0; v < in->v_dim; v++)
            state[i * in->v_dim + v] = fold_element(in, i, v);
}
