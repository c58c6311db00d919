/*
 * The two rank tests of stats.h. Both count, by dynamic programming, how many of the equally
 * likely assignments give a statistic at least as large as the observed one. Ranks are doubled,
 * so that the mid-ranks of ties are integers.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"
#include "record/stats.h"

struct ranked {
    double key;     /* what is ranked */
    bool mine;      /* counts towards the statistic */
    bool half;      /* lies exactly at the origin: half of it counts */
    uint32_t rank2; /* twice its mid-rank */
};

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* Sorts and gives equal keys the mean of the ranks they take up. */
static void rank(struct ranked *r, size_t n)
{
    qsort(r, n, sizeof *r, by_key);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;

        while (end < n && !(r[end].key > r[i].key))
            end++;
        for (size_t k = i; k < end; k++)
            r[k].rank2 = (uint32_t)(i + 1 + end); /* first rank + last rank */
        i = end;
    }
}

static double upper_normal(double z)
{
    return 0.5 * erfc(z / sqrt(2.0));
}

/* P(sum >= observed2), each doubled rank in or out with probability 1/2. */
static double signed_rank_exact(const struct ranked *r, size_t n, uint32_t observed2)
{
    size_t most = 0;
    double *share;
    double p = 0.0;

    for (size_t i = 0; i < n; i++)
        most += r[i].rank2;
    share = xcalloc(most + 1, sizeof *share);
    share[0] = 1.0;
    for (size_t i = 0, reach = 0; i < n; i++) {
        reach += r[i].rank2;
        for (size_t s = reach + 1; s-- > 0;)
            share[s] = 0.5 * share[s] + (s >= r[i].rank2 ? 0.5 * share[s - r[i].rank2] : 0.0);
    }
    for (size_t s = most + 1; s-- > observed2;)
        p += share[s];
    free(share);
    return p;
}

static double signed_rank_normal(const struct ranked *r, size_t n, uint32_t observed2)
{
    double mean2 = 0.0;
    double variance2 = 0.0;

    for (size_t i = 0; i < n; i++) {
        mean2 += 0.5 * (double)r[i].rank2;
        variance2 += 0.25 * (double)r[i].rank2 * (double)r[i].rank2;
    }
    return upper_normal(((double)observed2 - mean2 - 1.0) / sqrt(variance2));
}

double stats_signed_rank_p(const double *x, size_t n, double origin)
{
    struct ranked *r = xcalloc(n, sizeof *r);
    uint32_t observed2 = 0;
    double p = n > 0 ? 0.0 : NAN64;

    for (size_t i = 0; i < n; i++) {
        double away = x[i] - origin;

        if (isnan(away))
            p = NAN64;
        r[i] = (struct ranked){.key = fabs(away), .mine = away > 0.0, .half = away == 0.0};
    }
    if (!isnan(p)) {
        rank(r, n);
        for (size_t i = 0; i < n; i++)
            observed2 += r[i].mine ? r[i].rank2 : r[i].half ? r[i].rank2 / 2 : 0;
        p = n <= STATS_EXACT ? signed_rank_exact(r, n, observed2)
                             : signed_rank_normal(r, n, observed2);
    }
    free(r);
    return p;
}

/* P(sum of nb of the n doubled ranks >= observed2), every choice of nb equally likely.
   `ways[k]` holds the number of choices of k ranks by their sum: at most C(40,20) < 2^38,
   exact in doubles. */
static double rank_sum_exact(const struct ranked *r, size_t n, size_t nb, uint32_t observed2)
{
    size_t most = 0;
    double *ways;
    double all = 0.0;
    double above = 0.0;

    for (size_t i = 0; i < n; i++)
        most += r[i].rank2;
    ways = xcalloc((nb + 1) * (most + 1), sizeof *ways);
    ways[0] = 1.0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = nb; k > 0; k--)
            for (size_t s = most + 1; s-- > r[i].rank2;)
                ways[k * (most + 1) + s] += ways[(k - 1) * (most + 1) + s - r[i].rank2];
    for (size_t s = 0; s <= most; s++) {
        double here = ways[nb * (most + 1) + s];

        all += here;
        above += s >= observed2 ? here : 0.0;
    }
    free(ways);
    return above / all;
}

/* Mean and variance of a sum of nb ranks drawn from n without replacement. */
static double rank_sum_normal(const struct ranked *r, size_t n, size_t nb, uint32_t observed2)
{
    double share = (double)nb / (double)n;
    double mean2 = 0.0;
    double squares = 0.0;
    double variance2;

    for (size_t i = 0; i < n; i++)
        mean2 += (double)r[i].rank2 / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)r[i].rank2 - mean2) * ((double)r[i].rank2 - mean2);
    variance2 = share * (1.0 - share) * squares * (double)n / (double)(n - 1);
    if (variance2 == 0.0) /* all equal: every sum is as large */
        return 1.0;
    return upper_normal(((double)observed2 - (double)nb * mean2 - 1.0) / sqrt(variance2));
}

double stats_rank_sum_p(const double *a, size_t na, const double *b, size_t nb, double origin)
{
    size_t n = na + nb;
    struct ranked *r = xcalloc(n, sizeof *r);
    uint32_t observed2 = 0;
    double p = na > 0 && nb > 0 ? 0.0 : NAN64;

    for (size_t i = 0; i < n; i++) {
        r[i] = (struct ranked){.key = i < na ? a[i] : b[i - na] - origin, .mine = i >= na};
        if (isnan(r[i].key))
            p = NAN64;
    }
    if (!isnan(p)) {
        rank(r, n);
        for (size_t i = 0; i < n; i++)
            observed2 += r[i].mine ? r[i].rank2 : 0;
        p = n <= STATS_EXACT_PAIR ? rank_sum_exact(r, n, nb, observed2)
                                  : rank_sum_normal(r, n, nb, observed2);
    }
    free(r);
    return p;
}
