/*
 * Statistics of samples: pure functions of their arguments, deterministic (the bootstrap has its
 * own counter-based generator), no I/O. NaN anywhere in the samples makes the result NaN; an
 * empty sample is NaN. None of them changes its input.
 */
#ifndef RECORD_STATS_H
#define RECORD_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    double low, high;
};

double stats_median(const double *x, size_t n); /* mean of the middle two for even n */
/* p in [0,1]; linear between order statistics, position (n-1) p (Hyndman and Fan 1996, type
   7). */
double stats_quantile(const double *x, size_t n, double p);
double stats_mad(const double *x, size_t n); /* median |x - median|, not scaled */

/*
 * Distribution-free interval of the median: [x_(k), x_(n+1-k)] with the largest k for which the
 * binomial tail P(B(n,1/2) < k) is at most (1-confidence)/2, so the coverage is at least
 * `confidence` for any continuous distribution. (-inf, inf) when n is too small for one (n < 6 at
 * 95%).
 */
struct interval stats_median_interval(const double *x, size_t n, double confidence);

/* Hodges-Lehmann location: the median of the averages (x_i + x_j)/2, i <= j. O(n^2) memory. */
double stats_location(const double *x, size_t n);
/* Hodges-Lehmann shift from a to b: the median of all b_j - a_i. */
double stats_shift(const double *a, size_t na, const double *b, size_t nb);

/*
 * Percentile bootstrap: whole rounds are drawn with replacement, `resamples` times. The plain
 * percentiles of few rounds cover too little (of 6 rounds 86%, of 12 92% instead of 95%): they miss
 * the factor sqrt(n/(n-1)) and take the normal's quantile where Student's belongs. So the tails
 * are cut at stats_bootstrap_tail(), of two samples at that of the smaller.
 */
struct bootstrap {
    unsigned resamples;
    double confidence;
    uint64_t seed;
};
struct interval stats_location_interval(const double *x, size_t n, const struct bootstrap *how);
struct interval stats_shift_interval(const double *a, size_t na, const double *b, size_t nb,
                                     const struct bootstrap *how);
/*
 * Interval of the median of samples that came in groups: group[i] is any label of the one of x[i].
 * Groups (rounds) scatter more than the samples of one, so whole groups are drawn; never narrower
 * than stats_median_interval(), which is what remains of one group, and so infinite for n < 6.
 */
struct interval stats_grouped_median_interval(const double *x, const unsigned *group, size_t n,
                                              const struct bootstrap *how);
/* The expanded percentile interval's share in each tail: Phi(-sqrt(n/(n-1)) t), t Student's
   quantile with n-1 degrees of freedom (T. Hesterberg, "What Teachers Should Know About the
   Bootstrap", 2015). (1-confidence)/2 for n < 2, and in the limit. */
double stats_bootstrap_tail(size_t n, double confidence);

/*
 * One-sided p of "the centre of x is above `origin`": Wilcoxon's signed-rank test, which is the
 * sign-flip permutation test on the ranks of |x - origin|. Exact up to STATS_EXACT samples (ties
 * get mid-ranks, zeros count half for either sign), the normal approximation with continuity
 * correction above. At least 2^-n.
 */
double stats_signed_rank_p(const double *x, size_t n, double origin);
/* One-sided p of "b lies above a by more than `origin`": rank-sum permutation test, exact
   for na + nb up to STATS_EXACT_PAIR, mid-ranks for ties. */
double stats_rank_sum_p(const double *a, size_t na, const double *b, size_t nb, double origin);
#define STATS_EXACT      64
#define STATS_EXACT_PAIR 40

/* Benjamini and Hochberg (1995): q[i] is the smallest false-discovery rate at which
   hypothesis i is rejected, so `q[i] <= rate` is the rejected set. NaN p are no hypotheses:
   their q is NaN. */
void stats_fdr(const double *p, size_t n, double *q);

#endif
