/* A comparison as JSON. */
#include <string.h>

#include "record/codec.h"
#include "report/compare_view.h"

static void number(struct text *out, const char *key, double value)
{
    text_addf(out, ",\"%s\":", key);
    codec_number(out, value);
}

static void string(struct text *out, const char *key, const char *value)
{
    text_addf(out, ",\"%s\":", key);
    codec_text(out, value);
}

static void truth(struct text *out, const char *key, bool value)
{
    text_addf(out, ",\"%s\":%s", key, value ? "true" : "false");
}

/* Opens the next object of an array; every member that follows begins with a comma, so the
   first is fixed. */
static void object(struct text *out, size_t index, const char *key, const char *value)
{
    text_addf(out, "%s{\"%s\":", index ? "," : "", key);
    codec_text(out, value);
}

static void add_timings(const struct comparison *c, struct text *out)
{
    text_add(out, ",\"timings\":[");
    for (size_t i = 0; i < c->ntimings; i++) {
        const struct timing_change *t = &c->timing[i];
        const struct regress_result *r = &t->result;

        object(out, i, "case", t->base->case_text);
        string(out, "temperature", temperature_name(t->base->temperature));
        string(out, "change", change_name(r->change));
        string(out, "reason", r->reason);
        number(out, "base_us", r->base_us);
        number(out, "new_us", r->next_us);
        number(out, "effect", r->effect);
        number(out, "effect_low", r->interval.low);
        number(out, "effect_high", r->interval.high);
        number(out, "p", r->p);
        number(out, "q", r->q);
        number(out, "margin", r->margin);
        number(out, "detectable", r->detectable);
        number(out, "base_rounds", t->base_rounds.count);
        number(out, "new_rounds", t->next_rounds.count);
        truth(out, "interleaved", r->paired);
        truth(out, "same_kernels", t->same_kernels);
        text_add(out, "}");
    }
    text_add(out, "],\"timed_on_one_side\":[");
    for (size_t i = 0; i < c->npresences; i++) {
        object(out, i, "case", c->presence[i].record->case_text);
        string(out, "temperature", temperature_name(c->presence[i].record->temperature));
        truth(out, "vanished", c->presence[i].vanished);
        truth(out, "worse", c->presence[i].worse);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_verdicts(const struct comparison *c, struct text *out)
{
    text_add(out, ",\"verdicts\":[");
    for (size_t i = 0; i < c->nverdicts; i++) {
        const struct verdict_change *v = &c->verdict[i];

        object(out, i, "case", v->base ? v->base->case_text : v->next->case_text);
        string(out, "base", v->base ? verdict_name(v->base->verdict) : "");
        string(out, "new", v->next ? verdict_name(v->next->verdict) : "");
        string(out, "reason", v->next ? v->next->reason : "");
        string(out, "proves_less", v->less);
        truth(out, "worse", v->worse);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_outputs(const struct comparison *c, struct text *out)
{
    text_add(out, ",\"outputs\":[");
    for (size_t i = 0; i < c->noutputs; i++) {
        const struct output_change *o = &c->output[i];

        object(out, i, "case", o->case_text);
        string(out, "buffer", o->base->buffer);
        number(out, "base_ratio", o->base->ratio_likely);
        number(out, "new_ratio", o->next->ratio_likely);
        truth(out, "bits_changed", o->bits);
        truth(out, "worse", o->worse);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_resources(const struct comparison *c, struct text *out)
{
    text_add(out, ",\"resources\":[");
    for (size_t i = 0; i < c->nresources; i++) {
        const struct resource_change *r = &c->resource[i];

        object(out, i, "module", r->module);
        string(out, "entry", r->entry);
        string(out, "arch", r->arch);
        string(out, "case", r->case_text);
        string(out, "what", r->what);
        string(out, "base", r->base_text);
        string(out, "new", r->next_text);
        number(out, "cases", r->cases);
        truth(out, "worse", r->worse);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_warnings(const struct comparison *c, struct text *out)
{
    const char *p = c->warnings.data;

    text_add(out, ",\"warnings\":[");
    while (*p) {
        size_t n = strcspn(p, "\n");
        struct text line;

        text_init(&line);
        text_add_bytes(&line, p, n);
        text_add(out, p == c->warnings.data ? "" : ",");
        codec_text(out, line.data);
        text_release(&line);
        p += n + (p[n] == '\n');
    }
    text_add(out, "]");
}

void comparison_json(const struct comparison *c, struct text *out)
{
    text_addf(out, "{\"worse\":%zu,\"cases_compared\":%zu,\"resources_compared\":%zu",
              comparison_worse(c), c->cases_compared, c->resources_compared);
    add_timings(c, out);
    add_verdicts(c, out);
    add_outputs(c, out);
    add_resources(c, out);
    add_warnings(c, out);
    text_add(out, "}\n");
}
