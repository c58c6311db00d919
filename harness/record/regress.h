/*
 * Did it get slower? Pure: medians of interleaved rounds in, a judgement per case out.
 *
 * The unit is the ROUND, never the sample: samples of one round share the clock, the temperature
 * and the memory layout of their time, so pooling them would claim a certainty that is not there.
 * Effects are ratios, worked on as logarithms.
 *
 *   paired    the rounds of the same number (else the k-th ones) of both sides were measured one
 *             after the other; the effect is the centre of the log ratios (Hodges-Lehmann), its p
 *             by the signed-rank test. A round that one side lacks is left out
 *   unpaired  else; the effect is the Hodges-Lehmann shift, its p by the rank-sum test. The margin
 *             then grows by the spread of the rounds of either side: a machine that drifted that
 *             much during a run can be believed to have drifted so between the runs
 *
 * A case is called SLOWER or FASTER when the data reject, at the false-discovery rate over the
 * whole suite (Benjamini and Hochberg 1995), that its effect lies within the margin; SAME when
 * the bootstrap interval of the effect (rounds drawn with replacement) lies within the threshold,
 * with what the steps of the event timer can hide; UNSURE when neither can be said. So a change of
 * less than the threshold is never called, however many samples say so.
 */
#ifndef RECORD_REGRESS_H
#define RECORD_REGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "record/record.h"
#include "record/stats.h"

enum change { CHANGE_SAME, CHANGE_FASTER, CHANGE_SLOWER, CHANGE_UNSURE, CHANGE_INVALID };
const char *change_name(enum change c); /* "SAME" ... */

struct regress_options {
    double threshold; /* the margin as a share: 0.01 */
    double fdr;       /* false-discovery rate over the suite: 0.05 */
    struct bootstrap bootstrap;
};
#define REGRESS_OPTIONS_INIT                                                                       \
    {                                                                                              \
        .threshold = 0.01, .fdr = 0.05, .bootstrap = {                                             \
            .resamples = 999,                                                                      \
            .confidence = 0.95,                                                                    \
            .seed = 1                                                                              \
        }                                                                                          \
    }

/* Paired rounds from which on one changed case among `cases` can be called at all: 2 * 2^-n,
   the smallest p of n rounds, must not exceed fdr / cases. 12 for up to 102 cases at 5%. */
unsigned regress_rounds_needed(size_t cases, double fdr);

/* More rounds than this are merged with their neighbours in time (median): it bounds the work. */
#define REGRESS_MAX_ROUNDS 64

/* One side of one case: the median time of each round in order of time. */
struct rounds {
    unsigned count;
    double us[REGRESS_MAX_ROUNDS];
    double first_s[REGRESS_MAX_ROUNDS], last_s[REGRESS_MAX_ROUNDS]; /* when; NAN when not kept */
    unsigned number[REGRESS_MAX_ROUNDS]; /* as recorded, when `numbered` */
    bool numbered; /* one record holds them all, and none were merged: equal numbers are pairs */
    unsigned nsamples, nflagged; /* used and left out */
    double tick_us;              /* step of the event timer per launch; 0 when not known */
    char invalid[512];           /* why the side must not be used; "" when it may */
};

/*
 * Collects the rounds of one case from the bench records of one side (several when each round was
 * a run of its own). Invalid: a record that says so, no sample, all samples flagged, a sample
 * that is NaN or not above 0.
 */
void rounds_collect(const struct bench_record *const *record, size_t count, struct rounds *out);

struct regress_input {
    const struct rounds *base, *next;
};

struct regress_result {
    enum change change;
    bool paired;
    double effect;            /* next/base - 1 */
    struct interval interval; /* of the effect */
    double base_us, next_us;  /* medians over the rounds */
    double margin;            /* the share that was tested against */
    double p, q;
    /* Smallest slowdown that these rounds, with their scatter, would have shown when alone in the
       suite; infinite when none: too few rounds. At least what the event timer can tell. Other
       rounds scatter otherwise: a slowdown of this size is called about every second time. */
    double detectable;
    char reason[600]; /* why INVALID or UNSURE; else "" */
};

/* Judges `count` cases as one suite. */
void regress_judge(const struct regress_input *in, size_t count, const struct regress_options *opt,
                   struct regress_result *out);

#endif
