#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "record/changes.h"

static bool same_subject(const struct bench_record *a, const struct bench_record *b)
{
    return a->temperature == b->temperature && strcmp(a->case_text, b->case_text) == 0;
}

/* The records of one side that time what `like` times; at most set->nbench into `list`. */
static size_t find_all(const struct record_set *set, const struct bench_record *like,
                       const struct bench_record **list)
{
    size_t n = 0;

    for (size_t i = 0; i < set->nbench; i++)
        if (same_subject(&set->bench[i], like))
            list[n++] = &set->bench[i];
    return n;
}

static bool is_first(const struct record_set *set, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same_subject(&set->bench[k], &set->bench[i]))
            return false;
    return true;
}

static bool same_kernels(const struct bench_record *a, const struct bench_record *b)
{
    if (a->nkernels != b->nkernels || a->nkernels == 0)
        return false;
    for (unsigned i = 0; i < a->nkernels; i++)
        if (strcmp(a->kernel[i].entry, b->kernel[i].entry) != 0 ||
            strcmp(a->kernel[i].content, b->kernel[i].content) != 0)
            return false;
    return true;
}

static void add_presence(struct comparison *out, const struct bench_record *r, bool vanished)
{
    out->presence = xrealloc(out->presence, out->npresences + 1, sizeof *out->presence);
    out->presence[out->npresences++] =
        (struct timing_presence){.record = r, .vanished = vanished, .worse = vanished || !r->valid};
}

static void add_timing(struct comparison *out, const struct bench_record **base, size_t nbase,
                       const struct bench_record **next, size_t nnext)
{
    struct timing_change *t;

    out->timing = xrealloc(out->timing, out->ntimings + 1, sizeof *out->timing);
    t = &out->timing[out->ntimings++];
    memset(t, 0, sizeof *t);
    t->base = base[0];
    t->next = next[0];
    t->same_kernels = same_kernels(base[0], next[0]);
    rounds_collect(base, nbase, &t->base_rounds);
    rounds_collect(next, nnext, &t->next_rounds);
}

static void judge_all(const struct comparison_options *opt, struct comparison *out)
{
    struct regress_input *in = xcalloc(out->ntimings, sizeof *in);
    struct regress_result *result = xcalloc(out->ntimings, sizeof *result);

    for (size_t i = 0; i < out->ntimings; i++)
        in[i] = (struct regress_input){&out->timing[i].base_rounds, &out->timing[i].next_rounds};
    regress_judge(in, out->ntimings, &opt->regress, result);
    for (size_t i = 0; i < out->ntimings; i++) {
        out->timing[i].result = result[i];
        out->timings_apart |= result[i].change != CHANGE_INVALID && !result[i].paired;
    }
    free(in);
    free(result);
}

void changes_of_timings(const struct record_set *base, const struct record_set *next,
                        const struct comparison_options *opt, bool comparable,
                        struct comparison *out)
{
    const struct bench_record **a = xcalloc(base->nbench, sizeof *a);
    const struct bench_record **b = xcalloc(next->nbench, sizeof *b);

    if (!comparable && base->nbench && next->nbench)
        text_add(&out->warnings, "emulated times of two processors are not compared\n");
    for (size_t i = 0; i < base->nbench && comparable; i++) {
        size_t na, nb;

        if (!is_first(base, i))
            continue;
        na = find_all(base, &base->bench[i], a);
        nb = find_all(next, &base->bench[i], b);
        if (nb > 0)
            add_timing(out, a, na, b, nb);
        else if (!opt->common)
            add_presence(out, a[0], true);
    }
    for (size_t i = 0; i < next->nbench && comparable && !opt->common; i++)
        if (is_first(next, i) && find_all(base, &next->bench[i], a) == 0)
            add_presence(out, &next->bench[i], false);
    judge_all(opt, out);
    free(a);
    free(b);
}
