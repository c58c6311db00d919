/*
 * Ranges for a profiler's timeline, in the NVTX domain "deltarig": a suite holds cases, a case
 * holds phases. Names are registered once (a push then costs a pointer); the payload of a range
 * tells a suite's number of cases, a case's hash, a phase's bytes. Costs nothing when no tool is
 * attached.
 *
 * Built without NVTX's header everything here does nothing, and nvtx_available() says so.
 */
#ifndef MEASURE_NVTX_H
#define MEASURE_NVTX_H

#include <stdbool.h>
#include <stdint.h>

enum nvtx_phase {
    NVTX_REFERENCE, /* golden computed or read */
    NVTX_UPLOAD,
    NVTX_VERIFY,
    NVTX_WARM_UP,
    NVTX_RESTORE,
    NVTX_TIMED, /* one round's samples: around the events, never between them */
    NVTX_COMPARE,
    NVTX_CEILINGS,
    NVTX_SENTINEL,
    NVTX_PHASES,
};

struct nvtx; /* opaque; NULL is allowed everywhere and does nothing */

bool nvtx_available(void); /* compiled in */

struct nvtx *nvtx_open(void); /* NULL when not available */
void nvtx_close(struct nvtx *n);

void nvtx_suite_begin(struct nvtx *n, const char *name, uint64_t cases);
void nvtx_case_begin(struct nvtx *n, const char *text, uint64_t hash);
void nvtx_phase_begin(struct nvtx *n, enum nvtx_phase phase, uint64_t bytes);
void nvtx_end(struct nvtx *n); /* the range begun last */

const char *nvtx_phase_name(enum nvtx_phase phase); /* "warm-up" ... */

#endif
