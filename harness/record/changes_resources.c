#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "record/changes.h"
#include "record/schema.h"

/* The keys of a resources record and of a kernel stamp whose change is reported. */
static const char *const watched[] = {
    "registers",      "spill_store_bytes", "spill_load_bytes",
    "stack_bytes",    "local_bytes",       "static_shared",
    "dynamic_shared", "max_threads",       "grid",
    "block",          "blocks_per_sm",     "occupancy",
    "waves",          "limiter",           "refused",
};

static bool is_watched(const char *key)
{
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        if (strcmp(watched[i], key) == 0)
            return true;
    return false;
}

/* Where a change is reported. */
struct place {
    const char *module, *entry, *arch, *case_text;
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

        if (!is_watched(f->key))
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

/* What the device's driver said of the kernels that a case launched. */
static void compare_stamps(const struct verify_record *base, const struct verify_record *next,
                           struct comparison *out)
{
    for (unsigned i = 0; i < base->nkernels; i++) {
        const struct kernel_stamp *a = &base->kernel[i];
        const struct kernel_stamp *b = find_stamp(next->kernel, next->nkernels, a->entry);
        struct place place = {a->module, a->entry, "", base->case_text};

        if (b)
            compare_fields(schema_kernel, a, b, &place, out);
    }
}

void changes_of_resources(const struct record_set *base, const struct record_set *next,
                          struct comparison *out)
{
    for (size_t i = 0; i < base->nresources; i++) {
        const struct resources_record *a = &base->resources[i];
        const struct resources_record *b = find(next, a);
        struct place place = {a->module, a->entry, a->arch, a->case_text};

        if (find(base, a) != a || !b)
            continue;
        out->resources_compared++;
        compare_fields(schema_resources, a, b, &place, out);
    }
    for (size_t i = 0; i < base->nverify; i++) {
        const struct verify_record *a = &base->verify[i];
        const struct verify_record *b = last_verify(next, a->case_text);

        if (b && last_verify(base, a->case_text) == a)
            compare_stamps(a, b, out);
    }
}
