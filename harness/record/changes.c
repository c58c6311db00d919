#include "record/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

/* --- devices ---------------------------------------------------------------------------------- */

/* The runs that verified or timed something: only their device matters. */
static const struct run_stamp *used_run(const struct record_set *set, size_t i)
{
    if (i < set->nverify)
        return &set->run[set->verify_run[i]];
    return &set->run[set->bench_run[i - set->nverify]];
}

static bool same_device(const struct device_stamp *a, const struct device_stamp *b)
{
    if (a->emulated != b->emulated)
        return false;
    return a->emulated || (strcmp(a->name, b->name) == 0 && a->cc_major == b->cc_major &&
                           a->cc_minor == b->cc_minor);
}

int records_device(const struct record_set *set, const char *side, const struct device_stamp **out,
                   struct err *err)
{
    *out = NULL;
    for (size_t i = 0; i < set->nverify + set->nbench; i++) {
        const struct device_stamp *d = &used_run(set, i)->device;

        if (*out && !same_device(*out, d))
            return err_set(
                err, ERR_INPUT,
                "the %s records are of two devices, \"%s\" and \"%s\"; compare one at a time", side,
                (*out)->name, d->name);
        *out = d;
    }
    return 0;
}

/* --- warnings --------------------------------------------------------------------------------- */

static void warn_if_other(struct text *out, const char *what, const char *base, const char *next)
{
    if (strcmp(base, next) != 0)
        text_addf(out, "other %s: base \"%s\", new \"%s\"\n", what, base, next);
}

/* The median over the bench records of the clock that samples were held against. */
static double clock_of(const struct record_set *set)
{
    double *mhz = xcalloc(set->nbench, sizeof *mhz);
    size_t n = 0;
    double median;

    for (size_t i = 0; i < set->nbench; i++)
        if (isfinite(set->bench[i].reference_clock_mhz))
            mhz[n++] = set->bench[i].reference_clock_mhz;
    median = stats_median(mhz, n);
    free(mhz);
    return median;
}

/* How the first kernel that says so was compiled; a set is compiled alike. */
static const char *kernel_flags(const struct record_set *set)
{
    for (size_t i = 0; i < set->nverify + set->nbench; i++) {
        bool timed = i >= set->nverify;
        const struct bench_record *b = timed ? &set->bench[i - set->nverify] : NULL;
        const struct kernel_stamp *kernel = timed ? b->kernel : set->verify[i].kernel;
        unsigned count = timed ? b->nkernels : set->verify[i].nkernels;

        for (unsigned k = 0; k < count; k++)
            if (kernel[k].flags[0])
                return kernel[k].flags;
    }
    return "";
}

static void warn(const struct record_set *base, const struct record_set *next, double threshold,
                 struct text *out)
{
    const struct run_stamp *a = used_run(base, 0);
    const struct run_stamp *b = used_run(next, 0);
    double clock_a = clock_of(base);
    double clock_b = clock_of(next);
    const char *flags_a = kernel_flags(base);
    const char *flags_b = kernel_flags(next);

    warn_if_other(out, "driver", a->device.driver, b->device.driver);
    if (a->device.firmware[0] && b->device.firmware[0])
        warn_if_other(out, "firmware", a->device.firmware, b->device.firmware);
    warn_if_other(out, "board", a->device.uuid, b->device.uuid);
    warn_if_other(out, "harness compiler", a->prov.compiler, b->prov.compiler);
    if (flags_a[0] && flags_b[0])
        warn_if_other(out, "compiler of the kernels", flags_a, flags_b);
    warn_if_other(out, "deltarig", a->prov.version, b->prov.version);
    if (!a->device.emulated)
        warn_if_other(out, "host processor", a->prov.host_cpu, b->prov.host_cpu);
    if (fabs(clock_b / clock_a - 1.0) > threshold) /* false when either is not known */
        text_addf(out, "other SM clock: base %.0f MHz, new %.0f MHz\n", clock_a, clock_b);
    if (b->prov.git_dirty)
        text_add(out, "the new records come from a checkout with uncommitted changes\n");
}

/* --- the whole -------------------------------------------------------------------------------- */

const struct verify_record *last_verify(const struct record_set *set, const char *case_text)
{
    for (size_t i = set->nverify; i-- > 0;)
        if (strcmp(set->verify[i].case_text, case_text) == 0)
            return &set->verify[i];
    return NULL;
}

int comparison_make(const struct record_set *base, const struct record_set *next,
                    const struct comparison_options *opt, struct comparison *out, struct err *err)
{
    const struct device_stamp *a, *b;
    bool same_times = true;

    memset(out, 0, sizeof *out);
    text_init(&out->warnings);
    if (records_device(base, "base", &a, err) < 0 || records_device(next, "new", &b, err) < 0)
        return -1;
    if (a && b && !same_device(a, b))
        return err_set(
            err, ERR_INPUT,
            "the base was recorded on \"%s\", the new on \"%s\": only records of one device "
            "can be compared",
            a->name, b->name);
    if (a && b) {
        same_times = strcmp(a->name, b->name) == 0;
        warn(base, next, opt->regress.threshold, &out->warnings);
    }
    changes_of_verdicts(base, next, opt, out);
    changes_of_timings(base, next, opt, same_times, out);
    changes_of_resources(base, next, out);
    if (a && b && same_times && !opt->common && out->ntimings == 0 && comparison_empty(out))
        return err_set(err, ERR_INPUT,
                       "no case of the base is among the new records: they are of other cases");
    if (out->timings_apart)
        text_add(
            &out->warnings,
            "base and new were not timed in interleaved rounds: drift of the machine between the "
            "runs counts as change, so the margin is widened by the spread within the runs\n");
    return 0;
}

void comparison_release(struct comparison *c)
{
    free(c->timing);
    free(c->presence);
    free(c->verdict);
    free(c->output);
    free(c->resource);
    text_release(&c->warnings);
    memset(c, 0, sizeof *c);
}

size_t comparison_count(const struct comparison *c, enum change change)
{
    size_t n = 0;

    for (size_t i = 0; i < c->ntimings; i++)
        n += c->timing[i].result.change == change;
    return n;
}

size_t comparison_worse(const struct comparison *c)
{
    size_t n = comparison_count(c, CHANGE_SLOWER);

    /* What could be timed before and cannot now is worse, too: a failed launch is not a pass. */
    for (size_t i = 0; i < c->ntimings; i++)
        n += c->timing[i].result.change == CHANGE_INVALID && !c->timing[i].base_rounds.invalid[0];
    for (size_t i = 0; i < c->npresences; i++)
        n += c->presence[i].worse;
    for (size_t i = 0; i < c->nverdicts; i++)
        n += c->verdict[i].worse;
    for (size_t i = 0; i < c->noutputs; i++)
        n += c->output[i].worse;
    for (size_t i = 0; i < c->nresources; i++)
        n += c->resource[i].worse;
    return n;
}

bool comparison_empty(const struct comparison *c)
{
    size_t timed = c->ntimings - comparison_count(c, CHANGE_INVALID);

    return timed + c->cases_compared + c->resources_compared == 0;
}
