#include "measure/judge.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "problem/operator.h"

/* What a check says about the case: text in `out`, or false. */
struct finding {
    char *out;
    size_t n;
};

static void where(const struct buffer *b, size_t i, char text[128])
{
    buffer_index_text(b, i, text, 128);
}

static bool find_inputs(const struct problem *p, const struct evidence *ev, struct finding f)
{
    for (unsigned i = 0; i < p->count; i++) {
        char at[128];
        if (p->buffer[i].role != ROLE_IN || ev->stats[i].kept_bad.count == 0)
            continue;
        where(&p->buffer[i], ev->stats[i].kept_bad.first, at);
        snprintf(f.out, f.n, "the input %s was changed (%zu element%s of the buffer)", at,
                 ev->stats[i].kept_bad.count, plural(ev->stats[i].kept_bad.count));
        return true;
    }
    return false;
}

static bool find_coverage(const struct problem *p, const struct evidence *ev, struct finding f)
{
    for (unsigned i = 0; i < p->count; i++) {
        const struct buffer_stats *s = &ev->stats[i];
        char at[128];
        if (s->unwritten.count == 0)
            continue;
        where(&p->buffer[i], s->unwritten.first, at);
        snprintf(f.out, f.n, "%s was never written (%zu of %zu elements)", at, s->unwritten.count,
                 s->values + s->exacts);
        return true;
    }
    return false;
}

static bool find_keep(const struct problem *p, const struct evidence *ev, struct finding f)
{
    for (unsigned i = 0; i < p->count; i++) {
        const struct buffer_stats *s = &ev->stats[i];
        char at[128];
        if (p->buffer[i].role == ROLE_IN || s->kept_bad.count == 0)
            continue;
        where(&p->buffer[i], s->kept_bad.first, at);
        snprintf(f.out, f.n, "%s must not change but did (%zu of %zu such elements)", at,
                 s->kept_bad.count, s->keeps);
        return true;
    }
    return false;
}

/* The buffer whose worst element is worst of all; for a composition judged stage by stage, the
   first stage that diverged, since the later ones only inherit. -1 when all are within bounds. */
static int pick_golden(const struct problem *p, const struct evidence *ev)
{
    int pick = -1;
    for (unsigned i = 0; i < p->count; i++) {
        const struct buffer_stats *s = &ev->stats[i];
        if (s->value_bad.count == 0 && s->exact_bad.count == 0)
            continue;
        if (p->tc.op->stages != NULL)
            return (int)i;
        if (pick < 0 || s->ratio_likely > ev->stats[pick].ratio_likely)
            pick = (int)i;
    }
    return pick;
}

static bool find_golden(const struct problem *p, const struct evidence *ev, struct finding f)
{
    int pick = pick_golden(p, ev);
    if (pick < 0)
        return false;
    const struct buffer_stats *s = &ev->stats[pick];
    char at[128], nans[64] = "";
    if (s->exact_bad.count > 0) {
        where(&p->buffer[pick], s->exact_bad.first, at);
        snprintf(f.out, f.n,
                 "%s is %.9g, golden %.9g, and must be the same bits (%zu of %zu such elements "
                 "differ)",
                 at, s->exact_value, s->exact_golden, s->exact_bad.count, s->exacts);
        return true;
    }
    where(&p->buffer[pick], s->at, at);
    if (s->nans.count > 0)
        snprintf(nans, sizeof(nans), ", %zu of them NaN", s->nans.count);
    snprintf(f.out, f.n,
             "%s is %.9g, golden %.9g, bound %.3g, error/bound %.3g (%zu of %zu values are out of "
             "bound%s)",
             at, s->value, s->golden, s->bound, s->ratio_likely, s->value_bad.count, s->values,
             nans);
    return true;
}

struct rule {
    enum check check;
    bool (*find)(const struct problem *p, const struct evidence *ev, struct finding f);
};

/* In the order in which they explain one another; those without a function are found by the runner.
 */
static const struct rule rules[] = {
    {CHECK_LAUNCH, NULL},        {CHECK_FENCE, NULL},
    {CHECK_INPUTS, find_inputs}, {CHECK_COVERAGE, find_coverage},
    {CHECK_KEEP, find_keep},     {CHECK_GOLDEN, find_golden},
    {CHECK_REPEAT, NULL},        {CHECK_SCHEDULE, NULL},
    {CHECK_IDENTITY, NULL},
};

static bool find_fail(const struct problem *p, const struct evidence *ev, struct verify_record *rec)
{
    struct finding f = {.out = rec->reason, .n = sizeof(rec->reason)};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const struct rule *r = &rules[i];
        bool found = false;
        if (ev->found[r->check] != NULL) {
            snprintf(f.out, f.n, "%s", ev->found[r->check]);
            found = true;
        } else if (r->find != NULL && ev->stats != NULL) {
            found = r->find(p, ev, f);
        }
        if (!found)
            continue;
        snprintf(rec->failed_check, sizeof(rec->failed_check), "%s", check_name(r->check));
        return true;
    }
    return false;
}

static bool is_blind(const struct buffer_stats *s)
{
    const double few = 1.0 - JUDGE_MOSTLY;
    double told = (double)(s->sharp + s->blind);
    if (told <= few * (double)s->values)
        return false;
    return !(s->bound_norm2 <= s->golden_norm2) || (double)s->sharp < few * told;
}

static bool mistrust_buffer(const struct problem *p, const struct buffer *b,
                            const struct buffer_stats *s, struct finding f)
{
    char at[128];
    if (s->unbounded.count > 0) {
        where(b, s->unbounded.first, at);
        snprintf(f.out, f.n, "the golden of %s has no finite value or bound (%zu of %zu values)",
                 at, s->unbounded.count, s->values);
        return true;
    }
    if (is_blind(s)) {
        snprintf(
            f.out, f.n,
            "the bounds of %s are too wide to prove anything: %.3g of the golden's norm, and only "
            "%zu of %zu values exceed theirs",
            b->name, sqrt(s->bound_norm2 / s->golden_norm2), s->sharp, s->values);
        return true;
    }
    if (s->values + s->exacts > 0 && s->idle == s->values + s->exacts) {
        snprintf(f.out, f.n,
                 "a kernel that does not write %s would pass: what it is to hold is there before",
                 b->name);
        return true;
    }
    size_t zeros = s->exact_zeros > s->zeros ? s->exact_zeros : s->zeros;
    if ((double)zeros > JUDGE_MOSTLY * (double)s->values && !case_declares_zero(&p->tc)) {
        snprintf(f.out, f.n,
                 "%zu of %zu goldens of %s are zero and the case does not ask for zeros", zeros,
                 s->values, b->name);
        return true;
    }
    return false;
}

static bool find_mistrust(const struct problem *p, const struct evidence *ev, struct finding f)
{
    size_t written = 0, kept = 0;
    if (ev->stats == NULL || !(ev->checks_run >> CHECK_GOLDEN & 1u)) {
        snprintf(f.out, f.n, "the outputs were not compared");
        return true;
    }
    for (unsigned i = 0; i < p->count; i++) {
        const struct buffer_stats *s = &ev->stats[i];
        if (p->buffer[i].role == ROLE_IN)
            continue;
        written += s->values + s->exacts;
        kept += s->keeps;
        if (mistrust_buffer(p, &p->buffer[i], s, f))
            return true;
    }
    if (written > 0 || kept > 0)
        return false;
    snprintf(f.out, f.n, "no element is compared");
    return true;
}

void judge(const struct problem *p, const struct evidence *ev, struct verify_record *rec)
{
    rec->checks_run = ev->checks_run;
    rec->reason[0] = rec->failed_check[0] = '\0';
    rec->verdict = VERDICT_PASS;
    if (find_fail(p, ev, rec)) {
        rec->verdict = VERDICT_FAIL;
    } else if (find_mistrust(p, ev, (struct finding){rec->reason, sizeof(rec->reason)})) {
        rec->verdict = VERDICT_MISTRUST;
        snprintf(rec->failed_check, sizeof(rec->failed_check), "%s", check_name(CHECK_GOLDEN));
    }
}

void judge_output(const struct buffer *b, const struct buffer_stats *s, struct output_stat *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->buffer, sizeof(out->buffer), "%s", b->name);
    out->compared = s->values + s->exacts;
    out->max_error = s->max_error;
    out->ratio_likely = s->ratio_likely;
    out->ratio_worst = s->ratio_worst;
    if (s->values == 0)
        return;
    out->zero_share = (double)s->exact_zeros / (double)s->values;
    out->value = s->value;
    out->golden = s->golden;
    out->bound = s->bound;
    where(b, s->at, out->where);
}
