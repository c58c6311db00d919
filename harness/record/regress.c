#include "record/regress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

/* The interval and the SAME verdict are for 95%; no distribution-free statement of that
   strength can be made from fewer rounds than give a two-sided p of 5%. */
#define WEAKEST_P 0.05

/* Two durations, each off by less than a tick either way, may differ by this many without
   any reason. */
#define TICKS_WITHOUT_MEANING 2.0

/* A window begins anywhere between two ticks, so a median of windows is off by half a tick at most.
   The two of a comparison can hide so many between them, unless the rounds scatter over the steps,
   which averages them out: half of the rounds spread over a tick, as a normal scatter of 0.74 ticks
   does, leave less than 1e-4 ticks (exp(-2 (pi 0.74)^2) / pi). */
#define TICKS_HIDDEN 1.0

static const char *const change_names[] = {
    [CHANGE_SAME] = "SAME",     [CHANGE_FASTER] = "FASTER",   [CHANGE_SLOWER] = "SLOWER",
    [CHANGE_UNSURE] = "UNSURE", [CHANGE_INVALID] = "INVALID",
};

const char *change_name(enum change c)
{
    return change_names[c];
}

unsigned regress_rounds_needed(size_t cases, double fdr)
{
    unsigned n = 1;
    double p = 1.0; /* 2 * 2^-1 */

    while (p > fdr / (double)(cases ? cases : 1) && n < REGRESS_MAX_ROUNDS) {
        n++;
        p /= 2;
    }
    return n;
}

/* --- one side --------------------------------------------------------------------------------- */

/* One round while it is collected. */
struct gathered {
    double us, first_s, last_s;
    unsigned number;
};

struct gathering {
    struct gathered *round;
    size_t count;
};

static int by_time(const void *a, const void *b)
{
    const struct gathered *x = a;
    const struct gathered *y = b;

    return (x->first_s > y->first_s) - (x->first_s < y->first_s);
}

/* Says in out->invalid what is wrong with a record, if anything is. */
static bool record_usable(const struct bench_record *r, struct rounds *out)
{
    unsigned used = 0;

    if (!r->valid) {
        snprintf(out->invalid, sizeof out->invalid, "%.480s",
                 r->reason[0] ? r->reason : "recorded as not valid");
        return false;
    }
    for (unsigned i = 0; i < r->nsamples; i++) {
        if (r->sample[i].flagged)
            continue;
        used++;
        if (!(r->sample[i].us > 0.0) || isinf(r->sample[i].us)) {
            snprintf(out->invalid, sizeof out->invalid, "sample %u of %u is %g us", i + 1,
                     r->nsamples, r->sample[i].us);
            return false;
        }
    }
    if (used == 0)
        snprintf(out->invalid, sizeof out->invalid,
                 r->nsamples ? "all %u samples are flagged (throttled or at a low clock)"
                             : "it has %u samples",
                 r->nsamples);
    return used > 0;
}

static void gather_round(const struct bench_record *r, unsigned round, struct gathering *g,
                         struct rounds *out)
{
    double *us = xcalloc(r->nsamples, sizeof *us);
    struct gathered now = {.first_s = INF64, .last_s = -INF64, .number = round};
    unsigned n = 0;

    for (unsigned i = 0; i < r->nsamples; i++) {
        const struct bench_sample *s = &r->sample[i];

        if (s->round != round)
            continue;
        if (s->flagged) {
            out->nflagged++;
            continue;
        }
        us[n++] = s->us;
        /* Written so that a NaN time makes both NaN for good. */
        now.first_s = now.first_s < s->at_s ? now.first_s : s->at_s;
        now.last_s = now.last_s > s->at_s ? now.last_s : s->at_s;
    }
    if (n > 0) {
        now.us = stats_median(us, n);
        out->nsamples += n;
        g->round = xrealloc(g->round, g->count + 1, sizeof *g->round);
        g->round[g->count++] = now;
    }
    free(us);
}

/* Rounds are numbered in any way; each number that occurs is one round. */
static void gather_record(const struct bench_record *r, struct gathering *g, struct rounds *out)
{
    for (unsigned i = 0; i < r->nsamples; i++) {
        bool before = false;

        for (unsigned k = 0; k < i && !before; k++)
            before = r->sample[k].round == r->sample[i].round;
        if (!before)
            gather_round(r, r->sample[i].round, g, out);
    }
    if (r->event_tick_us > 0.0 && r->launches_per_sample > 0)
        out->tick_us = fmax(out->tick_us, r->event_tick_us / r->launches_per_sample);
}

/* Merges neighbours evenly when there are more rounds than REGRESS_MAX_ROUNDS. */
static void settle(const struct gathering *g, struct rounds *out)
{
    size_t groups = g->count < REGRESS_MAX_ROUNDS ? g->count : REGRESS_MAX_ROUNDS;

    for (size_t k = 0; k < groups; k++) {
        size_t from = k * g->count / groups;
        size_t to = (k + 1) * g->count / groups;
        double *us = xcalloc(to - from, sizeof *us);

        for (size_t i = from; i < to; i++)
            us[i - from] = g->round[i].us;
        out->us[k] = stats_median(us, to - from);
        out->first_s[k] = g->round[from].first_s;
        out->last_s[k] = g->round[to - 1].last_s;
        out->number[k] = g->round[from].number;
        free(us);
    }
    out->count = (unsigned)groups;
}

void rounds_collect(const struct bench_record *const *record, size_t count, struct rounds *out)
{
    struct gathering g = {.count = 0};
    bool timed = true;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        if (!record_usable(record[i], out))
            return;
    }
    for (size_t i = 0; i < count; i++)
        gather_record(record[i], &g, out);
    for (size_t i = 0; i < g.count; i++)
        timed = timed && isfinite(g.round[i].first_s) && isfinite(g.round[i].last_s);
    if (timed && g.count > 1)
        qsort(g.round, g.count, sizeof *g.round, by_time);
    settle(&g, out);
    out->numbered = count == 1 && g.count <= REGRESS_MAX_ROUNDS;
    free(g.round);
}

/* --- one case --------------------------------------------------------------------------------- */

/* Side by side in time: no round of either side begins before both k-th rounds before it
   ended. */
static bool interleaved(const struct rounds *a, const struct rounds *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned k = 0; k + 1 < a->count; k++) {
        double end = fmax(a->last_s[k], b->last_s[k]);

        if (!(isfinite(a->last_s[k]) && isfinite(b->last_s[k])) ||
            !(end <= a->first_s[k + 1] && end <= b->first_s[k + 1]))
            return false;
    }
    return a->count > 1;
}

static void copy_round(const struct rounds *from, unsigned i, struct rounds *to, unsigned k)
{
    to->us[k] = from->us[i];
    to->first_s[k] = from->first_s[i];
    to->last_s[k] = from->last_s[i];
}

/* Leaves the rounds whose number both sides have, in the order of `a`: a side that lost one
   (throttled, say) must not shift all that follow against the other's. */
static void keep_common(struct rounds *a, struct rounds *b)
{
    const struct rounds all = *b;
    unsigned n = 0;

    for (unsigned i = 0; i < a->count; i++)
        for (unsigned k = 0; k < all.count; k++)
            if (all.number[k] == a->number[i]) {
                copy_round(&all, k, b, n);
                copy_round(a, i, a, n++);
                break;
            }
    a->count = b->count = n;
}

/* Makes the k-th rounds of both sides pairs, if they can be: by number when that leaves more than
   half of them, and enough for a verdict; else as they follow each other. */
static bool pair_up(struct rounds *a, struct rounds *b)
{
    unsigned longer = a->count > b->count ? a->count : b->count;

    if (a->numbered && b->numbered) {
        struct rounds x = *a;
        struct rounds y = *b;

        keep_common(&x, &y);
        if (2 * x.count > longer &&
            (x.count == longer || x.count >= regress_rounds_needed(1, WEAKEST_P)) &&
            interleaved(&x, &y)) {
            *a = x;
            *b = y;
            return true;
        }
    }
    return interleaved(a, b);
}

/* (largest - smallest) / median of the rounds. */
static double spread(const struct rounds *r)
{
    return (stats_quantile(r->us, r->count, 1.0) - stats_quantile(r->us, r->count, 0.0)) /
           stats_median(r->us, r->count);
}

/* How far the middle half of the rounds spreads. */
static double middle_half(const struct rounds *r)
{
    return stats_quantile(r->us, r->count, 0.75) - stats_quantile(r->us, r->count, 0.25);
}

/* One case on the logarithmic scale. */
struct logs {
    bool paired;
    unsigned na, nb;
    double a[REGRESS_MAX_ROUNDS]; /* paired: the log ratios */
    double b[REGRESS_MAX_ROUNDS];
};

static struct logs logs_of(const struct rounds *base, const struct rounds *next, bool paired)
{
    struct logs l = {.paired = paired, .na = base->count, .nb = next->count};

    for (unsigned k = 0; k < l.na; k++)
        l.a[k] = log(base->us[k]);
    for (unsigned k = 0; k < l.nb; k++)
        l.b[k] = log(next->us[k]);
    for (unsigned k = 0; paired && k < l.na; k++)
        l.a[k] = l.b[k] - l.a[k];
    return l;
}

static double centre(const struct logs *l)
{
    return l->paired ? stats_location(l->a, l->na) : stats_shift(l->a, l->na, l->b, l->nb);
}

/* One-sided p of "the effect is above `origin`" and of "below". */
static double p_above(const struct logs *l, double origin)
{
    return l->paired ? stats_signed_rank_p(l->a, l->na, origin)
                     : stats_rank_sum_p(l->a, l->na, l->b, l->nb, origin);
}

static double p_below(const struct logs *l, double origin)
{
    struct logs mirrored = *l;

    if (!l->paired)
        return stats_rank_sum_p(l->b, l->nb, l->a, l->na, -origin);
    for (unsigned k = 0; k < l->na; k++)
        mirrored.a[k] = -l->a[k];
    return stats_signed_rank_p(mirrored.a, l->na, -origin);
}

/* The smallest two-sided p that so many rounds can give: 2/2^n, or 2 over the number of ways
   to choose. */
static double smallest_p(const struct logs *l)
{
    double ways = 1.0;

    if (l->paired)
        return ldexp(2.0, -(int)l->na);
    for (unsigned k = 1; k <= l->nb; k++)
        ways *= (double)(l->na + k) / (double)k;
    return 2.0 / ways;
}

/*
 * The smallest slowdown that would have been called: the rounds keep their scatter and are moved
 * until their p falls to `alpha`. p falls with the shift, so bisection finds it.
 */
static double smallest_called(const struct logs *l, double effect, double margin, double alpha)
{
    double low = 0.0;
    double high =
        log(1024.0); /* a thousandfold slowdown; nothing subtler than that is undetectable */

    if (smallest_p(l) > alpha)
        return INF64;
    /* Moving the rounds to `s` from where they are equals moving the origin the other way. */
    if (2.0 * p_above(l, margin - high + effect) > alpha)
        return INF64;
    for (int i = 0; i < 20; i++) {
        double middle = (low + high) / 2;

        if (2.0 * p_above(l, margin - middle + effect) <= alpha)
            high = middle;
        else
            low = middle;
    }
    return expm1(high);
}

static void measure(const struct regress_input *in, const struct regress_options *opt, double alpha,
                    struct regress_result *out)
{
    struct rounds base = *in->base;
    struct rounds next = *in->next;
    bool paired = pair_up(&base, &next);
    struct logs l = logs_of(&base, &next, paired);
    double log_margin, effect = centre(&l);
    struct interval i = paired ? stats_location_interval(l.a, l.na, &opt->bootstrap)
                               : stats_shift_interval(l.a, l.na, l.b, l.nb, &opt->bootstrap);

    out->paired = paired;
    out->margin = opt->threshold;
    if (!paired)
        out->margin += fmax(spread(&base), spread(&next));
    log_margin = log1p(out->margin);
    out->effect = expm1(effect);
    out->interval = (struct interval){expm1(i.low), expm1(i.high)};
    out->base_us = stats_median(base.us, base.count);
    out->next_us = stats_median(next.us, next.count);
    out->p = fmin(1.0, 2.0 * fmin(p_above(&l, log_margin), p_below(&l, -log_margin)));
    out->detectable = fmax(smallest_called(&l, effect, log_margin, alpha),
                           TICKS_WITHOUT_MEANING * fmax(base.tick_us, next.tick_us) / out->base_us);
    out->change = smallest_p(&l) > WEAKEST_P ? CHANGE_UNSURE : CHANGE_SAME; /* decide() goes on */
}

/* --- the suite -------------------------------------------------------------------------------- */

static void refuse(const struct regress_input *in, struct regress_result *out)
{
    bool base = in->base->invalid[0] != '\0';

    *out = (struct regress_result){.change = CHANGE_INVALID,
                                   .effect = NAN64,
                                   .p = NAN64,
                                   .q = NAN64,
                                   .detectable = NAN64,
                                   .base_us = NAN64,
                                   .next_us = NAN64,
                                   .interval = {NAN64, NAN64},
                                   .margin = NAN64};
    snprintf(out->reason, sizeof out->reason, "%s: %s", base ? "base" : "new",
             base ? in->base->invalid : in->next->invalid);
}

static bool within(struct interval i, double margin)
{
    return i.low >= -margin / (1.0 + margin) && i.high <= margin;
}

/* The share of the time that the timer's steps can hide. */
static double hidden_share(const struct regress_input *in, const struct regress_result *r)
{
    double tick = fmax(in->base->tick_us, in->next->tick_us);

    if (middle_half(in->base) >= tick && middle_half(in->next) >= tick)
        return 0.0;
    return TICKS_HIDDEN * tick / r->base_us;
}

static struct interval widened(struct interval i, double by)
{
    return (struct interval){i.low - by, i.high + by};
}

static void decide(const struct regress_input *in, const struct regress_options *opt, size_t tested,
                   struct regress_result *r)
{
    double tick = fmax(in->base->tick_us, in->next->tick_us);
    double hidden = hidden_share(in, r);
    double ticks = tick > 0.0 ? fabs(r->next_us - r->base_us) / tick : INF64;

    if (r->change == CHANGE_UNSURE) {
        snprintf(r->reason, sizeof r->reason,
                 "%u and %u rounds are too few to tell anything at 95%%: record at least %u",
                 in->base->count, in->next->count, regress_rounds_needed(1, WEAKEST_P));
    } else if (r->q <= opt->fdr && ticks >= TICKS_WITHOUT_MEANING) {
        r->change = r->effect > 0.0 ? CHANGE_SLOWER : CHANGE_FASTER;
    } else if (r->q <= opt->fdr) {
        r->change = CHANGE_UNSURE;
        snprintf(r->reason, sizeof r->reason,
                 "the difference is %.1f ticks of the event timer: time more launches per sample",
                 ticks);
    } else if (within(widened(r->interval, hidden), opt->threshold)) {
        r->change = CHANGE_SAME;
    } else {
        r->change = CHANGE_UNSURE;
        if (within(r->interval, opt->threshold))
            snprintf(r->reason, sizeof r->reason,
                     "the event timer's steps can hide %.2g%%: time more launches per sample",
                     100.0 * hidden);
        else if (isinf(r->detectable))
            snprintf(r->reason, sizeof r->reason,
                     "too few rounds to call one case among %zu: record at least %u", tested,
                     regress_rounds_needed(tested, opt->fdr));
        else if (!r->paired)
            snprintf(r->reason, sizeof r->reason,
                     "not interleaved, and the rounds of one side spread over %.3g%%",
                     100.0 * (r->margin - opt->threshold));
        else
            snprintf(r->reason, sizeof r->reason,
                     "the interval reaches beyond the threshold, the test does not decide");
    }
}

void regress_judge(const struct regress_input *in, size_t count, const struct regress_options *opt,
                   struct regress_result *out)
{
    double *p = xcalloc(count, sizeof *p);
    double *q = xcalloc(count, sizeof *q);
    size_t tested = 0;

    for (size_t i = 0; i < count; i++)
        tested += !in[i].base->invalid[0] && !in[i].next->invalid[0];
    for (size_t i = 0; i < count; i++) {
        memset(&out[i], 0, sizeof out[i]);
        if (in[i].base->invalid[0] || in[i].next->invalid[0])
            refuse(&in[i], &out[i]);
        else
            measure(&in[i], opt, opt->fdr / (double)tested, &out[i]);
        p[i] = out[i].p;
    }
    stats_fdr(p, count, q);
    for (size_t i = 0; i < count; i++) {
        out[i].q = q[i];
        if (out[i].change != CHANGE_INVALID)
            decide(&in[i], opt, tested, &out[i]);
    }
    free(p);
    free(q);
}
