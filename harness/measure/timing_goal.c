/* When a time is known well enough. */
#include <stdlib.h>

#include "base/mem.h"
#include "measure/timing.h"

/* Their times; free() them. */
static double *times_of(const struct bench_sample *sample, unsigned n)
{
    double *us = xcalloc(n ? n : 1, sizeof *us);

    for (unsigned k = 0; k < n; k++)
        us[k] = sample[k].us;
    return us;
}

struct interval timing_interval(const struct bench_sample *sample, unsigned n)
{
    static const struct bootstrap how = {.resamples = 999, .confidence = 0.95, .seed = 1};
    double *us = times_of(sample, n);
    unsigned *round = xcalloc(n ? n : 1, sizeof *round);
    struct interval i;

    for (unsigned k = 0; k < n; k++)
        round[k] = sample[k].round;
    i = stats_grouped_median_interval(us, round, n, &how);
    free(round);
    free(us);
    return i;
}

bool timing_is_close(struct interval i, double median, double precision)
{
    return i.high - median <= precision * median && median - i.low <= precision * median;
}

bool timing_converged(const struct bench_sample *sample, unsigned n, double precision)
{
    double *us = times_of(sample, n);
    double median = stats_median(us, n);

    free(us);
    return timing_is_close(timing_interval(sample, n), median, precision);
}

bool timing_wants_more(const struct timing *t)
{
    return t->spent_s < t->params.budget_s &&
           !timing_converged(t->sample, t->nsamples, t->params.precision);
}

bool timing_round_has_enough(const struct timing *t)
{
    double *us = times_of(t->sample, t->nsamples);
    struct interval i = stats_median_interval(us, t->nsamples, 0.95);
    double median = stats_median(us, t->nsamples);

    free(us);
    return timing_is_close(i, median, t->params.precision);
}
