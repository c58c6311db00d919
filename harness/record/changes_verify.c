#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "record/changes.h"

/* From best to worst. A case that is skipped is no proof, one that fails is a proof to the
   contrary. */
static int badness(enum verdict v)
{
    switch (v) {
    case VERDICT_PASS:
        return 0;
    case VERDICT_MISTRUST:
        return 1;
    case VERDICT_SKIP:
        return 2;
    case VERDICT_FAIL:
        return 3;
    case VERDICT_ERROR:
        return 4;
    }
    return 4;
}

static void add_verdict(struct comparison *out, const struct verify_record *base,
                        const struct verify_record *next)
{
    bool worse = !next || (base && badness(next->verdict) > badness(base->verdict));

    /* A new case that does not pass is a finding of its own: nothing better was there
       before, but the suite is no longer clean. */
    if (!base && next)
        worse = next->verdict != VERDICT_PASS && next->verdict != VERDICT_SKIP;
    out->verdict = xrealloc(out->verdict, out->nverdicts + 1, sizeof *out->verdict);
    out->verdict[out->nverdicts++] =
        (struct verdict_change){.base = base, .next = next, .worse = worse};
}

/* NaN equals NaN here: "not measured" on both sides is no change. */
static bool same_number(double a, double b)
{
    return a == b || (a != a && b != b);
}

const struct output_stat *find_output(const struct verify_record *r, const char *buffer)
{
    for (unsigned i = 0; i < r->noutputs; i++)
        if (strcmp(r->output[i].buffer, buffer) == 0)
            return &r->output[i];
    return NULL;
}

/* What the base's PASS proved and the new one's does not, into `less`; false when there is no such
   thing. Bits and ratios cannot show it: what is not compared has neither. */
static bool proves_less(const struct verify_record *base, const struct verify_record *next,
                        char *less, size_t size)
{
    for (unsigned i = 0; i < base->noutputs; i++) {
        const struct output_stat *a = &base->output[i];
        const struct output_stat *b = find_output(next, a->buffer);

        if (b && b->compared >= a->compared)
            continue;
        if (!b)
            snprintf(less, size, "%.60s is no longer compared", a->buffer);
        else
            snprintf(less, size, "of %.60s %llu elements are compared, they were %llu", a->buffer,
                     (unsigned long long)b->compared, (unsigned long long)a->compared);
        return true;
    }
    for (int c = 0; c < CHECK_COUNT; c++)
        if (base->checks_run & ~next->checks_run & (uint32_t)1 << c) {
            snprintf(less, size, "the check %s is no longer carried out",
                     check_name((enum check)c));
            return true;
        }
    return false;
}

static void note_less_proof(const struct verify_record *base, const struct verify_record *next,
                            struct comparison *out)
{
    struct verdict_change *v;
    char less[sizeof v->less];

    if (base->verdict != VERDICT_PASS || next->verdict != VERDICT_PASS ||
        !proves_less(base, next, less, sizeof less))
        return;
    add_verdict(out, base, next);
    v = &out->verdict[out->nverdicts - 1];
    v->worse = true;
    memcpy(v->less, less, sizeof less);
}

static void compare_outputs(const struct verify_record *base, const struct verify_record *next,
                            bool same_bits, struct comparison *out)
{
    for (unsigned i = 0; i < base->noutputs; i++) {
        const struct output_stat *a = &base->output[i];
        const struct output_stat *b = find_output(next, a->buffer);
        struct output_change change = {.case_text = base->case_text, .base = a, .next = b};

        if (!b)
            continue;
        change.ratio = !same_number(a->ratio_likely, b->ratio_likely) ||
                       !same_number(a->ratio_worst, b->ratio_worst) ||
                       !same_number(a->max_error, b->max_error);
        change.bits = strcmp(a->bits, b->bits) != 0;
        change.worse = change.bits && same_bits;
        if (!change.ratio && !change.bits)
            continue;
        out->output = xrealloc(out->output, out->noutputs + 1, sizeof *out->output);
        out->output[out->noutputs++] = change;
    }
}

/* True for the last record of its case: the one that counts. */
static bool counts(const struct record_set *set, size_t i)
{
    return last_verify(set, set->verify[i].case_text) == &set->verify[i];
}

void changes_of_verdicts(const struct record_set *base, const struct record_set *next,
                         const struct comparison_options *opt, struct comparison *out)
{
    for (size_t i = 0; i < base->nverify; i++) {
        const struct verify_record *a = &base->verify[i];
        const struct verify_record *b = last_verify(next, a->case_text);

        if (!counts(base, i))
            continue;
        if (!b) {
            if (!opt->common)
                add_verdict(out, a, NULL);
            continue;
        }
        out->cases_compared++;
        if (a->verdict != b->verdict)
            add_verdict(out, a, b);
        note_less_proof(a, b, out);
        compare_outputs(a, b, opt->same_bits, out);
    }
    for (size_t i = 0; i < next->nverify && !opt->common; i++)
        if (counts(next, i) && !last_verify(base, next->verify[i].case_text))
            add_verdict(out, NULL, &next->verify[i]);
}
