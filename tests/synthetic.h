/*
 * Made-up records for tests of comparisons and reports: plausible, deterministic, and as broken
 * as a test asks.
 */
#ifndef TESTS_SYNTHETIC_H
#define TESTS_SYNTHETIC_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/rng.h"
#include "record/stats.h"
#include "record/store.h"

#define SYNTHETIC_ROUNDS    12
#define SYNTHETIC_PER_ROUND 4
#define SYNTHETIC_SAMPLES   (SYNTHETIC_ROUNDS * SYNTHETIC_PER_ROUND)

/* One side of a run. */
struct synthetic {
    struct store *store;
    struct provenance prov;
    struct device_stamp device;
    double start_s; /* of its first round */
    uint64_t seed;
    double noise;
};

static inline void synthetic_open(struct synthetic *s, const char *path, const char *device,
                                  double start_s, uint64_t seed)
{
    struct err err = ERR_INIT;

    memset(s, 0, sizeof *s);
    s->prov = (struct provenance){.argv = xstrdup("deltarig bench --tier perf"),
                                  .git_commit = "0123456789abcdef0123456789abcdef01234567",
                                  .host_cpu = "Some CPU",
                                  .host_arch = "x86_64",
                                  .os = "Linux 6.1",
                                  .compiler = "gcc 12.2.0 (-O2)",
                                  .version = "0.1.0"};
    snprintf(s->prov.started, sizeof s->prov.started, "2026-03-%02uT12:00:00Z",
             (unsigned)(seed % 28 + 1));
    s->device = (struct device_stamp){.spec = "cuda:0",
                                      .driver = "580.65",
                                      .cc_major = 9,
                                      .sm_count = 132,
                                      .memory_bytes = 139ull << 30,
                                      .l2_bytes = 50ull << 20};
    snprintf(s->device.name, sizeof s->device.name, "%s", device);
    s->device.emulated = strstr(device, "emulated") != NULL;
    s->start_s = start_s;
    s->seed = seed;
    s->noise = 0.003;
    if (store_open(path, &s->prov, &s->device, &s->store, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
}

static inline void synthetic_close(struct synthetic *s)
{
    store_close(s->store);
    free(s->prov.argv);
}

static inline void synthetic_check(int rc, const struct err *err)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", err->text);
        abort();
    }
}

/* A valid record of a case around `us`, its rounds 10 s apart. The caller may spoil it; free its
   samples and itself. */
static inline struct bench_record *synthetic_bench(const struct synthetic *s, const char *text,
                                                   enum temperature temperature, double us)
{
    struct bench_record *r = xcalloc(1, sizeof *r);
    uint64_t key = rng_key(s->seed, text);
    double all[SYNTHETIC_SAMPLES];
    struct interval i;

    snprintf(r->case_text, sizeof r->case_text, "%s", text);
    snprintf(r->op, sizeof r->op, "%.*s", (int)strcspn(text, " "), text);
    r->temperature = temperature;
    r->valid = r->verified_after = r->converged = true;
    r->nsamples = SYNTHETIC_SAMPLES;
    r->sample = xcalloc(r->nsamples, sizeof *r->sample);
    for (unsigned k = 0; k < r->nsamples; k++) {
        double z = rng_normal(key, 2 * k + (uint64_t)temperature);

        r->sample[k] =
            (struct bench_sample){.us = us * (1.0 + s->noise * z),
                                  .round = k / SYNTHETIC_PER_ROUND,
                                  .at_s = s->start_s + 10.0 * (k / SYNTHETIC_PER_ROUND) + 0.001 * k,
                                  .sm_clock_mhz = 1980,
                                  .mem_clock_mhz = NAN64,
                                  .temperature_c = 51,
                                  .power_w = 400,
                                  .energy_j = NAN64};
        all[k] = r->sample[k].us;
    }
    i = stats_median_interval(all, r->nsamples, 0.95);
    r->median_us = stats_median(all, r->nsamples);
    r->low_us = i.low;
    r->high_us = i.high;
    r->event_tick_us = 0.032;
    r->launch_overhead_us = 2.1;
    r->launches_per_sample = us < 20 ? 50 : 1;
    r->reference_clock_mhz = 1980;
    r->roof_us = r->gb10_floor_us = NAN64;
    return r;
}

static inline void synthetic_put_bench(struct synthetic *s, struct bench_record *r)
{
    struct err err = ERR_INIT;

    synthetic_check(store_bench(s->store, r, &err), &err);
    free(r->sample);
    free(r);
}

static inline struct verify_record *synthetic_verify(const char *text, enum verdict verdict)
{
    struct verify_record *r = xcalloc(1, sizeof *r);

    snprintf(r->case_text, sizeof r->case_text, "%s", text);
    snprintf(r->op, sizeof r->op, "%.*s", (int)strcspn(text, " "), text);
    snprintf(r->tier, sizeof r->tier, "smoke");
    r->verdict = verdict;
    if (verdict != VERDICT_PASS) {
        snprintf(r->reason, sizeof r->reason,
                 "output[seq=0 token=1] is 0.5, golden 0.25, bound <1e-3 & \"so\"");
        snprintf(r->failed_check, sizeof r->failed_check, "golden");
    }
    snprintf(r->repro, sizeof r->repro, "deltarig verify --case '%s'", text);
    r->noutputs = 1;
    r->output[0] = (struct output_stat){.buffer = "output",
                                        .compared = 4096,
                                        .max_error = 1e-4,
                                        .ratio_likely = 0.21,
                                        .ratio_worst = 0.02};
    snprintf(r->output[0].bits, sizeof r->output[0].bits, "%032x", 7);
    r->device_s = 0.25;
    return r;
}

static inline void synthetic_put_verify(struct synthetic *s, struct verify_record *r)
{
    struct err err = ERR_INIT;

    synthetic_check(store_verify(s->store, r, &err), &err);
    free(r);
}

static inline void synthetic_put_ceiling(struct synthetic *s, const char *name, const char *unit,
                                         double value)
{
    struct ceiling_record r = {.unit = "",
                               .value = value,
                               .low = value * 0.995,
                               .high = value * 1.004,
                               .nsamples = 31,
                               .published = NAN64};
    struct err err = ERR_INIT;

    snprintf(r.name, sizeof r.name, "%s", name);
    snprintf(r.unit, sizeof r.unit, "%s", unit);
    synthetic_check(store_ceiling(s->store, &r, &err), &err);
}

#endif
