/*
 * Records: one verdict or one measurement each, with full provenance, one JSON line. The schema
 * is an API: results/README.md documents every key, RECORD_SCHEMA is raised when one changes
 * meaning.
 *
 * Writing and reading: record/store.h; provenance: record/provenance.h. This layer knows devices
 * and cases only as the plain values below, so that reports and comparisons work on a machine
 * that has neither.
 */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

#define RECORD_SCHEMA      1
#define RECORD_MAX_OUTPUTS 64
#define RECORD_MAX_KERNELS 20

enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_SKIP, VERDICT_MISTRUST, VERDICT_ERROR };
const char *verdict_name(enum verdict v); /* "PASS" ... */
bool verdict_parse(const char *name, enum verdict *out);

/* The checks of a case; a bit each in verify_record.checks_run. */
enum check {
    CHECK_LAUNCH,   /* geometry, arguments, device faults, stuck barriers */
    CHECK_GOLDEN,   /* every VALUE within its bound, every EXACT bit pattern */
    CHECK_COVERAGE, /* every element to be written was written (no poison left) */
    CHECK_KEEP,     /* elements of outputs that must not change did not */
    CHECK_INPUTS,   /* inputs came back bit for bit */
    CHECK_FENCE,    /* nothing outside the buffers was written */
    CHECK_REPEAT,   /* the same launch gives the same bits */
    CHECK_SCHEDULE, /* permuted thread orders and shared-memory fills give the same bits (cpu) */
    CHECK_IDENTITY, /* the operator's bitwise contracts */
    CHECK_COUNT,
};
const char *check_name(enum check c); /* "golden" ... */

/* Where a run came from; the same for all records of one process. Strings owned by the struct. */
struct provenance {
    char *argv;          /* the command line, shell-quoted, program name without its folder */
    char git_commit[48]; /* "" outside a checkout */
    bool git_dirty;
    char started[32];   /* UTC, ISO 8601 */
    char host_cpu[128]; /* processor model: no host name, no path */
    char host_arch[16];
    char os[64];        /* kernel name and release */
    char compiler[128]; /* of the harness: name, version and flags as built */
    char version[32];   /* deltarig's own */
};

struct device_stamp {
    char spec[32], name[128], driver[64], uuid[48];
    int cc_major, cc_minor;
    uint32_t sm_count;
    uint64_t memory_bytes, l2_bytes;
    char firmware[48]; /* of the GPU: the version of its VBIOS; "" when unknown */
    bool emulated;     /* the CPU device: its times are wall times of an emulation */
};

struct kernel_stamp {
    char module[64], entry[128];
    char content[HASH_HEX]; /* of the module file that was loaded */
    uint32_t registers, static_shared, local_bytes, max_threads;
    uint32_t grid[3], block[3]; /* of its first launch in this run */
    uint64_t dynamic_shared;
    char flags[256]; /* how the module was compiled, when known */
};

/* One compared buffer. */
struct output_stat {
    char buffer[64];
    uint64_t compared;           /* VALUE and EXACT elements */
    double max_error;            /* max |kernel - golden|; infinite when NaN was met */
    double ratio_likely;         /* max error/likely bound; 0 when nothing was compared */
    double ratio_worst;          /* max error/worst bound */
    double zero_share;           /* share of compared goldens that are exactly 0 */
    char bits[HASH_HEX];         /* hash of the buffer's bits after the run */
    char where[128];             /* index text of the element with the largest ratio */
    double value, golden, bound; /* of that element */
};

struct verify_record {
    char case_text[512], op[64], tier[8];
    enum verdict verdict;
    char reason[1024];     /* "" for PASS */
    char failed_check[16]; /* check_name of the check that decided, "" for PASS */
    char repro[1200];      /* the command that repeats it */
    uint32_t checks_run;   /* bits 1 << enum check */
    char contract[256];
    unsigned noutputs;
    struct output_stat output[RECORD_MAX_OUTPUTS];
    unsigned nkernels;
    struct kernel_stamp kernel[RECORD_MAX_KERNELS];
    unsigned repeats, schedules;
    double reference_s, device_s; /* wall seconds */
    bool golden_cached;
};

enum temperature { BENCH_COLD, BENCH_HOT };
const char *temperature_name(enum temperature t); /* "cold", "hot" */
bool temperature_parse(const char *name, enum temperature *out);

/* One sample of a timed loop. NAN where the machine does not say. */
struct bench_sample {
    double us;      /* one launch of the operator */
    unsigned round; /* interleaving round it belongs to */
    double at_s;    /* when it was taken: seconds since 1970 (UTC); NAN when not kept */
    double sm_clock_mhz, mem_clock_mhz, temperature_c, power_w, energy_j;
    uint64_t throttle; /* NVML reasons bits; 0 none */
    bool flagged;      /* clock under 90% of the run's own, or throttled: kept, not used */
};

struct bench_record {
    char case_text[512], op[64];
    enum temperature temperature;
    bool valid;
    char reason[512]; /* why not valid, or a note ("... before the interval closed") */
    char repro[1200];
    unsigned nsamples;
    struct bench_sample *sample;       /* owned by the record */
    double median_us, low_us, high_us; /* 95% interval, rounds drawn whole */
    bool converged;
    double launch_overhead_us, event_tick_us; /* measured in this run */
    unsigned launches_per_sample;
    char launch_mode[16];       /* "graph", "stream", or "" when not known */
    char state_mode[16];        /* how in-place state is kept: "restored", "rotated", "none" */
    double evict_bytes;         /* read before each cold sample to empty the L2; 0 for hot */
    double reference_clock_mhz; /* SM clock that samples are held against; NAN when not known */
    bool verified_after;        /* the timed buffers were judged after the loop and passed */
    double first_launch_us, module_load_us;
    double read_bytes, write_bytes, flops;
    char roof[16];        /* "memory" or "compute" */
    double roof_us;       /* the binding floor by measured ceilings; NAN when not measured */
    double roof_percent;  /* 100 * roof_us / median_us */
    double gb10_floor_us; /* computed from published figures; never measured here */
    unsigned nkernels;
    struct kernel_stamp kernel[RECORD_MAX_KERNELS];
};

/* One measured ceiling of the device in this run. */
struct ceiling_record {
    /* dram_read dram_write dram_copy l2_read ffma fp32_unfused bf16_mma tf32_mma launch */
    char name[32];
    char unit[16]; /* "GB/s", "TFLOP/s", "us" */
    double value, low, high;
    unsigned nsamples;
    double published; /* of the device's ini file; NAN when none */
    char published_source[256];
};

/*
 * What a compiled kernel asks of an architecture, and - where case_text is set - what one launch
 * of a case makes of it on GB10. Needs no GPU: from the built modules and the launchers'
 * geometry.
 */
struct resources_record {
    char module[64], entry[128], arch[16];                     /* arch: "sm_121" */
    char content[HASH_HEX];                                    /* of the module file */
    uint32_t registers;                                        /* per thread */
    uint32_t spill_store_bytes, spill_load_bytes, stack_bytes; /* per thread */
    uint32_t static_shared;                                    /* per block */
    uint32_t max_threads;                                      /* per block */
    char case_text[512]; /* "": the kernel alone, the fields below are 0 */
    uint32_t launch;     /* number of the launch within the case, from 0 */
    uint32_t grid[3], block[3];
    uint64_t dynamic_shared;
    uint32_t blocks_per_sm;
    double occupancy;  /* resident warps / the SM's most, 0..1 */
    double waves;      /* blocks / (blocks_per_sm * SMs) */
    char limiter[16];  /* "registers" "shared" "threads" "blocks" */
    char refused[256]; /* why GB10 would refuse the launch; "" when it would not */
};

#endif
