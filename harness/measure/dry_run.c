#include "measure/dry_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/device_ops.h"
#include "device/launch.h"
#include "measure/occupancy.h"
#include "problem/operator.h"

#define FAKE_BASE   UINT64_C(0x7000000000) /* addresses that nobody follows */
#define FAKE_STRIDE UINT64_C(0x1000000000) /* more than any buffer (PROBLEM_MAX_BYTES) */

struct dry_device {
    struct device base;
    const struct dry_run *run;
    const struct test_case *tc;
    int (*seen)(void *ctx, const struct resources_record *r, struct err *err);
    void *ctx;
    unsigned launches;
    struct launch *told; /* launches that were passed on: one a kernel and geometry */
    unsigned ntold;
    bool stopped; /* by `seen` */
    struct kernel kernel[OPERATOR_MAX_ENTRIES];
};

/* --- the device ------------------------------------------------------------------------------- */

static const struct operator_entry *entry_of(const struct dry_device *d, const struct kernel *k)
{
    return &d->tc->op->entries[k - d->kernel];
}

static void describe(const struct dry_device *d, const struct operator_entry *e,
                     struct resources_record *r)
{
    const struct resources_record *built =
        resources_find(d->run->resources, e->entry, DRY_RUN_ARCH);

    memset(r, 0, sizeof *r);
    if (built)
        *r = *built;
    snprintf(r->module, sizeof r->module, "%s", e->module);
    snprintf(r->entry, sizeof r->entry, "%s", e->entry);
    snprintf(r->arch, sizeof r->arch, "%s", DRY_RUN_ARCH);
    snprintf(r->case_text, sizeof r->case_text, "%s", d->tc->text);
    r->launch = d->launches;
}

static bool same_extent(const struct extent *a, const struct extent *b)
{
    return a->x == b->x && a->y == b->y && a->z == b->z;
}

static bool told_already(struct dry_device *d, const struct launch *l)
{
    for (unsigned i = 0; i < d->ntold; i++) {
        const struct launch *t = &d->told[i];

        if (t->kernel == l->kernel && t->shared == l->shared && same_extent(&t->grid, &l->grid) &&
            same_extent(&t->block, &l->block))
            return true;
    }
    d->told = xrealloc(d->told, d->ntold + 1, sizeof *d->told);
    d->told[d->ntold++] = *l;
    return false;
}

static int dry_launch(struct device *dev, const struct launch *l, struct err *err)
{
    struct dry_device *d = (struct dry_device *)dev;
    struct resources_record r;

    if (told_already(d, l)) {
        d->launches++;
        return 0;
    }
    describe(d, entry_of(d, l->kernel), &r);
    r.static_shared = l->kernel->static_shared;
    r.max_threads = l->kernel->max_threads;
    r.grid[0] = l->grid.x;
    r.grid[1] = l->grid.y;
    r.grid[2] = l->grid.z;
    r.block[0] = l->block.x;
    r.block[1] = l->block.y;
    r.block[2] = l->block.z;
    r.dynamic_shared = l->shared;
    occupancy_fill(&r, d->run->sheet);
    d->launches++;
    d->stopped = d->seen(d->ctx, &r, err) < 0;
    return d->stopped ? -1 : 0;
}

static int dry_copy(struct device *dev, dev_ptr dst, dev_ptr src, size_t bytes, struct err *err)
{
    (void)dev;
    (void)dst;
    (void)src;
    (void)bytes;
    (void)err;
    return 0;
}

static int dry_fill32(struct device *dev, dev_ptr dst, uint32_t word, size_t words, struct err *err)
{
    (void)dev;
    (void)dst;
    (void)word;
    (void)words;
    (void)err;
    return 0;
}

/* A launcher enqueues; whatever else it might call would be a mistake that ends here. */
static const struct device_ops dry_ops = {
    .launch = dry_launch,
    .copy = dry_copy,
    .fill32 = dry_fill32,
};

/* --- a case ----------------------------------------------------------------------------------- */

/* The signature is the CPU module's, which is made from the same source; registers and shared
   memory are what the machine code for GB10 takes. */
static void make_kernel(struct dry_device *d, unsigned i, const struct kernel *from)
{
    struct kernel *k = &d->kernel[i];
    const struct resources_record *built =
        resources_find(d->run->resources, from->entry, DRY_RUN_ARCH);
    uint32_t by_registers;

    *k = *from;
    k->device = &d->base;
    if (!built)
        return;
    k->registers = built->registers;
    k->static_shared = built->static_shared;
    by_registers = occupancy_max_threads(built->registers, &d->run->sheet->sm);
    if (!k->max_threads || k->max_threads > by_registers)
        k->max_threads = by_registers;
}

static int find_kernels(struct dry_device *d, const struct kernel **kernel, struct err *err)
{
    const struct operator_entry *e = d->tc->op->entries;

    for (unsigned i = 0; e[i].entry; i++) {
        struct kernel *k = NULL;
        struct err why = ERR_INIT;

        if (i == OPERATOR_MAX_ENTRIES)
            BUG("operator %s has more than %d entries", d->tc->op->name, OPERATOR_MAX_ENTRIES);
        if (!kernel_set_find(d->run->set, e[i].module, e[i].entry, &k, &why)) {
            make_kernel(d, i, k);
            kernel[i] = &d->kernel[i];
        } else if (!e[i].optional || why.kind != ERR_MISSING) {
            *err = why;
            return -1;
        }
    }
    return 0;
}

/* The entry that the text of a refusal names; the longest, as some begin like others. The
   first when the launcher refused the case as a whole. */
static const struct operator_entry *entry_in(const struct operator_entry *entries, const char *why)
{
    const struct operator_entry *best = &entries[0];
    size_t length = 0;

    for (const struct operator_entry *e = entries; e->entry; e++)
        if (strlen(e->entry) > length && strstr(why, e->entry)) {
            best = e;
            length = strlen(e->entry);
        }
    return best;
}

static int tell_refused(struct dry_device *d, const char *why, struct err *err)
{
    struct resources_record r;

    describe(d, entry_in(d->tc->op->entries, why), &r);
    snprintf(r.refused, sizeof r.refused, "%.255s", why);
    return d->seen(d->ctx, &r, err);
}

static int launch_all(struct dry_device *d, const struct kernel *const *kernel,
                      const struct problem *p, struct err *err)
{
    dev_ptr ptr[PROBLEM_MAX_BUFFERS];
    struct operator_run run = {.problem = p, .device = &d->base, .kernel = kernel, .ptr = ptr};

    for (unsigned i = 0; i < p->count; i++)
        ptr[i] = FAKE_BASE + i * FAKE_STRIDE;
    if (!p->tc.op->launch(&run, err))
        return 0;
    if (d->stopped || err->kind != ERR_REFUSED)
        return -1;
    return tell_refused(d, err->text, err);
}

int dry_run_case(const struct dry_run *run, const struct test_case *tc,
                 int (*seen)(void *ctx, const struct resources_record *r, struct err *err),
                 void *ctx, struct err *err)
{
    const struct kernel *kernel[OPERATOR_MAX_ENTRIES] = {NULL};
    struct dry_device *d = xcalloc(1, sizeof *d);
    struct problem problem;
    int rc;

    d->base.ops = &dry_ops;
    snprintf(d->base.info.spec, sizeof d->base.info.spec, "GB10");
    d->base.info.limits = gb10_limits;
    d->run = run;
    d->tc = tc;
    d->seen = seen;
    d->ctx = ctx;
    problem_init_hollow(&problem, tc);
    rc = find_kernels(d, kernel, err);
    if (rc == 0)
        rc = tc->op->shape(&problem, err);
    if (rc == 0)
        rc = launch_all(d, kernel, &problem, err);
    problem_release(&problem);
    free(d->told);
    free(d);
    return rc < 0 ? err_context(err, "%s", tc->text) : 0;
}
