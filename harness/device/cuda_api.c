#include "device/cuda_api.h"

#include <dlfcn.h>
#include <string.h>

#define MIN_DRIVER 12040 /* CUDA 12.4: cuFuncGetParamInfo, cuModuleEnumerateFunctions */

struct binding {
    const char *symbol;
    size_t offset; /* of the function pointer in struct cuda_api */
};

#define BIND(field, name)                                                                          \
    {                                                                                              \
        .symbol = (name), .offset = offsetof(struct cuda_api, field)                               \
    }

/* Bound before cuInit, so that an old driver is named as such and not by the first function it
   lacks. */
static const struct binding first_bindings[] = {
    BIND(init, "cuInit"),
    BIND(driver_get_version, "cuDriverGetVersion"),
    BIND(get_error_name, "cuGetErrorName"),
    BIND(get_error_string, "cuGetErrorString"),
};

static const struct binding bindings[] = {
    BIND(device_get_count, "cuDeviceGetCount"),
    BIND(device_get, "cuDeviceGet"),
    BIND(device_get_name, "cuDeviceGetName"),
    BIND(device_get_uuid, "cuDeviceGetUuid_v2"),
    BIND(device_total_mem, "cuDeviceTotalMem_v2"),
    BIND(device_get_attribute, "cuDeviceGetAttribute"),
    BIND(primary_ctx_retain, "cuDevicePrimaryCtxRetain"),
    BIND(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2"),
    BIND(ctx_set_current, "cuCtxSetCurrent"),
    BIND(stream_create, "cuStreamCreate"),
    BIND(stream_destroy, "cuStreamDestroy_v2"),
    BIND(stream_synchronize, "cuStreamSynchronize"),
    BIND(stream_begin_capture, "cuStreamBeginCapture_v2"),
    BIND(stream_end_capture, "cuStreamEndCapture"),
    BIND(mem_alloc, "cuMemAlloc_v2"),
    BIND(mem_free, "cuMemFree_v2"),
    BIND(memcpy_htod_async, "cuMemcpyHtoDAsync_v2"),
    BIND(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2"),
    BIND(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2"),
    BIND(memset_d32_async, "cuMemsetD32Async"),
    BIND(module_load_data_ex, "cuModuleLoadDataEx"),
    BIND(module_unload, "cuModuleUnload"),
    BIND(module_get_function, "cuModuleGetFunction"),
    BIND(module_get_function_count, "cuModuleGetFunctionCount"),
    BIND(module_enumerate_functions, "cuModuleEnumerateFunctions"),
    BIND(func_get_name, "cuFuncGetName"),
    BIND(func_get_attribute, "cuFuncGetAttribute"),
    BIND(func_set_attribute, "cuFuncSetAttribute"),
    BIND(func_get_param_info, "cuFuncGetParamInfo"),
    BIND(launch_kernel, "cuLaunchKernel"),
    BIND(event_create, "cuEventCreate"),
    BIND(event_destroy, "cuEventDestroy_v2"),
    BIND(event_record, "cuEventRecord"),
    BIND(event_synchronize, "cuEventSynchronize"),
    BIND(event_elapsed_time, "cuEventElapsedTime"),
    BIND(graph_instantiate, "cuGraphInstantiateWithFlags"),
    BIND(graph_destroy, "cuGraphDestroy"),
    BIND(graph_exec_destroy, "cuGraphExecDestroy"),
    BIND(graph_launch, "cuGraphLaunch"),
};

static int bind_all(struct cuda_api *api, const struct binding *list, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(api->library, list[i].symbol);

        if (!symbol)
            return err_set(err, ERR_MISSING, "the CUDA driver has no %s", list[i].symbol);
        /* POSIX lets a void pointer of dlsym() hold a function; ISO C has no cast for it. */
        memcpy((char *)api + list[i].offset, &symbol, sizeof symbol);
    }
    return 0;
}

static int check_version(struct cuda_api *api, struct err *err)
{
    if (cuda_check(api, "cuDriverGetVersion", api->driver_get_version(&api->driver_version), err) <
        0)
        return -1;
    if (api->driver_version < MIN_DRIVER)
        return err_set(err, ERR_MISSING,
                       "the driver's CUDA is %d.%d, %d.%d or newer is needed: update the driver",
                       api->driver_version / 1000, api->driver_version % 1000 / 10,
                       MIN_DRIVER / 1000, MIN_DRIVER % 1000 / 10);
    return 0;
}

int cuda_api_open(struct cuda_api *api, const char *library, struct err *err)
{
    size_t nfirst = sizeof first_bindings / sizeof first_bindings[0];
    size_t nrest = sizeof bindings / sizeof bindings[0];

    memset(api, 0, sizeof *api);
    api->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!api->library)
        return err_set(err, ERR_MISSING, "no CUDA driver: %s", dlerror());
    if (bind_all(api, first_bindings, nfirst, err) < 0 || check_version(api, err) < 0 ||
        bind_all(api, bindings, nrest, err) < 0 ||
        cuda_check(api, "cuInit", api->init(0), err) < 0) {
        cuda_api_close(api);
        return -1;
    }
    return 0;
}

void cuda_api_close(struct cuda_api *api)
{
    if (api->library)
        dlclose(api->library);
    memset(api, 0, sizeof *api);
}

int cuda_is_fault(int result)
{
    switch (result) {
    case CU_ILLEGAL_ADDRESS:
    case CU_LAUNCH_TIMEOUT:
    case CU_ASSERT:
    case CU_HARDWARE_STACK_ERROR:
    case CU_ILLEGAL_INSTRUCTION:
    case CU_MISALIGNED_ADDRESS:
    case CU_INVALID_ADDRESS_SPACE:
    case CU_INVALID_PC:
    case CU_LAUNCH_FAILED:
    case CU_TENSOR_MEMORY_LEAK:
        return 1;
    default:
        return 0;
    }
}

static enum err_kind kind_of(int result)
{
    if (cuda_is_fault(result))
        return ERR_FAULT;
    switch (result) {
    case CU_STUB_LIBRARY:
    case CU_NO_DEVICE:
    case CU_NO_BINARY_FOR_GPU:
    case CU_NOT_FOUND:
        return ERR_MISSING;
    default:
        return ERR_SYSTEM;
    }
}

int cuda_check(const struct cuda_api *api, const char *call, int result, struct err *err)
{
    const char *name = NULL, *text = NULL;

    if (result == CU_SUCCESS)
        return 0;
    if (api->get_error_name(result, &name) || !name)
        name = "unknown CUDA error";
    if (api->get_error_string(result, &text) || !text)
        return err_set(err, kind_of(result), "%s: %s %d", call, name, result);
    return err_set(err, kind_of(result), "%s: %s (%s)", call, name, text);
}
