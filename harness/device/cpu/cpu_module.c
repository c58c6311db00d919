/* Kernel modules: shared objects made by scripts/build-cpu-module. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cpu/cpu_device.h"

/* On every architecture; more is dynamic (CUDA C++ Programming Guide, "Technical Specifications per
   Compute Capability"). */
#define STATIC_SHARED_MAX (48 * 1024)

static struct cpu_module *module_of(struct module *m)
{
    return (struct cpu_module *)(void *)m;
}

/* A static shared variable belongs to the function in its linkage name, _ZZ<encoding>E<name>. */
static bool belongs_to(const struct cpu_symbol *s, const char *entry)
{
    char own[160], plain[160];

    snprintf(own, sizeof own, "_ZZ%zu%sE", strlen(entry), entry);
    snprintf(plain, sizeof plain, "_ZZ%sE", entry + (strncmp(entry, "_Z", 2) ? 0 : 2));
    return !strncmp(s->name, own, strlen(own)) || !strncmp(s->name, plain, strlen(plain));
}

static bool belongs_to_a_kernel(const struct cpu_module_desc *d, const struct cpu_symbol *s)
{
    for (uint32_t k = 0; k < d->nkernels; k++)
        if (belongs_to(s, d->entries[k].name))
            return true;
    return false;
}

/* Static shared memory of a kernel. Variables of device functions count for every kernel of the
   module, which is at most too much; *surely leaves them out where they may be another's. */
static uint64_t static_shared(const struct cpu_module_desc *d, const char *entry, uint64_t *surely)
{
    uint64_t sum = 0;

    *surely = 0;
    for (const struct cpu_symbol *s = d->shared; s->name; s++) {
        bool own = belongs_to(s, entry);

        if (!own && belongs_to_a_kernel(d, s))
            continue;
        sum += s->bytes;
        *surely += own || d->nkernels == 1 ? s->bytes : 0;
    }
    return sum;
}

static int fill_kernel(struct cpu_module *m, uint32_t i, struct hash content, struct err *err)
{
    const struct cpu_kernel_desc *d = m->desc->kernels[i];
    struct kernel *k = &m->kernels[i];
    uint64_t shared, surely;

    if (d->nparams > KERNEL_MAX_PARAMS)
        return err_set(err, ERR_INPUT, "%s: kernel %s has %u parameters, at most %d are supported",
                       m->path, d->name, d->nparams, KERNEL_MAX_PARAMS);
    k->device = m->base.device;
    k->module = &m->base;
    snprintf(k->entry, sizeof k->entry, "%s", m->desc->entries[i].name);
    k->nparams = d->nparams;
    for (uint32_t p = 0; p < d->nparams; p++) {
        if (d->sizes[p] > UINT8_MAX)
            return err_set(err, ERR_INPUT, "%s: parameter %u of kernel %s has %u bytes", m->path, p,
                           d->name, d->sizes[p]);
        k->param_size[p] = (uint8_t)d->sizes[p];
        k->param_kind[p] = d->kinds[p];
    }
    shared = static_shared(m->desc, k->entry, &surely);
    if (surely > STATIC_SHARED_MAX)
        return err_set(err, ERR_INPUT,
                       "%s: kernel %s has %llu bytes of static shared memory, at most %d: ptxas "
                       "refuses more (take dynamic shared memory)",
                       m->path, d->name, (unsigned long long)surely, STATIC_SHARED_MAX);
    k->static_shared = shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared;
    k->max_threads = d->max_threads;
    k->content = content;
    snprintf(k->module_path, sizeof k->module_path, "%s", m->path);
    snprintf(k->flags, sizeof k->flags, "%s", m->desc->flags);
    k->handle = (void *)(uintptr_t)d;
    m->entries[i] = k->entry;
    return 0;
}

/* Nobody may touch what lies around static shared variables; afterwards it is ordinary memory. */
static void fence_shared(const struct cpu_module *m, bool set)
{
    for (const struct cpu_symbol *s = m->desc->shared; s->name; s++) {
        const unsigned char *before = (const unsigned char *)s->address - CPU_SHARED_FENCE;
        const unsigned char *after = (const unsigned char *)s->address + s->bytes;

        if (set) {
            cpu_sanitizer_forbid(before, CPU_SHARED_FENCE);
            cpu_sanitizer_forbid(after, CPU_SHARED_FENCE);
        } else {
            cpu_sanitizer_allow(before, CPU_SHARED_FENCE);
            cpu_sanitizer_allow(after, CPU_SHARED_FENCE);
        }
    }
}

static const char *build_name(const char *sanitizer)
{
    return !strcmp(sanitizer, "address")  ? "the AddressSanitizer build (make asan)"
           : !strcmp(sanitizer, "thread") ? "the ThreadSanitizer build (make tsan)"
                                          : "the ordinary build";
}

static int load_shared_object(struct cpu_module *m, struct err *err)
{
    char path[520];

    if (cpu_elf_check(m->path, err) < 0)
        return -1;
    /* a name without a slash would be searched for in the library folders */
    snprintf(path, sizeof path, "%s%s", strchr(m->path, '/') ? "" : "./", m->path);
    m->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->dl)
        return err_set(err, ERR_INPUT, "%s: cannot be loaded: %s; " CPU_MAKE_MODULE, m->path,
                       dlerror());
    m->desc = dlsym(m->dl, "cpu_module");
    if (!m->desc)
        return err_set(err, ERR_INPUT,
                       "%s: not a kernel module for the CPU device; " CPU_MAKE_MODULE, m->path);
    if (m->desc->abi != CPU_ABI)
        return err_set(err, ERR_INPUT,
                       "%s: built for version %u of the CPU device, this is %d: rebuild it with "
                       "scripts/build-cpu-module",
                       m->path, m->desc->abi, CPU_ABI);
    if (strcmp(m->desc->sanitizer, CPU_SANITIZER) != 0)
        return err_set(err, ERR_INPUT,
                       "%s: a module for %s, this is %s: rebuild it with scripts/build-cpu-module",
                       m->path, build_name(m->desc->sanitizer), build_name(CPU_SANITIZER));
    dlinfo(m->dl, RTLD_DI_TLS_MODID, &m->tls_module);
    return 0;
}

int cpu_module_load(struct device *dev, const char *path, struct module **out, struct err *err)
{
    struct cpu_module *m = xcalloc(1, sizeof *m);
    struct hash content;

    m->base.device = dev;
    m->id = ++cpu_device_of(dev)->modules;
    if (snprintf(m->path, sizeof m->path, "%s", path) >= (int)sizeof m->path) {
        err_set(err, ERR_INPUT, "%.100s...: path too long", path);
        goto fail;
    }
    if (hash_file(path, &content, err) < 0 || load_shared_object(m, err) < 0)
        goto fail;
    m->kernels = xcalloc(m->desc->nkernels + 1, sizeof *m->kernels);
    m->entries = xcalloc(m->desc->nkernels + 1, sizeof *m->entries);
    for (uint32_t i = 0; i < m->desc->nkernels; i++)
        if (fill_kernel(m, i, content, err) < 0)
            goto fail;
    if (CPU_SANITIZED)
        fence_shared(m, true);
    *out = &m->base;
    return 0;
fail:
    cpu_module_unload(&m->base);
    return -1;
}

void cpu_module_unload(struct module *base)
{
    struct cpu_module *m = module_of(base);

    if (CPU_SANITIZED && m->kernels) /* loaded to the end, or nearly */
        fence_shared(m, false);
    if (m->dl)
        dlclose(m->dl);
    free(m->kernels);
    free(m->entries);
    free(m);
}

int cpu_module_kernel(struct module *base, const char *entry, struct kernel **out, struct err *err)
{
    struct cpu_module *m = module_of(base);

    for (uint32_t i = 0; i < m->desc->nkernels; i++) {
        if (strcmp(m->kernels[i].entry, entry) != 0)
            continue;
        *out = &m->kernels[i];
        return 0;
    }
    return err_set(err, ERR_MISSING, "%s: no kernel %s in this module", m->path, entry);
}

const char *const *cpu_module_entries(struct module *base)
{
    return module_of(base)->entries;
}

struct tls_query {
    size_t module;
    unsigned char *begin;
    size_t bytes;
};

static int find_tls(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct tls_query *q = ctx;

    (void)size;
    if (info->dlpi_tls_modid != q->module)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            q->begin = info->dlpi_tls_data;
            q->bytes = info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

/* Fenced variables lie anywhere in the module's data: from the first to the last. */
static void span_of_shared(const struct cpu_module *m, unsigned char **begin, size_t *bytes)
{
    unsigned char *end = NULL;

    for (const struct cpu_symbol *s = m->desc->shared; s->name; s++) {
        unsigned char *p = s->address;

        *begin = !*begin || p < *begin ? p : *begin;
        end = !end || p + s->bytes > end ? p + s->bytes : end;
    }
    *bytes = (size_t)(end - *begin);
}

void cpu_module_shared(const struct cpu_module *m, unsigned char **begin, size_t *bytes)
{
    struct tls_query q = {.module = m->tls_module};

    *begin = NULL;
    *bytes = 0;
    if (CPU_SANITIZED) {
        span_of_shared(m, begin, bytes);
        return;
    }
    if (!q.module)
        return;
    (void)m->desc->static_shared(); /* allocates this thread's block, outside any kernel */
    dl_iterate_phdr(find_tls, &q);
    *begin = q.begin;
    *bytes = q.begin ? q.bytes : 0;
}
