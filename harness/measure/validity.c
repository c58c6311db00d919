#include "measure/validity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "measure/clocks.h"
#include "measure/timing.h"
#include "record/stats.h"

double run_clock_mhz(const struct bench_record *const *records, unsigned n)
{
    double *mhz, median;
    size_t total = 0, at = 0;

    for (unsigned i = 0; i < n; i++)
        total += records[i]->nsamples;
    mhz = xcalloc(total ? total : 1, sizeof *mhz);
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < records[i]->nsamples; k++)
            if (isfinite(records[i]->sample[k].sm_clock_mhz))
                mhz[at++] = records[i]->sample[k].sm_clock_mhz;
    median = at ? stats_median(mhz, at) : NAN64;
    free(mhz);
    return median;
}

/* Appends to the reason; a note may follow another. */
static void say(struct bench_record *r, const char *text)
{
    size_t at = strlen(r->reason);

    if (at + 1 < sizeof r->reason)
        snprintf(r->reason + at, sizeof r->reason - at, "%s%s", at ? "; " : "", text);
}

static bool fail(struct bench_record *r, const char *text)
{
    r->valid = false;
    say(r, text);
    return false;
}

static bool check_numbers(struct bench_record *r)
{
    char text[160];

    if (!r->nsamples)
        return fail(r, "no sample was taken");
    for (unsigned i = 0; i < r->nsamples; i++)
        if (!isfinite(r->sample[i].us) || !(r->sample[i].us > 0)) {
            snprintf(text, sizeof text, "sample %u of %u is %g us: not a time", i, r->nsamples,
                     r->sample[i].us);
            return fail(r, text);
        }
    return true;
}

static unsigned flag_samples(struct bench_record *r, double reference_mhz)
{
    unsigned kept = 0;

    r->reference_clock_mhz = reference_mhz;
    for (unsigned i = 0; i < r->nsamples; i++) {
        struct bench_sample *s = &r->sample[i];

        /* A clock or reference that is NaN flags nothing: where it cannot be read, it is not held
           against anybody. */
        s->flagged = s->sm_clock_mhz < CLOCK_SHARE * reference_mhz || clocks_slowed(s->throttle);
        kept += !s->flagged;
    }
    return kept;
}

static bool check_flags(struct bench_record *r, unsigned kept)
{
    uint64_t reasons = 0;
    char text[256], why[128];

    if (kept == r->nsamples)
        return true;
    for (unsigned i = 0; i < r->nsamples; i++)
        reasons |= r->sample[i].throttle;
    clocks_throttle_text(reasons, why, sizeof why);
    snprintf(text, sizeof text,
             "%u of %u samples were throttled or below %.0f%% of the run's %.0f MHz "
             "(reasons: %s)",
             r->nsamples - kept, r->nsamples, 100 * CLOCK_SHARE, r->reference_clock_mhz, why);
    if (!kept)
        return fail(r, text);
    say(r, text);
    return true;
}

/* Median and interval of the samples that are not flagged. */
static void summarise(struct bench_record *r, unsigned kept, double precision)
{
    struct bench_sample *good = xcalloc(kept, sizeof *good);
    double *us = xcalloc(kept, sizeof *us);
    struct interval i;
    unsigned n = 0;

    for (unsigned k = 0; k < r->nsamples; k++)
        if (!r->sample[k].flagged) {
            good[n] = r->sample[k];
            us[n++] = r->sample[k].us;
        }
    i = timing_interval(good, n);
    r->median_us = stats_median(us, n);
    r->low_us = i.low;
    r->high_us = i.high;
    r->converged = timing_is_close(i, r->median_us, precision);
    free(good);
    free(us);
}

static bool check_ticks(struct bench_record *r)
{
    double window = r->median_us * r->launches_per_sample;
    char text[160];

    if (!(window < MIN_TICKS * r->event_tick_us)) /* NaN: the timer showed no tick at all */
        return true;
    snprintf(text, sizeof text,
             "a window of %.3g us spans only %.1f ticks of the %.3g us timer: too short to time",
             window, window / r->event_tick_us, r->event_tick_us);
    return fail(r, text);
}

/* The upper end of the interval; with too few samples for one, the slowest of them. */
static double upper_end(const struct bench_record *r)
{
    double slowest = 0;

    if (isfinite(r->high_us))
        return r->high_us;
    for (unsigned i = 0; i < r->nsamples; i++)
        if (!r->sample[i].flagged && r->sample[i].us > slowest)
            slowest = r->sample[i].us;
    return slowest;
}

static bool check_floor(struct bench_record *r, const struct roof_floor *floor)
{
    double high = upper_end(r);
    char text[256];

    r->roof_us = floor->us;
    r->roof_percent = NAN64;
    snprintf(r->roof, sizeof r->roof, "%s", isfinite(floor->us) ? floor->roof : "");
    if (!isfinite(floor->us))
        return true;
    r->roof_percent = 100 * floor->us / r->median_us;
    if (!(high < floor->least_us))
        return true;
    snprintf(text, sizeof text,
             "faster than possible: %.3g us (interval up to %.3g us), but the roofs measured in "
             "this run allow no less than %.3g us",
             r->median_us, high, floor->least_us);
    return fail(r, text);
}

void bench_settle(struct bench_record *r, double reference_clock_mhz,
                  const struct roof_floor *floor, double precision)
{
    unsigned kept;

    r->valid = !r->reason[0];
    r->median_us = r->low_us = r->high_us = NAN64;
    r->roof_us = floor->us;
    r->roof_percent = NAN64;
    r->converged = false;
    r->reference_clock_mhz = reference_clock_mhz;
    if (!r->valid || !check_numbers(r))
        return;
    kept = flag_samples(r, reference_clock_mhz);
    if (!check_flags(r, kept))
        return;
    summarise(r, kept, precision);
    if (!check_ticks(r) || !check_floor(r, floor))
        return;
    if (!r->converged)
        say(r, "its rounds or its budget were spent before the interval closed");
}
