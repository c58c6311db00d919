#include "record/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/rng.h"

/* --- order statistics ------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool any_nan(const double *x, size_t n)
{
    bool found = false;

    for (size_t i = 0; i < n; i++)
        found |= isnan(x[i]);
    return found;
}

/* A sorted copy to free(), or NULL when there is nothing to sort or a NaN among it. */
static double *sorted(const double *x, size_t n)
{
    double *copy;

    if (n == 0 || any_nan(x, n))
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

    if (share == 0.0 || below + 1 >= n || s[below] == s[below + 1]) /* no 0 * inf, no inf - inf */
        return s[below];
    return s[below] + share * (s[below + 1] - s[below]);
}

/* Hoare's partition of x[low..high]: returns j with x[low..j] <= x[j+1..high], low <= j <
   high. */
static ptrdiff_t partition(double *x, ptrdiff_t low, ptrdiff_t high)
{
    double pivot = x[low + (high - low) / 2];
    ptrdiff_t i = low - 1;
    ptrdiff_t j = high + 1;

    for (;;) {
        double swap;

        do
            i++;
        while (x[i] < pivot);
        do
            j--;
        while (x[j] > pivot);
        if (i >= j)
            return j;
        swap = x[i];
        x[i] = x[j];
        x[j] = swap;
    }
}

/* Reorders x so that the k-th smallest, which it returns, stands at x[k] and none of those
   before it is larger (C. Hoare, "Algorithm 65: Find", 1961). The bootstrap takes medians by
   the hundred thousand. */
static double select_kth(double *x, size_t n, size_t k)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = (ptrdiff_t)n - 1;

    while (low < high) {
        ptrdiff_t j = partition(x, low, high);

        if ((ptrdiff_t)k <= j)
            high = j;
        else
            low = j + 1;
    }
    return x[k];
}

/* The median of a copy, which is reordered. */
static double median_in_place(double *x, size_t n)
{
    double upper = select_kth(x, n, n / 2);
    double lower = upper;

    if (n % 2 == 0) {
        lower = x[0];
        for (size_t i = 1; i < n / 2; i++)
            lower = x[i] > lower ? x[i] : lower;
    }
    return lower / 2 + upper / 2;
}

double stats_median(const double *x, size_t n)
{
    double *copy;
    double median;

    if (n == 0 || any_nan(x, n))
        return NAN64;
    copy = xcalloc(n, sizeof *copy);
    memcpy(copy, x, n * sizeof *copy);
    median = median_in_place(copy, n);
    free(copy);
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

/* --- Hodges and Lehmann ----------------------------------------------------------------------- */

double stats_location(const double *x, size_t n)
{
    double *average = xcalloc(n * (n + 1) / 2, sizeof *average);
    size_t count = 0;
    double location;

    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            average[count++] = x[i] / 2 + x[j] / 2;
    location = count && !any_nan(x, n) ? median_in_place(average, count) : NAN64;
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
    shift = NAN64;
    if (na > 0 && nb > 0 && !any_nan(difference, na * nb))
        shift = median_in_place(difference, na * nb);
    free(difference);
    return shift;
}

/* --- bootstrap -------------------------------------------------------------------------------- */

/* Draws n of n with replacement; the draw is a function of (seed, resample, side, position)
   alone. */
static void resample(const double *x, size_t n, uint64_t key, unsigned round, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[rng_below(key, (uint64_t)round * n + i, n)];
}

/* P(|T| < sqrt(df) tan(angle)) of Student's T: the finite series of Abramowitz and Stegun (1964),
   26.7.3 and 26.7.4. */
static double student_within(double angle, size_t df)
{
    double c2 = cos(angle) * cos(angle);
    double term = df % 2 ? cos(angle) : 1.0;
    double sum = 0.0;

    for (size_t k = df % 2; k + 2 <= df; k += 2) {
        sum += term;
        term *= c2 * (double)(k + 1) / (double)(k + 2);
    }
    sum *= sin(angle);
    return df % 2 ? (angle + sum) / acos(0.0) : sum;
}

double stats_bootstrap_tail(size_t n, double confidence)
{
    double low = 0.0;
    double high = acos(0.0); /* an infinite T */

    if (n < 2)
        return (1.0 - confidence) / 2;
    for (int i = 0; i < 64; i++) {
        double middle = (low + high) / 2;

        if (student_within(middle, n - 1) < confidence)
            low = middle;
        else
            high = middle;
    }
    /* sqrt(n/(n-1)) t = sqrt(n) tan(angle), and Phi(-x) = erfc(x / sqrt 2) / 2. */
    return 0.5 * erfc(sqrt((double)n / 2) * tan(low));
}

static struct interval percentiles(const double *estimate, size_t n, const struct bootstrap *how)
{
    double tail = stats_bootstrap_tail(n, how->confidence);

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
    out = percentiles(estimate, n, how);
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
    out = percentiles(estimate, na < nb ? na : nb, how);
    free(draw_a);
    free(draw_b);
    free(estimate);
    return out;
}

/* --- samples in groups ------------------------------------------------------------------------ */

struct member {
    double x;
    size_t group; /* its place among the groups */
};

static int by_x(const void *a, const void *b)
{
    const struct member *m = a;
    const struct member *n = b;

    return (m->x > n->x) - (m->x < n->x);
}

/* The samples in order, their groups counted through; *sizes: of each group. Returns how many
   groups there are. */
static size_t sort_groups(const double *x, const unsigned *group, size_t n, struct member *out,
                          size_t *sizes)
{
    unsigned *label = xcalloc(n, sizeof *label);
    size_t groups = 0;

    for (size_t i = 0; i < n; i++) {
        size_t g = 0;

        while (g < groups && label[g] != group[i])
            g++;
        if (g == groups)
            label[groups++] = group[i];
        sizes[g]++;
        out[i] = (struct member){x[i], g};
    }
    qsort(out, n, sizeof *out, by_x);
    free(label);
    return groups;
}

/* The median when the samples of group g are there times[g] times; `total` of them in all. */
static double weighted_median(const struct member *m, const size_t *times, size_t total)
{
    size_t below = 0, i = 0;
    double lower;

    while ((below += times[m[i].group]) <= (total - 1) / 2)
        i++;
    lower = m[i].x;
    while (below <= total / 2)
        below += times[m[++i].group];
    return lower == m[i].x ? lower : lower / 2 + m[i].x / 2;
}

static struct interval drawn_groups(const struct member *m, const size_t *sizes, size_t groups,
                                    const struct bootstrap *how)
{
    uint64_t key = rng_key(how->seed, "groups");
    size_t *times = xcalloc(groups, sizeof *times);
    double *estimate = xcalloc(how->resamples, sizeof *estimate);
    struct interval out;

    for (unsigned r = 0; r < how->resamples; r++) {
        size_t total = 0;

        memset(times, 0, groups * sizeof *times);
        for (size_t k = 0; k < groups; k++) {
            size_t g = rng_below(key, (uint64_t)r * groups + k, groups);

            times[g]++;
            total += sizes[g];
        }
        estimate[r] = weighted_median(m, times, total);
    }
    out = percentiles(estimate, groups, how);
    free(times);
    free(estimate);
    return out;
}

struct interval stats_grouped_median_interval(const double *x, const unsigned *group, size_t n,
                                              const struct bootstrap *how)
{
    struct interval out = stats_median_interval(x, n, how->confidence);
    struct member *m;
    size_t *sizes, groups;

    if (n == 0 || isnan(out.low))
        return out;
    m = xcalloc(n, sizeof *m);
    sizes = xcalloc(n, sizeof *sizes);
    groups = sort_groups(x, group, n, m, sizes);
    if (groups > 1) {
        struct interval drawn = drawn_groups(m, sizes, groups, how);

        out.low = fmin(out.low, drawn.low);
        out.high = fmax(out.high, drawn.high);
    }
    free(m);
    free(sizes);
    return out;
}

/* --- false discovery rate --------------------------------------------------------------------- */

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
