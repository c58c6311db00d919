/*
 * A benchmark run: correctness first, then interleaved rounds over all cases, then correctness
 * again.
 *
 *     verify every case, in worker processes
 *     ceilings, sentinel
 *     for a batch of cases that fits the memory together:
 *         warm each up, record its graphs
 *         for each round: every case cold and hot, of both sides when two kernel sets are
 *             compared (in turns A B, B A, so that drift hits both alike; on the same buffers);
 *             then the sentinel
 *         judge the timed buffers, settle the records, hand them out
 *
 * Where a kernel's code lies decides up to a fifth of the cold time of a short kernel: equal
 * kernels loaded twice differ, always the same way. So on a GPU each round's cold samples have a
 * load of their own of every module (hot ones do not depend on it). What is due to the place
 * becomes scatter between rounds, which comparisons know about, and does not pass for a change of
 * the kernel (Mytkowicz et al. 2009, "Producing wrong data without doing anything obviously
 * wrong!").
 *
 * A case that is refused, fails or takes the device with it costs its own result: the device is
 * opened anew and the batch starts again without it. GB10's slow state ends the run.
 */
#ifndef MEASURE_BENCHMARK_H
#define MEASURE_BENCHMARK_H

#include "measure/ceilings.h"
#include "problem/test_case.h"
#include "record/record.h"

#define BENCHMARK_SIDES 2

struct nvtx;

struct benchmark_options {
    const char *device;                   /* as device_open() takes it */
    unsigned sides;                       /* 1, or 2 to compare two kernel sets */
    const char *kernels[BENCHMARK_SIDES]; /* folder of each side; NULL: our own */
    const char *golden_dir;               /* may be NULL */
    bool golden_read_only;                /* nothing can be stored there */
    const char *sheet_dir;                /* folder of the device sheets; NULL: none */
    const char *suite;                    /* name of the outermost range */
    bool cold, hot;
    unsigned rounds; /* 0: as many as a comparison of all rows needs, and more where an interval
                          is still open */
    unsigned most_rounds; /* with those; 0: the default */
    double budget_s;      /* per case and temperature; 0: the default */
    unsigned repeats;     /* of all rounds, each with its own records; at least 1 */
    unsigned workers;     /* of the CPU device and the reference; 0: all CPUs */
    struct nvtx *nvtx;    /* may be NULL */
};

/* Where the results go. The functions that return int stop the run with -1. */
struct benchmark_sink {
    void *ctx;
    int (*opened)(void *ctx, const struct device_info *info, struct err *err);
    int (*ceiling)(void *ctx, const struct ceiling_record *rec, struct err *err);
    /* One settled record; its samples are valid during the call only. `cause`: of one that is not
       valid, the error that kept it from being timed; ERR_NONE when it was judged instead. */
    int (*result)(void *ctx, unsigned repeat, unsigned side, const struct bench_record *rec,
                  enum err_kind cause, struct err *err);
    void (*note)(void *ctx, const char *text); /* what the user should see as it happens */
    /* What costs nothing but time; once for each worker and load that sees it. May be NULL. */
    void (*warn)(void *ctx, const char *text);
    /* Records of `repeat` have come for all of the first `cases` of the list. May be NULL. */
    void (*repeat_done)(void *ctx, unsigned repeat, size_t cases);
    /* What goes on just now, a few words; for a terminal. May be NULL. */
    void (*progress)(void *ctx, const char *text);
};

/* -1 when the run could not go on; what was handed out before stays valid. */
int benchmark_run(const struct benchmark_options *opt, const struct case_list *cases,
                  const struct benchmark_sink *sink, struct err *err);

#endif
