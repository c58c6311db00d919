#include "measure/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/launch.h"
#include "measure/golden_cache.h"
#include "measure/nvtx.h"
#include "measure/runner_state.h"

/* Not canonical on any 64-bit machine: following it faults. CUDA has no zero-byte allocation whose
   end is guarded, as the CPU device has. */
#define POISON_ADDRESS UINT64_C(0xdeadbeefdeadbee0)

/* --- open and close --------------------------------------------------------------------------- */

static bool is_restored(const struct buffer *b)
{
    return b->bytes > 0 && (b->role == ROLE_INOUT || b->role == ROLE_OUT);
}

static int find_kernels(struct runner *r, struct kernel_set *set, struct err *err)
{
    const struct operator_entry *e = r->problem.tc.op->entries;
    for (unsigned i = 0; e[i].entry != NULL; i++) {
        struct kernel *k = NULL;
        struct err why = ERR_INIT;
        if (i == OPERATOR_MAX_ENTRIES)
            BUG("operator %s has more than %d entries", r->problem.tc.op->name,
                OPERATOR_MAX_ENTRIES);
        if (kernel_set_find(set, e[i].module, e[i].entry, &k, &why) < 0 &&
            !(e[i].optional && why.kind == ERR_MISSING)) {
            *err = why;
            return -1;
        }
        r->kernel[i] = k;
    }
    char note[512];
    if (r->opt.warn != NULL && kernel_set_note(set, note, sizeof(note)))
        r->opt.warn(r->opt.ctx, note);
    return 0;
}

static dev_ptr resolve(const struct runner *r, struct pointer_ref ref)
{
    if (ref.buffer != POINTER_POISON) {
        if (ref.buffer < 0 || (unsigned)ref.buffer >= r->nbuffers)
            BUG("a pointer table refers to buffer %d of %u", ref.buffer, r->nbuffers);
        return r->ptr[ref.buffer] + ref.offset;
    }
    return r->poison.ptr != 0 ? r->poison.ptr : POISON_ADDRESS;
}

/* The pointer tables' contents are known once every buffer has its address. */
static void make_images(struct runner *r)
{
    for (unsigned i = 0; i < r->problem.count; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        r->image[i] = b->init;
        if (b->dtype != DTYPE_PTR)
            continue;
        uint64_t *table = xcalloc(b->count > 0 ? b->count : 1, sizeof(*table));
        for (size_t n = 0; n < b->count; n++)
            table[n] = resolve(r, b->refs[n]);
        r->image[i] = table;
    }
}

static int make_buffers(struct runner *r, struct err *err)
{
    for (unsigned i = 0; i < r->problem.count; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        if (fenced_alloc(r->device, b->bytes, b->name, &r->fenced[i], err) < 0)
            return -1;
        r->nbuffers = i + 1;
        r->ptr[i] = r->fenced[i].ptr;
        r->after[i] = xcalloc(b->bytes > 0 ? b->bytes : 1, 1);
    }
    if (device_info(r->device)->kind == DEVICE_CPU &&
        fenced_alloc(r->device, 0, "poisoned pointer", &r->poison, err) < 0)
        return -1;
    make_images(r);
    return 0;
}

static void see_launch(void *ctx, const struct launch *l)
{
    struct runner *r = ctx;
    const struct kernel *k = l->kernel;
    for (unsigned i = 0; i < r->nseen; i++) /* by name: it may have been loaded again */
        if (strcmp(r->seen[i]->entry, k->entry) == 0)
            return;
    if (r->nseen == RECORD_MAX_KERNELS)
        return;
    struct kernel_stamp *s = &r->stamp[r->nseen];
    const struct operator_entry *e = r->problem.tc.op->entries;
    *s = (struct kernel_stamp){.registers = k->registers,
                               .static_shared = k->static_shared,
                               .local_bytes = k->local_bytes,
                               .max_threads = k->max_threads,
                               .grid = {l->grid.x, l->grid.y, l->grid.z},
                               .block = {l->block.x, l->block.y, l->block.z},
                               .dynamic_shared = l->shared};
    snprintf(s->entry, sizeof(s->entry), "%s", k->entry);
    for (unsigned i = 0; e[i].entry != NULL; i++)
        if (r->kernel[i] == k)
            snprintf(s->module, sizeof(s->module), "%s", e[i].module);
    snprintf(s->flags, sizeof(s->flags), "%s", k->flags);
    hash_hex(k->content, s->content);
    r->seen[r->nseen++] = k;
}

void runner_phase(const struct runner *r, const char *what)
{
    if (r->opt.phase != NULL)
        r->opt.phase(r->opt.ctx, what);
}

/* The case's inputs and what is expected of it. */
static int pose(struct runner *r, struct err *err)
{
    const struct op *op = r->problem.tc.op;
    struct golden_source src = {
        .dir = r->opt.golden_dir,
        .workers = r->opt.workers,
        .warn = r->opt.warn,
        .ctx = r->opt.ctx,
        .only_slow = true,
        .read_only = r->opt.golden_read_only,
    };
    runner_phase(r, "making the inputs");
    if (op->shape(&r->problem, err) < 0)
        return err_context(err, "%s", op->name);
    runner_phase(r, "computing the reference");
    nvtx_phase_begin(r->opt.nvtx, NVTX_REFERENCE, 0);
    int rc = golden_obtain(&r->problem, &src, &r->golden, &r->golden_cached, &r->reference_s, err);
    nvtx_end(r->opt.nvtx);
    return rc;
}

static int prepare(struct runner *r, struct kernel_set *set, struct err *err)
{
    runner_phase(r, "loading the kernels");
    if (find_kernels(r, set, err) < 0)
        return -1;
    if (r->borrows)
        return 0;
    return pose(r, err) < 0 ? -1 : make_buffers(r, err);
}

/* Everything but the kernels and what is seen of them. The copies for the fast restore are made
   first, so that there are none that only one of the two knows. */
static int borrow(struct runner *r, const struct runner *from, const struct test_case *tc,
                  struct err *err)
{
    struct runner own = *r;
    if (strcmp(from->problem.tc.text, tc->text) != 0 || from->device != r->device)
        BUG("the buffers of %s are not those of %s", from->problem.tc.text, tc->text);
    *r = *from;
    r->opt = own.opt;
    r->borrows = true;
    r->nseen = 0;
    for (unsigned i = 0; i < r->nbuffers; i++)
        if (is_restored(&r->problem.buffer[i]) && r->copy[i] == 0)
            return err_set(err, ERR_SYSTEM, "%s was not restored before it was shared",
                           r->problem.buffer[i].name);
    return 0;
}

int runner_open(struct device *dev, struct kernel_set *set, const struct test_case *tc,
                const struct runner_options *opt, struct runner **out, struct err *err)
{
    struct runner *r = xcalloc(1, sizeof(*r));
    r->device = dev;
    r->opt = *opt;
    *out = NULL;
    if (opt->like == NULL)
        problem_init(&r->problem, tc);
    int rc = opt->like == NULL ? 0 : borrow(r, opt->like, tc, err);
    r->watch = (struct launch_watch){.seen = see_launch, .ctx = r};
    if (rc < 0 || prepare(r, set, err) < 0) {
        runner_close(r);
        return -1;
    }
    *out = r;
    return 0;
}

/* A module may be rebuilt while a long run goes on. */
static bool same_code(const struct kernel *a, const struct kernel *b)
{
    return a == NULL || b == NULL ? a == b : hash_equal(a->content, b->content);
}

int runner_rebind(struct runner *r, struct kernel_set *set, struct err *err)
{
    const struct kernel *before[OPERATOR_MAX_ENTRIES];
    memcpy(before, r->kernel, sizeof(before));
    if (find_kernels(r, set, err) < 0)
        return -1;
    for (unsigned i = 0; i < OPERATOR_MAX_ENTRIES; i++)
        if (!same_code(before[i], r->kernel[i]))
            return err_set(err, ERR_INPUT, "the module of %s was changed while it was timed",
                           r->problem.tc.op->entries[i].entry);
    return 0;
}

void runner_close(struct runner *r)
{
    if (r == NULL || r->borrows) {
        free(r);
        return;
    }
    for (unsigned i = 0; i < r->nbuffers; i++) {
        device_free(r->device, r->copy[i]);
        fenced_free(&r->fenced[i]);
        free(r->after[i]);
        if (r->problem.buffer[i].dtype == DTYPE_PTR)
            free(r->image[i]);
    }
    if (r->poison.device != NULL)
        fenced_free(&r->poison);
    golden_release(&r->golden);
    problem_release(&r->problem);
    free(r);
}

/* --- one run ---------------------------------------------------------------------------------- */

static size_t total_bytes(const struct runner *r)
{
    size_t sum = 0;
    for (unsigned i = 0; i < r->nbuffers; i++)
        sum += r->problem.buffer[i].bytes;
    return sum;
}

int runner_restore(struct runner *r, struct err *err)
{
    nvtx_phase_begin(r->opt.nvtx, NVTX_UPLOAD, total_bytes(r));
    int rc = 0;
    for (unsigned i = 0; i < r->nbuffers && rc == 0; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        if (b->bytes > 0 && device_upload(r->device, r->ptr[i], r->image[i], b->bytes, err) < 0)
            rc = err_context(err, "upload of %s", b->name);
    }
    nvtx_end(r->opt.nvtx);
    return rc;
}

int runner_mend(struct runner *r, struct err *err)
{
    for (unsigned i = 0; i < r->nbuffers; i++)
        if (fenced_mend(&r->fenced[i], err) < 0)
            return -1;
    return runner_restore(r, err);
}

static int make_copy(struct runner *r, unsigned i, struct err *err)
{
    const struct buffer *b = &r->problem.buffer[i];
    char label[128];
    snprintf(label, sizeof(label), "image of %s", b->name);
    if (device_alloc(r->device, b->bytes, label, &r->copy[i], err) < 0)
        return -1;
    return device_upload(r->device, r->copy[i], r->image[i], b->bytes, err);
}

int runner_restore_fast(struct runner *r, struct err *err)
{
    for (unsigned i = 0; i < r->nbuffers; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        if (!is_restored(b))
            continue;
        if (r->copy[i] == 0 && make_copy(r, i, err) < 0)
            return err_context(err, "restore of %s", b->name);
        if (device_copy(r->device, r->ptr[i], r->copy[i], b->bytes, err) < 0)
            return err_context(err, "restore of %s", b->name);
    }
    return 0;
}

int runner_launch(struct runner *r, struct err *err)
{
    struct operator_run run = {
        .problem = &r->problem, .device = r->device, .kernel = r->kernel, .ptr = r->ptr};
    device_watch(r->device, &r->watch);
    int rc = r->problem.tc.op->launch(&run, err);
    device_watch(r->device, NULL);
    return rc;
}

int runner_collect(struct runner *r, struct err *err)
{
    if (device_sync(r->device, err) < 0)
        return -1;
    for (unsigned i = 0; i < r->nbuffers; i++) {
        const struct buffer *b = &r->problem.buffer[i];
        if (b->bytes > 0 && device_download(r->device, r->after[i], r->ptr[i], b->bytes, err) < 0)
            return err_context(err, "download of %s", b->name);
    }
    return 0;
}

const struct problem *runner_problem(const struct runner *r)
{
    return &r->problem;
}

void runner_kernels(const struct runner *r, struct kernel_stamp *stamp, unsigned *n)
{
    memcpy(stamp, r->stamp, r->nseen * sizeof(*stamp));
    *n = r->nseen;
}
