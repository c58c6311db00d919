/*
 * One case of one kernel set while it is benchmarked: timed cold and hot once it is verified,
 * then its buffers judged once more. For benchmark.c only.
 */
#ifndef MEASURE_BENCH_ITEM_H
#define MEASURE_BENCH_ITEM_H

#include "measure/ceilings.h"
#include "measure/nvtx.h"
#include "measure/runner.h"
#include "measure/timing.h"

#define TEMPERATURES 2

/* What all items of a run share; borrowed. */
struct bench_rig {
    struct device *device;
    struct timing_rig *rig;
    struct nvtx *nvtx;
    const struct runner_options *runner;
    const struct roofs *roofs;       /* all NAN on the CPU device */
    const struct device_sheet *gb10; /* NULL: no column "floor on GB10" */
    bool wanted[TEMPERATURES];       /* by enum temperature */
    unsigned rounds;                 /* 0: the default */
    double budget_s;                 /* per temperature; 0: the default */
};

struct bench_item {
    const struct test_case *tc;
    unsigned side;           /* which kernel set: 0 base, 1 the one it is compared with */
    const char *kernels_dir; /* of that set; NULL: our own */
    bool skipped;            /* the set lacks its kernel: rejected too, and no record */
    bool rejected;           /* not timed, or its times are not to be believed: see reason */
    char reason[512];
    enum err_kind cause; /* of the rejection; ERR_NONE: a verdict */
    struct runner *runner;
    struct timing timing[TEMPERATURES];
    bool enough[TEMPERATURES]; /* further rounds leave it out */
    struct cost cost;
    bool in_place; /* it has buffers that a run reads and writes */
    bool verified_after[TEMPERATURES];
    char damage[512]; /* what timed loops did to buffers that two share; "" nothing */
    double module_load_us;
    size_t bytes; /* of its buffers */
};

/* Makes a verified case ready to be timed. `like` is an open item of the same case, closed with
   this one: the two share buffers and golden; NULL: none. Returns -1 with `rejected` and `reason`
   set when it cannot be; the caller finds out whether the device survived. */
int bench_item_open(struct bench_item *it, const struct bench_rig *b, struct kernel_set *set,
                    const struct bench_item *like);
void bench_item_close(struct bench_item *it); /* safe to call twice */
/* One round, its cold samples with the kernels of `set`, another load of the item's own; NULL: with
   those it has. */
int bench_item_round(struct bench_item *it, const struct bench_rig *b, struct kernel_set *set,
                     unsigned round);
/* Restores, runs what was timed, judges: sets verified_after, or rejects. What is found on buffers
   that are shared may be another's doing: all is mended then, and what it runs now decides. If that
   is right, `damage` says what was found. */
int bench_item_finish(struct bench_item *it, const struct bench_rig *b, bool shared);
/* For both sides of a case once both are finished: damage that neither of them repeats is nobody's
   to show, and neither time is to be believed. */
void bench_item_settle_damage(struct bench_item *a, struct bench_item *b);
/* Sets `enough` for what wants no further round, of `cases` cases whose sides are adjacent. Returns
   how many cases want one. */
size_t bench_items_want_more(struct bench_item *item, size_t cases, unsigned sides,
                             const struct bench_rig *b);
/* Forgets the samples, so that the rounds can start anew. */
void bench_item_reset(struct bench_item *it);

/* The record of one temperature, not yet settled. Its samples stay the item's. */
void bench_item_record(const struct bench_item *it, const struct bench_rig *b, enum temperature t,
                       struct bench_record *out);
struct roof_floor bench_item_floor(const struct bench_item *it, const struct bench_rig *b,
                                   enum temperature t);

#endif
