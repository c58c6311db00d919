#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "record/changes.h"
#include "record/schema.h"

/* The keys of a resources record and of a kernel stamp whose change is reported; `of_code`: known
   of compiled kernels only. */
static const struct {
    const char *key;
    bool of_code;
} watched[] = {
    {"registers", true},     {"spill_store_bytes", true},
    {"stack_bytes", true},   {"spill_load_bytes", true},
    {"local_bytes", true},   {"static_shared", true},
    {"max_threads", true},   {"dynamic_shared", false},
    {"grid", false},         {"block", false},
    {"blocks_per_sm", true}, {"occupancy", true},
    {"waves", true},         {"limiter", true},
    {"refused", false},
};

static bool is_watched(const char *key, bool has_code)
{
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        if (strcmp(watched[i].key, key) == 0)
            return has_code || !watched[i].of_code;
    return false;
}

/* Where a change is reported. */
struct place {
    const char *module, *entry, *arch, *case_text;
    bool has_code; /* both sides know the compiled kernel */
};

/* A field as number (NAN when it is none) and as text. */
static double field_value(const struct field *f, const void *object, char *text, size_t n)
{
    const char *at = (const char *)object + f->offset;
    uint32_t extent[3];
    uint64_t wide;
    double number = NAN64;

    text[0] = '\0';
    switch (f->type) {
    case FIELD_UINT:
        memcpy(&extent[0], at, sizeof extent[0]);
        number = extent[0];
        break;
    case FIELD_U64:
        memcpy(&wide, at, sizeof wide);
        number = (double)wide;
        break;
    case FIELD_F64:
        memcpy(&number, at, sizeof number);
        break;
    case FIELD_EXTENT:
        memcpy(extent, at, sizeof extent);
        snprintf(text, n, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, extent[0], extent[1], extent[2]);
        break;
    default:
        snprintf(text, n, "%s", at);
        break;
    }
    if (number == number)
        snprintf(text, n, "%.6g", number);
    return number;
}

/* The same change of the same kernel in another case is counted, not listed again. */
static bool counted(struct comparison *out, const struct resource_change *c)
{
    for (size_t i = 0; i < out->nresources; i++) {
        struct resource_change *o = &out->resource[i];

        if (strcmp(o->entry, c->entry) == 0 && strcmp(o->module, c->module) == 0 &&
            strcmp(o->arch, c->arch) == 0 && strcmp(o->what, c->what) == 0 &&
            strcmp(o->base_text, c->base_text) == 0 && strcmp(o->next_text, c->next_text) == 0) {
            o->cases++;
            return true;
        }
    }
    return false;
}

static void compare_fields(const struct field *table, const void *base, const void *next,
                           const struct place *place, struct comparison *out)
{
    for (const struct field *f = table; f->key; f++) {
        struct resource_change c = {.module = place->module,
                                    .entry = place->entry,
                                    .case_text = place->case_text,
                                    .what = f->key,
                                    .cases = 1};

        if (!is_watched(f->key, place->has_code))
            continue;
        c.base = field_value(f, base, c.base_text, sizeof c.base_text);
        c.next = field_value(f, next, c.next_text, sizeof c.next_text);
        if (strcmp(c.base_text, c.next_text) == 0)
            continue;
        snprintf(c.arch, sizeof c.arch, "%s", place->arch);
        c.worse = strcmp(f->key, "refused") == 0 && c.base_text[0] == '\0';
        if (counted(out, &c))
            continue;
        out->resource = xrealloc(out->resource, out->nresources + 1, sizeof *out->resource);
        out->resource[out->nresources++] = c;
    }
}

static const struct resources_record *find(const struct record_set *set,
                                           const struct resources_record *like)
{
    for (size_t i = set->nresources; i-- > 0;) {
        const struct resources_record *r = &set->resources[i];

        if (r->launch == like->launch && strcmp(r->case_text, like->case_text) == 0 &&
            strcmp(r->entry, like->entry) == 0 && strcmp(r->module, like->module) == 0 &&
            strcmp(r->arch, like->arch) == 0)
            return r;
    }
    return NULL;
}

static const struct kernel_stamp *find_stamp(const struct kernel_stamp *list, unsigned count,
                                             const char *entry)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(list[i].entry, entry) == 0)
            return &list[i];
    return NULL;
}

/* The kernels that a case launched, as the device's driver described them. */
struct stamps {
    const char *case_text;
    const struct kernel_stamp *kernel;
    unsigned count;
};

static void compare_stamps(struct stamps base, struct stamps next, struct comparison *out)
{
    for (unsigned i = 0; i < base.count; i++) {
        const struct kernel_stamp *a = &base.kernel[i];
        const struct kernel_stamp *b = find_stamp(next.kernel, next.count, a->entry);
        struct place place = {a->module, a->entry, "", base.case_text, true};

        if (b)
            compare_fields(schema_kernel, a, b, &place, out);
    }
}

static void compare_verified(const struct record_set *base, const struct record_set *next,
                             struct comparison *out)
{
    for (size_t i = 0; i < base->nverify; i++) {
        const struct verify_record *a = &base->verify[i];
        const struct verify_record *b = last_verify(next, a->case_text);

        if (b && last_verify(base, a->case_text) == a)
            compare_stamps((struct stamps){a->case_text, a->kernel, a->nkernels},
                           (struct stamps){b->case_text, b->kernel, b->nkernels}, out);
    }
}

static const struct bench_record *first_bench(const struct record_set *set, const char *case_text)
{
    for (size_t i = 0; i < set->nbench; i++)
        if (strcmp(set->bench[i].case_text, case_text) == 0)
            return &set->bench[i];
    return NULL;
}

/* Cases that are timed but not verified by these records. */
static void compare_timed(const struct record_set *base, const struct record_set *next,
                          struct comparison *out)
{
    for (size_t i = 0; i < base->nbench; i++) {
        const struct bench_record *a = &base->bench[i];
        const struct bench_record *b = first_bench(next, a->case_text);

        if (!b || first_bench(base, a->case_text) != a ||
            (last_verify(base, a->case_text) && last_verify(next, a->case_text)))
            continue;
        compare_stamps((struct stamps){a->case_text, a->kernel, a->nkernels},
                       (struct stamps){b->case_text, b->kernel, b->nkernels}, out);
    }
}

/* A launch that the base does not have and GB10 would refuse. */
static void find_refused(const struct record_set *base, const struct record_set *next,
                         struct comparison *out)
{
    for (size_t i = 0; i < next->nresources; i++) {
        const struct resources_record *b = &next->resources[i];
        struct place place = {b->module, b->entry, b->arch, b->case_text, false};
        struct resources_record before = *b;

        if (!b->refused[0] || find(base, b) || find(next, b) != b)
            continue;
        before.refused[0] = '\0';
        compare_fields(schema_resources, &before, b, &place, out);
    }
}

void changes_of_resources(const struct record_set *base, const struct record_set *next,
                          struct comparison *out)
{
    for (size_t i = 0; i < base->nresources; i++) {
        const struct resources_record *a = &base->resources[i];
        const struct resources_record *b = find(next, a);
        struct place place = {a->module, a->entry, a->arch, a->case_text, false};

        if (find(base, a) != a || !b)
            continue;
        place.has_code = a->content[0] && b->content[0];
        out->resources_compared++;
        compare_fields(schema_resources, a, b, &place, out);
    }
    find_refused(base, next, out);
    compare_verified(base, next, out);
    compare_timed(base, next, out);
}
