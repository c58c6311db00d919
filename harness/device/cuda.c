/* The CUDA device: its primary context, one stream of its own, memory. */
#include "device/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* --- errors and the current context ----------------------------------------------------------- */

int cuda_status(struct cuda_device *d, const char *call, int result, struct err *err)
{
    if (cuda_check(&d->api, call, result, err) == 0)
        return 0;
    if (cuda_is_fault(result) && !d->lost[0])
        snprintf(d->lost, sizeof d->lost, "%.500s", err->text);
    return -1;
}

int cuda_enter(struct cuda_device *d, struct err *err)
{
    if (d->lost[0])
        return err_set(err, ERR_SYSTEM, "%s was lost to an earlier fault (%s); open it again",
                       d->base.info.spec, d->lost);
    return cuda_status(d, "cuCtxSetCurrent", d->api.ctx_set_current(d->context), err);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int cuda_alloc(struct device *dev, size_t bytes, const char *label, dev_ptr *out,
                      struct err *err)
{
    struct cuda_device *d = cuda_of(dev);

    *out = 0;
    if (cuda_enter(d, err) < 0)
        return -1;
    /* cuMemAlloc refuses 0 bytes; an empty buffer still has an address. */
    if (cuda_status(d, "cuMemAlloc", d->api.mem_alloc(out, bytes ? bytes : 1), err) < 0)
        return err_context(err, "%s: %zu bytes", label, bytes);
    return 0;
}

static void cuda_free(struct device *dev, dev_ptr ptr)
{
    struct cuda_device *d = cuda_of(dev);
    struct err ignored = ERR_INIT; /* a lost context has freed everything already */

    if (!cuda_enter(d, &ignored))
        cuda_status(d, "cuMemFree", d->api.mem_free(ptr), &ignored);
}

/* Host memory is pageable and the caller's: wait, so that it may be reused at once. */
static int cuda_transfer_done(struct cuda_device *d, const char *call, int result, struct err *err)
{
    if (cuda_status(d, call, result, err) < 0)
        return -1;
    return cuda_status(d, "cuStreamSynchronize", d->api.stream_synchronize(d->stream), err);
}

static int refuse_in_capture(const struct cuda_device *d, const char *what, struct err *err)
{
    if (d->capturing)
        return err_set(err, ERR_SYSTEM, "%s while a graph is being recorded", what);
    return 0;
}

static int cuda_upload(struct device *dev, dev_ptr dst, const void *src, size_t bytes,
                       struct err *err)
{
    struct cuda_device *d = cuda_of(dev);

    if (cuda_enter(d, err) < 0 || refuse_in_capture(d, "upload", err) < 0)
        return -1;
    if (!bytes)
        return 0;
    return cuda_transfer_done(d, "cuMemcpyHtoDAsync",
                              d->api.memcpy_htod_async(dst, src, bytes, d->stream), err);
}

static int cuda_download(struct device *dev, void *dst, dev_ptr src, size_t bytes, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);

    if (cuda_enter(d, err) < 0 || refuse_in_capture(d, "download", err) < 0)
        return -1;
    if (!bytes)
        return 0;
    return cuda_transfer_done(d, "cuMemcpyDtoHAsync",
                              d->api.memcpy_dtoh_async(dst, src, bytes, d->stream), err);
}

static int cuda_copy(struct device *dev, dev_ptr dst, dev_ptr src, size_t bytes, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);

    if (cuda_enter(d, err) < 0)
        return -1;
    if (!bytes)
        return 0;
    return cuda_status(d, "cuMemcpyDtoDAsync", d->api.memcpy_dtod_async(dst, src, bytes, d->stream),
                       err);
}

static int cuda_fill32(struct device *dev, dev_ptr dst, uint32_t word, size_t words,
                       struct err *err)
{
    struct cuda_device *d = cuda_of(dev);

    if (cuda_enter(d, err) < 0)
        return -1;
    if (!words)
        return 0;
    return cuda_status(d, "cuMemsetD32Async", d->api.memset_d32_async(dst, word, words, d->stream),
                       err);
}

static int cuda_sync(struct device *dev, struct err *err)
{
    struct cuda_device *d = cuda_of(dev);

    if (cuda_enter(d, err) < 0 || refuse_in_capture(d, "wait", err) < 0)
        return -1;
    return cuda_status(d, "cuStreamSynchronize", d->api.stream_synchronize(d->stream), err);
}

/* --- open, close, enumerate ------------------------------------------------------------------- */

static void cuda_close(struct device *dev)
{
    struct cuda_device *d = cuda_of(dev);

    /* Also when the context is lost: the release is what lets it be made anew. */
    if (d->stream)
        d->api.stream_destroy(d->stream);
    if (d->context)
        d->api.primary_ctx_release(d->ordinal);
    cuda_api_close(&d->api);
    free(d);
}

static const struct device_ops cuda_ops = {
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy = cuda_copy,
    .fill32 = cuda_fill32,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .module_kernel = cuda_module_kernel,
    .module_entries = cuda_module_entries,
    .launch = cuda_launch,
    .sync = cuda_sync,
    .event_create = cuda_event_create,
    .event_free = cuda_event_free,
    .event_record = cuda_event_record,
    .event_elapsed_ms = cuda_event_elapsed_ms,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_launch = cuda_graph_launch,
    .graph_free = cuda_graph_free,
    .set_schedule = NULL,
};

static int read_attribute(const struct cuda_api *api, cu_device ordinal, int attribute,
                          uint32_t *out, struct err *err)
{
    int value = 0;

    if (cuda_check(api, "cuDeviceGetAttribute",
                   api->device_get_attribute(&value, attribute, ordinal), err) < 0)
        return err_context(err, "attribute %d", attribute);
    *out = value > 0 ? (uint32_t)value : 0;
    return 0;
}

static int read_limits(const struct cuda_api *api, cu_device ordinal, struct device_info *info,
                       struct err *err)
{
    uint32_t major, minor, l2;
    struct {
        int attribute;
        uint32_t *out;
    } wanted[] = {
        {CU_DEV_CC_MAJOR, &major},
        {CU_DEV_CC_MINOR, &minor},
        {CU_DEV_L2_BYTES, &l2},
        {CU_DEV_SM_COUNT, &info->sm_count},
        {CU_DEV_MAX_THREADS_PER_BLOCK, &info->limits.threads_per_block},
        {CU_DEV_SHARED_PER_BLOCK_OPTIN, &info->limits.shared_per_block},
        {CU_DEV_MAX_BLOCK_DIM_X, &info->limits.block.x},
        {CU_DEV_MAX_BLOCK_DIM_X + 1, &info->limits.block.y},
        {CU_DEV_MAX_BLOCK_DIM_X + 2, &info->limits.block.z},
        {CU_DEV_MAX_GRID_DIM_X, &info->limits.grid.x},
        {CU_DEV_MAX_GRID_DIM_X + 1, &info->limits.grid.y},
        {CU_DEV_MAX_GRID_DIM_X + 2, &info->limits.grid.z},
    };

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (read_attribute(api, ordinal, wanted[i].attribute, wanted[i].out, err) < 0)
            return -1;
    info->cc_major = (int)major;
    info->cc_minor = (int)minor;
    info->l2_bytes = l2;
    return 0;
}

/* "580.95.05, CUDA 13.0". The first line of the file reads "NVRM version: ... Module
   580.95.05  ..."; where it is not there (containers) the API's version must do. */
static void driver_text(const struct cuda_api *api, char *out, size_t n)
{
    FILE *f = fopen("/proc/driver/nvidia/version", "re");
    char line[256] = "", release[32] = "";
    const char *p;

    if (f) {
        if (fgets(line, sizeof line, f) && (p = strstr(line, "Module")))
            for (p += strcspn(p, "0123456789"); *p; p += strcspn(p, " ") + strspn(p, " "))
                if (sscanf(p, "%31[0-9.]", release) == 1 && strchr(release, '.'))
                    break;
        fclose(f);
    }
    snprintf(out, n, "%s%sCUDA %d.%d", release, release[0] ? ", " : "", api->driver_version / 1000,
             api->driver_version % 1000 / 10);
}

static void uuid_text(const struct cuda_api *api, cu_device ordinal, char out[48])
{
    struct cu_uuid u;
    size_t at = 4;

    out[0] = '\0';
    if (api->device_get_uuid(&u, ordinal))
        return;
    memcpy(out, "GPU-", 5);
    for (size_t i = 0; i < sizeof u.bytes; i++)
        at += (size_t)snprintf(out + at, 48 - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u.bytes[i]);
}

static int describe(const struct cuda_api *api, cu_device ordinal, struct device_info *info,
                    struct err *err)
{
    size_t memory = 0;

    memset(info, 0, sizeof *info);
    info->kind = DEVICE_CUDA;
    snprintf(info->spec, sizeof info->spec, "cuda:%d", ordinal);
    if (cuda_check(api, "cuDeviceGetName",
                   api->device_get_name(info->name, (int)sizeof info->name, ordinal), err) < 0 ||
        cuda_check(api, "cuDeviceTotalMem", api->device_total_mem(&memory, ordinal), err) < 0 ||
        read_limits(api, ordinal, info, err) < 0)
        return -1;
    info->memory_bytes = memory;
    driver_text(api, info->driver, sizeof info->driver);
    uuid_text(api, ordinal, info->uuid);
    return 0;
}

static int device_count(const struct cuda_api *api, int *count, struct err *err)
{
    if (cuda_check(api, "cuDeviceGetCount", api->device_get_count(count), err) < 0)
        return -1;
    if (*count < 1)
        return err_set(err, ERR_MISSING, "the CUDA driver sees no device");
    return 0;
}

static int open_context(struct cuda_device *d, struct err *err)
{
    if (cuda_status(d, "cuDevicePrimaryCtxRetain",
                    d->api.primary_ctx_retain(&d->context, d->ordinal), err) < 0 ||
        cuda_enter(d, err) < 0)
        return -1;
    return cuda_status(d, "cuStreamCreate", d->api.stream_create(&d->stream, CU_STREAM_NONBLOCKING),
                       err);
}

int cuda_device_open_with(const char *library, unsigned ordinal, struct device **out,
                          struct err *err)
{
    struct cuda_device *d = xcalloc(1, sizeof *d);
    int count = 0;

    *out = NULL;
    d->base.ops = &cuda_ops;
    if (cuda_api_open(&d->api, library, err) < 0 || device_count(&d->api, &count, err) < 0)
        goto fail;
    if (ordinal >= (unsigned)count) {
        err_set(err, ERR_MISSING, "no CUDA device %u: this machine has %d, cuda:0 to cuda:%d",
                ordinal, count, count - 1);
        goto fail;
    }
    if (cuda_check(&d->api, "cuDeviceGet", d->api.device_get(&d->ordinal, (int)ordinal), err) < 0 ||
        describe(&d->api, d->ordinal, &d->base.info, err) < 0 || open_context(d, err) < 0)
        goto fail;
    *out = &d->base;
    return 0;
fail:
    cuda_close(&d->base);
    return -1;
}

int cuda_device_open(unsigned ordinal, struct device **out, struct err *err)
{
    return cuda_device_open_with(CUDA_LIBRARY, ordinal, out, err);
}

unsigned cuda_device_enumerate_with(const char *library, struct device_info *infos, unsigned max,
                                    struct err *why)
{
    struct cuda_api api;
    unsigned filled = 0;
    int count = 0;

    if (cuda_api_open(&api, library, why) < 0)
        return 0;
    if (!device_count(&api, &count, why))
        for (int i = 0; i < count && filled < max; i++) {
            cu_device ordinal;

            if (cuda_check(&api, "cuDeviceGet", api.device_get(&ordinal, i), why) < 0 ||
                describe(&api, ordinal, &infos[filled], why) < 0)
                break;
            filled++;
        }
    cuda_api_close(&api);
    return filled;
}

unsigned cuda_device_enumerate(struct device_info *infos, unsigned max, struct err *why)
{
    return cuda_device_enumerate_with(CUDA_LIBRARY, infos, max, why);
}
