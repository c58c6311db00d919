/*
 * Work on cases in forked worker processes, so that a crash, an exit(), a lost GPU context or a
 * hang costs one case and not the run. The calling process never touches a device.
 *
 *     parent                                     worker (forked; one device each)
 *     opened(info) once          <- hello        open()
 *     next index                 -> index        run(index, result)
 *     done(index, result)        <- result       ... until its socket closes: close(), exit
 *
 * A worker that dies or falls silent for `watchdog_s` is replaced, and lost() writes the result of
 * the case it was working on. A worker whose run() returned true (its device may be damaged) is
 * replaced too.
 */
#ifndef MEASURE_SUPERVISOR_H
#define MEASURE_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>

#include "device/device.h"

#define SUPERVISOR_MAX_JOBS 64
/* Workers that share a GPU: the host's part of a case (inputs, reference, comparison) is the longer
   one, so a few keep the GPU no busier than one case at a time would; more only hold memory. */
#define SUPERVISOR_GPU_JOBS 4

struct supervisor_link {
    int socket; /* -1 in process */
    const struct supervisor_job *job;
};

/* Tells the parent what the worker is about to do, so that a death or a hang can be told with it.
 */
void supervisor_phase(const struct supervisor_link *link, const char *what);
/* Has warned() called, so that all workers' warnings come from one process, which can tell each
   once. */
void supervisor_warn(const struct supervisor_link *link, const char *text);

struct supervisor_job {
    size_t count;       /* indices 0..count-1 */
    const bool *skip;   /* count flags: indices that need no work; NULL: none */
    size_t result_size; /* bytes of a result: plain data, no pointers */
    unsigned jobs;      /* workers; on a GPU at most SUPERVISOR_GPU_JOBS, whatever is asked */
    bool in_process;    /* no fork and no protection: for debuggers and sanitizers */
    double watchdog_s;  /* for one case, and for open(); > 0 */

    void *worker; /* passed to the functions that run in a worker (its own copy of it) */
    int (*open)(void *worker, struct device_info *info, struct err *err);
    /* True: replace this worker. `link` is for supervisor_phase(). */
    bool (*run)(void *worker, size_t index, void *result, const struct supervisor_link *link);
    void (*close)(void *worker);

    void *parent; /* passed to the functions that run in the caller */
    int (*opened)(void *parent, const struct device_info *info, struct err *err);
    int (*done)(void *parent, size_t index, const void *result, struct err *err); /* as they come */
    void (*lost)(void *parent, size_t index, const char *why, void *result);
    void (*warned)(void *parent, const char *text); /* may be NULL */
};

/* -1 when the first worker cannot open its device, when opened() or done() fails, or when no worker
   can be started. Whatever happens no worker is left behind. */
int supervisor_run(const struct supervisor_job *job, struct err *err);

/* --- between supervisor.c and supervisor_worker.c --------------------------------------------- */

enum supervisor_kind { FRAME_HELLO, FRAME_OPEN_FAILED, FRAME_PHASE, FRAME_WARNING, FRAME_RESULT };

#define SUPERVISOR_PHASE_BYTES   96
#define SUPERVISOR_WARNING_BYTES 1024

/* What a worker sends; a struct device_info, a struct err, a text of SUPERVISOR_PHASE_BYTES or
   SUPERVISOR_WARNING_BYTES or a result follows. */
struct supervisor_frame {
    enum supervisor_kind kind;
    bool retire; /* the worker ends after this */
    size_t index, size;
};

/* The worker's whole life; ends the process. */
_Noreturn void supervisor_worker(const struct supervisor_job *job, int socket);

#endif
