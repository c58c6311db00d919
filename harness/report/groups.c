#include "report/groups.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- devices ---------------------------------------------------------------------------------- */

/* Letters and digits of the name, runs of anything else as one dash. */
static void make_slug(const struct device_stamp *d, char *out, size_t n)
{
    size_t len = 0;

    if (d->emulated) {
        memcpy(out, "cpu", 4);
        return;
    }
    for (const char *p = d->name; *p && len + 1 < n; p++) {
        if (isalnum((unsigned char)*p))
            out[len++] = (char)tolower((unsigned char)*p);
        else if (len > 0 && out[len - 1] != '-')
            out[len++] = '-';
    }
    while (len > 0 && out[len - 1] == '-')
        len--;
    out[len] = '\0';
    if (len == 0)
        memcpy(out, "device", 7);
}

/* Two devices may make the same slug ("GPU A" and "GPU-A"): later ones get a number. */
static void make_unique(struct groups *g, size_t i)
{
    struct device_group *me = &g->group[i];

    for (size_t k = 0; k < i; k++)
        if (strcmp(g->group[k].slug, me->slug) == 0) {
            size_t len = strlen(me->slug);

            if (len > sizeof me->slug - 12)
                len = sizeof me->slug - 12;
            snprintf(me->slug + len, sizeof me->slug - len, "-%zu", i + 1);
            return;
        }
}

static struct device_group *group_of(struct groups *g, const struct device_stamp *d)
{
    struct device_group *made;

    for (size_t i = 0; i < g->count; i++)
        if (g->group[i].device->emulated == d->emulated &&
            strcmp(g->group[i].device->name, d->name) == 0)
            return &g->group[i];
    g->group = xrealloc(g->group, g->count + 1, sizeof *g->group);
    made = &g->group[g->count++];
    *made = (struct device_group){.device = d};
    make_slug(d, made->slug, sizeof made->slug);
    make_unique(g, g->count - 1);
    return made;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Appends to an array of pointers. */
#define PUSH(list, count, item)                                                                    \
    do {                                                                                           \
        (list) = xrealloc((list), (count) + 1, sizeof *(list));                                    \
        (list)[(count)++] = (item);                                                                \
    } while (0)

static void add_verify(struct device_group *g, const struct verify_record *r)
{
    for (size_t i = 0; i < g->nverify; i++)
        if (strcmp(g->verify[i]->case_text, r->case_text) == 0) {
            g->verify[i] = r;
            return;
        }
    PUSH(g->verify, g->nverify, r);
}

static void add_bench(struct device_group *g, const struct bench_record *r)
{
    for (size_t i = 0; i < g->nbench; i++)
        if (g->bench[i]->temperature == r->temperature &&
            strcmp(g->bench[i]->case_text, r->case_text) == 0) {
            g->bench[i] = r;
            return;
        }
    PUSH(g->bench, g->nbench, r);
}

static void add_ceiling(struct device_group *g, const struct ceiling_record *r)
{
    for (size_t i = 0; i < g->nceilings; i++)
        if (strcmp(g->ceiling[i]->name, r->name) == 0) {
            g->ceiling[i] = r;
            return;
        }
    PUSH(g->ceiling, g->nceilings, r);
}

static int by_case(const void *a, const void *b)
{
    const struct bench_record *x = *(const struct bench_record *const *)a;
    const struct bench_record *y = *(const struct bench_record *const *)b;
    int order = strcmp(x->case_text, y->case_text);

    return order != 0 ? order : (int)x->temperature - (int)y->temperature;
}

/* --- the whole -------------------------------------------------------------------------------- */

void groups_make(const struct record_set *set, struct groups *out)
{
    *out = (struct groups){.count = 0};
    for (size_t i = 0; i < set->nruns; i++) {
        struct device_group *g = group_of(out, &set->run[i].device);

        PUSH(g->run, g->nruns, &set->run[i]);
    }
    for (size_t i = 0; i < set->nverify; i++)
        add_verify(group_of(out, &set->run[set->verify_run[i]].device), &set->verify[i]);
    for (size_t i = 0; i < set->nbench; i++)
        add_bench(group_of(out, &set->run[set->bench_run[i]].device), &set->bench[i]);
    for (size_t i = 0; i < set->nceilings; i++)
        add_ceiling(group_of(out, &set->run[set->ceiling_run[i]].device), &set->ceiling[i]);
    for (size_t i = 0; i < out->count; i++)
        if (out->group[i].nbench > 1)
            qsort(out->group[i].bench, out->group[i].nbench, sizeof(void *), by_case);
}

void groups_release(struct groups *g)
{
    for (size_t i = 0; i < g->count; i++) {
        free(g->group[i].run);
        free(g->group[i].verify);
        free(g->group[i].bench);
        free(g->group[i].ceiling);
    }
    free(g->group);
    *g = (struct groups){.count = 0};
}

const struct ceiling_record *group_ceiling(const struct device_group *g, const char *name)
{
    for (size_t i = 0; i < g->nceilings; i++)
        if (strcmp(g->ceiling[i]->name, name) == 0)
            return g->ceiling[i];
    return NULL;
}
