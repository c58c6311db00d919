/* Modules, kernels and launches of the CUDA device. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/cuda.h"
#include "device/cuda_image.h"
#include "device/launch.h"

#define MODULE_MAX_BYTES ((size_t)256 << 20) /* far above any kernel file; bounds the read */
#define JIT_LOG_BYTES    8192
/* What a launch may use without asking (CUDA C++ Programming Guide, "Shared Memory"). */
#define SHARED_WITHOUT_OPTIN (48u * 1024)

struct cuda_kernel {
    struct kernel base; /* base.handle is the cuda_kernel itself */
    struct cu_function *function;
    struct cuda_kernel *next;
    uint32_t dynamic_allowed; /* bytes of dynamic shared memory that the function accepts now */
};

struct cuda_module {
    struct module base;
    struct cu_module *handle;
    struct hash content;
    char flags[256];
    char path[512];
    struct cuda_kernel *kernels;
    char **entries; /* NULL-terminated */
};

/* --- loading ---------------------------------------------------------------------------------- */

/* The first line of the JIT's log that says something; the log is cut there. */
static const char *first_line(char *log)
{
    char *p = log;

    while (isspace((unsigned char)*p))
        p++;
    p[strcspn(p, "\r\n")] = '\0';
    return p;
}

/* Says what to do about a load that failed; `err` holds the driver's own words. */
static void explain_load(const struct cuda_device *d, int result, char *log, struct err *err)
{
    const struct device_info *i = &d->base.info;
    int major = i->cc_major, minor = i->cc_minor;
    char said[512];

    snprintf(said, sizeof said, "%.500s", err->text);
    switch (result) {
    case CU_NO_BINARY_FOR_GPU:
        err_set(
            err, ERR_MISSING,
            "%s; %s (%s) has compute capability %d.%d and the file holds no code for it. Machine "
            "code runs on its own major version from its own minor up, and code for an 'a' target "
            "(sm_120a) on that very one alone: build for sm_%d%d, or add PTX "
            "(nvcc -gencode arch=compute_%d%d,code=[sm_%d%d,compute_%d%d])",
            said, i->spec, i->name, major, minor, major, minor, major, minor, major, minor, major,
            minor);
        break;
    case CU_INVALID_PTX:
        err_set(err, ERR_INPUT, "%s: %s", said, first_line(log));
        break;
    case CU_UNSUPPORTED_PTX_VERSION:
        err_set(err, ERR_MISSING,
                "%s: the PTX is newer than this driver (%s): build it with an older toolkit, or "
                "build machine code for sm_%d%d",
                said, i->driver, major, minor);
        break;
    case CU_INVALID_IMAGE:
        err_set(err, ERR_INPUT, "%s: not a cubin, fatbin or PTX file, or corrupt", said);
        break;
    default:
        break;
    }
}

static int load_image(struct cuda_device *d, const struct text *image, struct cu_module **out,
                      struct err *err)
{
    char *log = xcalloc(JIT_LOG_BYTES, 1);
    int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    /* The driver's convention: an option of integer type is passed as the pointer's value. */
    void *values[] = {log, (void *)(uintptr_t)(JIT_LOG_BYTES - 1)};
    int result = d->api.module_load_data_ex(out, image->data, 2, options, values);
    int rc = cuda_status(d, "cuModuleLoadDataEx", result, err);

    if (rc < 0)
        explain_load(d, result, log, err);
    free(log);
    return rc;
}

static int list_entries(struct cuda_device *d, struct cuda_module *m, struct err *err)
{
    struct cu_function **functions;
    unsigned count = 0;
    int rc;

    if (cuda_status(d, "cuModuleGetFunctionCount",
                    d->api.module_get_function_count(&count, m->handle), err) < 0)
        return -1;
    functions = xcalloc(count + 1, sizeof *functions);
    m->entries = xcalloc(count + 1, sizeof *m->entries);
    rc = cuda_status(d, "cuModuleEnumerateFunctions",
                     d->api.module_enumerate_functions(functions, count, m->handle), err);
    for (unsigned i = 0; i < count && rc == 0; i++) {
        const char *name = NULL;

        rc = cuda_status(d, "cuFuncGetName", d->api.func_get_name(&name, functions[i]), err);
        if (rc == 0)
            m->entries[i] = xstrdup(name);
    }
    free(functions);
    return rc;
}

/* What scripts/build-cuda-module noted in the first line of MODULE.ptxas beside the module. */
static void read_flags(const char *path, char *out, size_t n)
{
    const char *dot = strrchr(path, '.');
    struct err ignored = ERR_INIT;
    struct text name, log;

    text_init(&name);
    text_init(&log);
    text_addf(&name, "%.*s.ptxas", (int)(dot ? dot - path : 0), path);
    out[0] = '\0';
    if (file_exists(name.data) && !file_read(name.data, MODULE_MAX_BYTES, &log, &ignored) &&
        !strncmp(log.data, "# ", 2))
        snprintf(out, n, "%.*s", (int)strcspn(log.data + 2, "\n"), log.data + 2);
    text_release(&name);
    text_release(&log);
}

int cuda_module_load(struct device *dev, const char *path, struct module **out, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);
    struct cuda_module *m;
    struct text image;
    int rc = -1;

    *out = NULL;
    if (cuda_enter(d, err) < 0)
        return -1;
    m = xcalloc(1, sizeof *m);
    m->base.device = dev;
    snprintf(m->path, sizeof m->path, "%s", path);
    text_init(&image);
    if (file_read(path, MODULE_MAX_BYTES, &image, err) < 0 ||
        cuda_image_check(path, image.data, image.len, err) < 0)
        goto done;
    m->content = hash_bytes(image.data, image.len);
    read_flags(path, m->flags, sizeof m->flags);
    if (load_image(d, &image, &m->handle, err) < 0 || list_entries(d, m, err) < 0) {
        err_context(err, "%s", path);
        goto done;
    }
    rc = 0;
done:
    text_release(&image);
    if (rc < 0)
        cuda_module_unload(&m->base);
    else
        *out = &m->base;
    return rc;
}

void cuda_module_unload(struct module *base)
{
    struct cuda_module *m = (struct cuda_module *)base;
    struct cuda_device *d = cuda_of(m->base.device);
    struct err ignored = ERR_INIT; /* a lost context has unloaded it already */
    struct cuda_kernel *next;

    if (m->handle && !cuda_enter(d, &ignored))
        cuda_status(d, "cuModuleUnload", d->api.module_unload(m->handle), &ignored);
    for (struct cuda_kernel *k = m->kernels; k; k = next) {
        next = k->next;
        free(k);
    }
    for (char **e = m->entries; e && *e; e++)
        free(*e);
    free(m->entries);
    free(m);
}

const char *const *cuda_module_entries(struct module *base)
{
    return (const char *const *)((struct cuda_module *)base)->entries;
}

/* --- kernels ---------------------------------------------------------------------------------- */

static int read_resources(struct cuda_device *d, struct cu_function *f, struct cuda_kernel *k,
                          struct err *err)
{
    struct {
        int attribute;
        uint32_t *out;
    } wanted[] = {
        {CU_FN_MAX_THREADS_PER_BLOCK, &k->base.max_threads},
        {CU_FN_SHARED_BYTES, &k->base.static_shared},
        {CU_FN_LOCAL_BYTES, &k->base.local_bytes},
        {CU_FN_REGISTERS, &k->base.registers},
        {CU_FN_MAX_DYNAMIC_SHARED_BYTES, &k->dynamic_allowed},
    };

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        int value = 0;

        if (cuda_status(d, "cuFuncGetAttribute",
                        d->api.func_get_attribute(&value, wanted[i].attribute, f), err) < 0)
            return -1;
        *wanted[i].out = value > 0 ? (uint32_t)value : 0;
    }
    return 0;
}

/* The driver knows how large each parameter is, not what it means. It answers
   CUDA_ERROR_INVALID_VALUE for the first index past the last parameter. */
static int read_signature(struct cuda_device *d, struct cu_function *f, struct kernel *k,
                          struct err *err)
{
    for (k->nparams = 0;; k->nparams++) {
        size_t offset = 0, bytes = 0;
        int result = d->api.func_get_param_info(f, k->nparams, &offset, &bytes);

        if (result == CU_INVALID_VALUE)
            return 0;
        if (cuda_status(d, "cuFuncGetParamInfo", result, err) < 0)
            return -1;
        if (k->nparams == KERNEL_MAX_PARAMS)
            return err_set(err, ERR_INPUT, "more than %d parameters", KERNEL_MAX_PARAMS);
        if (bytes > UINT8_MAX)
            return err_set(err, ERR_INPUT, "parameter %u has %zu bytes: a struct by value",
                           k->nparams, bytes);
        k->param_size[k->nparams] = (uint8_t)bytes;
        k->param_kind[k->nparams] = '?';
    }
}

int cuda_module_kernel(struct module *base, const char *entry, struct kernel **out, struct err *err)
{
    struct cuda_module *m = (struct cuda_module *)base;
    struct cuda_device *d = cuda_of(m->base.device);
    struct cu_function *f = NULL;
    struct cuda_kernel *k;
    int result;

    *out = NULL;
    for (k = m->kernels; k; k = k->next)
        if (!strcmp(k->base.entry, entry)) {
            *out = &k->base;
            return 0;
        }
    if (cuda_enter(d, err) < 0)
        return -1;
    result = d->api.module_get_function(&f, m->handle, entry);
    if (result == CU_NOT_FOUND)
        return err_set(err, ERR_MISSING, "module %s has no entry %s", m->path, entry);
    if (cuda_status(d, "cuModuleGetFunction", result, err) < 0)
        return err_context(err, "%s: %s", m->path, entry);
    k = xcalloc(1, sizeof *k);
    k->base.device = m->base.device;
    k->base.module = &m->base;
    k->base.content = m->content;
    k->base.handle = k;
    k->function = f;
    snprintf(k->base.entry, sizeof k->base.entry, "%s", entry);
    snprintf(k->base.module_path, sizeof k->base.module_path, "%s", m->path);
    snprintf(k->base.flags, sizeof k->base.flags, "%s", m->flags);
    if (read_resources(d, f, k, err) < 0 || read_signature(d, f, &k->base, err) < 0) {
        free(k);
        return err_context(err, "%s: %s", m->path, entry);
    }
    k->next = m->kernels;
    m->kernels = k;
    *out = &k->base;
    return 0;
}

/* --- launch ----------------------------------------------------------------------------------- */

/* Results that cuLaunchKernel and cuFuncSetAttribute give for the request itself, before
   anything ran. */
static int refused(struct cuda_device *d, const char *call, int result, struct err *err)
{
    int rc = cuda_status(d, call, result, err);

    if (result == CU_INVALID_VALUE || result == CU_LAUNCH_OUT_OF_RESOURCES)
        err->kind = ERR_REFUSED;
    return rc;
}

static int allow_shared(struct cuda_device *d, struct cuda_kernel *k, uint32_t bytes,
                        struct err *err)
{
    int result;

    if (bytes <= k->dynamic_allowed || bytes + k->base.static_shared <= SHARED_WITHOUT_OPTIN)
        return 0;
    result = d->api.func_set_attribute(k->function, CU_FN_MAX_DYNAMIC_SHARED_BYTES, (int)bytes);
    if (refused(d, "cuFuncSetAttribute", result, err) < 0)
        return err_context(err, "%u bytes of dynamic shared memory", bytes);
    k->dynamic_allowed = bytes;
    return 0;
}

int cuda_launch(struct device *dev, const struct launch *l, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);
    struct cuda_kernel *k = l->kernel->handle;
    struct launch args = *l; /* the driver's interface takes pointers to non-const */
    void *params[KERNEL_MAX_PARAMS];
    int result;

    if (cuda_enter(d, err) < 0)
        return -1;
    if (allow_shared(d, k, (uint32_t)l->shared, err) < 0)
        return -1;
    for (unsigned i = 0; i < l->nargs; i++)
        params[i] = args.arg[i].bytes;
    result =
        d->api.launch_kernel(k->function, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y,
                             l->block.z, (uint32_t)l->shared, d->stream, params, NULL);
    return refused(d, "cuLaunchKernel", result, err);
}
