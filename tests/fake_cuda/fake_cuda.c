#include "fake_cuda.h"

#include <stdlib.h>
#include <string.h>

/* Every symbol here is looked up by name; nobody includes a prototype. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static struct fake_state state;

/* A kernel of the one module that there is. */
struct fake_function {
    const char *name;
    int params;
    size_t bytes[4];
    int registers, shared;
};

static struct fake_function functions[] = {
    {"add", 3, {8, 4, 4}, 32, 1024},
    {"crash", 0, {0}, 16, 0},
    {"by_value", 1, {300}, 16, 0},
};

struct fake_state *fake_cuda_reset(void)
{
    memset(&state, 0, sizeof state);
    state.driver_version = 13000;
    state.device_count = 2;
    state.cc_major = 12;
    state.cc_minor = 1;
    return &state;
}

static int outcome(const char *symbol)
{
    if (state.sticky)
        return state.sticky;
    for (int i = 0; i < FAKE_ERRORS; i++)
        if (state.fail[i].symbol && !strcmp(state.fail[i].symbol, symbol))
            return state.fail[i].result;
    return 0;
}

#define FAIL_IF_TOLD()                                                                             \
    do {                                                                                           \
        int told = outcome(__func__);                                                              \
        if (told)                                                                                  \
            return told;                                                                           \
    } while (0)

int cuInit(unsigned flags)
{
    (void)flags;
    FAIL_IF_TOLD();
    return state.device_count ? 0 : 100;
}

int cuDriverGetVersion(int *version)
{
    *version = state.driver_version;
    FAIL_IF_TOLD();
    return 0;
}

int cuGetErrorName(int result, const char **name)
{
    static const struct {
        int result;
        const char *name;
    } names[] = {
        {1, "CUDA_ERROR_INVALID_VALUE"},
        {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {34, "CUDA_ERROR_STUB_LIBRARY"},
        {100, "CUDA_ERROR_NO_DEVICE"},
        {200, "CUDA_ERROR_INVALID_IMAGE"},
        {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {218, "CUDA_ERROR_INVALID_PTX"},
        {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
        {500, "CUDA_ERROR_NOT_FOUND"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
        {999, "CUDA_ERROR_UNKNOWN"},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].result == result) {
            *name = names[i].name;
            return 0;
        }
    return 1;
}

int cuGetErrorString(int result, const char **text)
{
    if (result == 1)
        *text = "invalid argument";
    else if (result == 700)
        *text = "an illegal memory access was encountered";
    else
        return 1;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = state.device_count;
    FAIL_IF_TOLD();
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    FAIL_IF_TOLD();
    return 0;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    (void)device;
    strncpy(name, "Fake GB10", (size_t)bytes);
    FAIL_IF_TOLD();
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(16 * device + i);
    FAIL_IF_TOLD();
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    FAIL_IF_TOLD();
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    FAIL_IF_TOLD();
    switch (attribute) {
    case 1: /* threads a block */
    case 2:
    case 3:
        *value = 1024;
        break;
    case 4:
        *value = 64;
        break;
    case 5:
        *value = 2147483647;
        break;
    case 6:
    case 7:
        *value = 65535;
        break;
    case 16:
        *value = 48;
        break;
    case 38:
        *value = 24 << 20;
        break;
    case 75:
        *value = state.cc_major;
        break;
    case 76:
        *value = state.cc_minor;
        break;
    case 97:
        *value = 101376;
        break;
    default:
        return 1;
    }
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    static char contexts[16];

    FAIL_IF_TOLD();
    *context = &contexts[device];
    state.contexts++;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    state.contexts--;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    (void)context;
    FAIL_IF_TOLD();
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    FAIL_IF_TOLD();
    if (flags != 1)
        return 1;
    *stream = &state;
    state.streams++;
    return 0;
}

int cuStreamDestroy_v2(void *stream)
{
    (void)stream;
    state.streams--;
    return 0;
}

int cuStreamSynchronize(void *stream)
{
    (void)stream;
    FAIL_IF_TOLD();
    if (state.fault) {
        state.sticky = state.fault;
        return state.sticky;
    }
    return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)stream;
    (void)mode;
    FAIL_IF_TOLD();
    state.capturing = 1;
    return 0;
}

int cuStreamEndCapture(void *stream, void **graph)
{
    (void)stream;
    state.capturing = 0;
    FAIL_IF_TOLD();
    *graph = malloc(1);
    state.graphs++;
    return 0;
}

int cuMemAlloc_v2(uint64_t *ptr, size_t bytes)
{
    FAIL_IF_TOLD();
    if (!bytes)
        return 1;
    *ptr = (uint64_t)(uintptr_t)malloc(bytes);
    state.allocations++;
    return 0;
}

int cuMemFree_v2(uint64_t ptr)
{
    FAIL_IF_TOLD();
    free((void *)(uintptr_t)ptr);
    state.allocations--;
    return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t dst, const void *src, size_t bytes, void *stream)
{
    (void)stream;
    FAIL_IF_TOLD();
    memcpy((void *)(uintptr_t)dst, src, bytes);
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *dst, uint64_t src, size_t bytes, void *stream)
{
    (void)stream;
    FAIL_IF_TOLD();
    memcpy(dst, (void *)(uintptr_t)src, bytes);
    return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t dst, uint64_t src, size_t bytes, void *stream)
{
    (void)stream;
    FAIL_IF_TOLD();
    memmove((void *)(uintptr_t)dst, (void *)(uintptr_t)src, bytes);
    return 0;
}

int cuMemsetD32Async(uint64_t dst, unsigned word, size_t words, void *stream)
{
    unsigned *p = (void *)(uintptr_t)dst;

    (void)stream;
    FAIL_IF_TOLD();
    for (size_t i = 0; i < words; i++)
        p[i] = word;
    return 0;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values)
{
    int told = outcome(__func__);

    (void)image;
    for (unsigned i = 0; i < n && told && state.jit_log; i++)
        if (options[i] == 5) /* CU_JIT_ERROR_LOG_BUFFER */
            strcpy(values[i], state.jit_log);
    if (told)
        return told;
    *module = malloc(1);
    state.modules++;
    return 0;
}

int cuModuleUnload(void *module)
{
    FAIL_IF_TOLD();
    free(module);
    state.modules--;
    return 0;
}

int cuModuleGetFunctionCount(unsigned *count, void *module)
{
    (void)module;
    FAIL_IF_TOLD();
    *count = sizeof functions / sizeof functions[0];
    return 0;
}

int cuModuleEnumerateFunctions(void **out, unsigned count, void *module)
{
    (void)module;
    FAIL_IF_TOLD();
    for (unsigned i = 0; i < count; i++)
        out[i] = &functions[i];
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module;
    FAIL_IF_TOLD();
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!strcmp(functions[i].name, name)) {
            *function = &functions[i];
            return 0;
        }
    return 500;
}

int cuFuncGetName(const char **name, void *function)
{
    FAIL_IF_TOLD();
    *name = ((struct fake_function *)function)->name;
    return 0;
}

int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    const struct fake_function *f = function;
    const int values[9] = {512, f->shared, 0, 16, f->registers, 0, 0, 0, 49152 - f->shared};

    FAIL_IF_TOLD();
    *value = values[attribute];
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function;
    FAIL_IF_TOLD();
    if (attribute != 8)
        return 1;
    state.dynamic_allowed = value;
    return 0;
}

int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
    const struct fake_function *f = function;

    FAIL_IF_TOLD();
    if (index >= (size_t)f->params)
        return 1;
    *offset = 8 * index;
    *bytes = f->bytes[index];
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    const struct fake_function *f = function;
    struct fake_launch *l = &state.last;

    (void)stream;
    (void)extra;
    FAIL_IF_TOLD();
    *l = (struct fake_launch){.grid = {gx, gy, gz},
                              .block = {bx, by, bz},
                              .shared = shared,
                              .nparams = (unsigned)f->params};
    strncpy(l->entry, f->name, sizeof l->entry - 1);
    for (int i = 0; i < f->params; i++)
        memcpy(l->param[i], params[i], f->bytes[i]);
    state.launches++;
    if (!strcmp(f->name, "crash"))
        state.fault = 700;
    return 0;
}

int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    FAIL_IF_TOLD();
    *event = malloc(1);
    state.events++;
    return 0;
}

int cuEventDestroy_v2(void *event)
{
    FAIL_IF_TOLD();
    free(event);
    state.events--;
    return 0;
}

int cuEventRecord(void *event, void *stream)
{
    (void)event;
    (void)stream;
    FAIL_IF_TOLD();
    return 0;
}

int cuEventSynchronize(void *event)
{
    (void)event;
    FAIL_IF_TOLD();
    return 0;
}

int cuEventElapsedTime(float *ms, void *start, void *stop)
{
    (void)start;
    (void)stop;
    FAIL_IF_TOLD();
    *ms = 1.5f;
    return 0;
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    (void)graph;
    (void)flags;
    FAIL_IF_TOLD();
    *exec = malloc(1);
    state.graphs++;
    return 0;
}

int cuGraphDestroy(void *graph)
{
    free(graph);
    state.graphs--;
    return 0;
}

int cuGraphExecDestroy(void *exec)
{
    FAIL_IF_TOLD();
    free(exec);
    state.graphs--;
    return 0;
}

int cuGraphLaunch(void *exec, void *stream)
{
    (void)exec;
    (void)stream;
    FAIL_IF_TOLD();
    state.graph_launches++;
    return 0;
}
