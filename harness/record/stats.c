#include "record/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/rng.h"

/* --- order statistics
   -------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A sorted copy to free(), or NULL when there is nothing to sort or a NaN among it. */
static double *sorted(const double *x, size_t n)
{
    double *copy;

    if (n == 0)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return NULL;
    copy = xcalloc(n, sizeof *copy);
    memcpy(copy, x, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, by_value);
    return copy;
}

/* The quantile of sorted values. */
static double quantile_of(const double *s, size_t n, double p)
{
    double position = (double)(n - 1) * p;
    size_t below = (size_t)position;
    double share = position - (double)below;

    if (share == 0.0 || below + 1 >= n) /* no 0 * inf */
        return s[below];
    return s[below] + share * (s[below + 1] - s[below]);
}

static double median_of(const double *s, size_t n)
{
    return n % 2 ? s[n / 2] : s[n / 2 - 1] / 2 + s[n / 2] / 2;
}

double stats_median(const double *x, size_t n)
{
    double *s = sorted(x, n);
    double median = s ? median_of(s, n) : NAN64;

    free(s);
    return median;
}

double stats_quantile(const double *x, size_t n, double p)
{
    double *s = sorted(x, n);
    double q = s && p >= 0.0 && p <= 1.0 ? quantile_of(s, n, p) : NAN64;

    free(s);
    return q;
}

double stats_mad(const double *x, size_t n)
{
    double centre = stats_median(x, n);
    double *away;
    double mad;

    if (isnan(centre))
        return NAN64;
    away = xcalloc(n, sizeof *away);
    for (size_t i = 0; i < n; i++)
        away[i] = fabs(x[i] - centre);
    mad = stats_median(away, n);
    free(away);
    return mad;
}

/* The largest k with P(B(n,1/2) < k) <= tail; 0 when there is none. Terms by their
   logarithms, since 2^-n underflows for the sample counts that occur. */
static size_t binomial_rank(size_t n, double tail)
{
    double log_term = -(double)n * log(2.0); /* of C(n,0) 2^-n */
    double sum = 0.0;
    size_t k = 0;

    while (k <= n / 2) {
        sum += exp(log_term);
        if (!(sum <= tail))
            break;
        k++;
        log_term += log((double)(n - k + 1)) - log((double)k);
    }
    return k;
}

struct interval stats_median_interval(const double *x, size_t n, double confidence)
{
    double *s = sorted(x, n);
    size_t k = binomial_rank(n, (1.0 - confidence) / 2);
    struct interval out = {NAN64, NAN64};

    if (s && k > 0)
        out = (struct interval){s[k - 1], s[n - k]};
    else if (s)
        out = (struct interval){-INF64, INF64};
    free(s);
    return out;
}

/* --- Hodges and Lehmann
   ------------------------------------------------------------------------ */

double stats_location(const double *x, size_t n)
{
    double *average = xcalloc(n * (n + 1) / 2, sizeof *average);
    size_t count = 0;
    double location;

    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            average[count++] = x[i] / 2 + x[j] / 2;
    location = stats_median(average, count);
    free(average);
    return location;
}

double stats_shift(const double *a, size_t na, const double *b, size_t nb)
{
    double *difference = xcalloc(na * nb, sizeof *difference);
    double shift;

    for (size_t i = 0; i < na; i++)
        for (size_t j = 0; j < nb; j++)
            difference[i * nb + j] = b[j] - a[i];
    shift = stats_median(difference, na * nb);
    free(difference);
    return shift;
}

/* --- bootstrap
   --------------------------------------------------------------------------------- */

/* Draws n of n with replacement; the draw is a function of (seed, resample, side, position)
   alone. */
static void resample(const double *x, size_t n, uint64_t key, unsigned round, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[rng_below(key, (uint64_t)round * n + i, n)];
}

static struct interval percentiles(const double *estimate, const struct bootstrap *how)
{
    double tail = (1.0 - how->confidence) / 2;

    return (struct interval){stats_quantile(estimate, how->resamples, tail),
                             stats_quantile(estimate, how->resamples, 1.0 - tail)};
}

struct interval stats_location_interval(const double *x, size_t n, const struct bootstrap *how)
{
    uint64_t key = rng_key(how->seed, "location");
    double *draw = xcalloc(n, sizeof *draw);
    double *estimate = xcalloc(how->resamples, sizeof *estimate);
    struct interval out;

    for (unsigned r = 0; r < how->resamples; r++) {
        if (n > 0)
            resample(x, n, key, r, draw);
        estimate[r] = stats_location(draw, n);
    }
    out = percentiles(estimate, how);
    free(draw);
    free(estimate);
    return out;
}

struct interval stats_shift_interval(const double *a, size_t na, const double *b, size_t nb,
                                     const struct bootstrap *how)
{
    uint64_t key_a = rng_key(how->seed, "shift a");
    uint64_t key_b = rng_key(how->seed, "shift b");
    double *draw_a = xcalloc(na, sizeof *draw_a);
    double *draw_b = xcalloc(nb, sizeof *draw_b);
    double *estimate = xcalloc(how->resamples, sizeof *estimate);
    struct interval out;

    for (unsigned r = 0; r < how->resamples; r++) {
        if (na > 0)
            resample(a, na, key_a, r, draw_a);
        if (nb > 0)
            resample(b, nb, key_b, r, draw_b);
        estimate[r] = stats_shift(draw_a, na, draw_b, nb);
    }
    out = percentiles(estimate, how);
    free(draw_a);
    free(draw_b);
    free(estimate);
    return out;
}

/* --- false discovery rate
   ----------------------------------------------------------------------- */

struct ranked_p {
    double p;
    size_t index;
};

static int by_p(const void *a, const void *b)
{
    const struct ranked_p *x = a;
    const struct ranked_p *y = b;

    return (x->p > y->p) - (x->p < y->p);
}

void stats_fdr(const double *p, size_t n, double *q)
{
    struct ranked_p *order = xcalloc(n, sizeof *order);
    double smallest = 1.0;
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        q[i] = NAN64;
        if (!isnan(p[i]))
            order[m++] = (struct ranked_p){p[i], i};
    }
    if (m > 0)
        qsort(order, m, sizeof *order, by_p);
    /* From the largest p down: q_(k) = min over j >= k of p_(j) m / j. */
    for (size_t k = m; k > 0; k--) {
        double here = order[k - 1].p * (double)m / (double)k;

        if (here < smallest)
            smallest = here;
        q[order[k - 1].index] = smallest;
    }
    free(order);
}
