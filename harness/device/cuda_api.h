/*
 * The part of the CUDA driver API that the harness calls, declared here from its public binary
 * interface so that the build needs no toolkit, and bound to libcuda.so.1 at run time so that the
 * binary starts where no driver is installed. Numbers and signatures: CUDA Driver API reference
 * manual. The function types carry the version of the symbol that cuda_api.c binds ("_v2" where
 * the unversioned name is the 32-bit interface of CUDA 3.1).
 *
 * A driver of CUDA 12.4 or newer is required: cuFuncGetParamInfo, against which every launch is
 * checked, appeared there. (GB10 needs 13.0 anyway.)
 */
#ifndef DEVICE_CUDA_API_H
#define DEVICE_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Handles of the driver: never looked into. */
struct cu_context;
struct cu_module;
struct cu_function;
struct cu_stream;
struct cu_event;
struct cu_graph;
struct cu_graph_exec;

struct cu_uuid {
    unsigned char bytes[16];
};

enum cu_result {
    CU_SUCCESS = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_STUB_LIBRARY = 34,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_INVALID_PTX = 218,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_NOT_FOUND = 500,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_ASSERT = 710,
    CU_HARDWARE_STACK_ERROR = 714,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED_ADDRESS = 716,
    CU_INVALID_ADDRESS_SPACE = 717,
    CU_INVALID_PC = 718,
    CU_LAUNCH_FAILED = 719,
    CU_TENSOR_MEMORY_LEAK = 721,
    CU_UNKNOWN = 999,
};

enum cu_device_attribute {
    CU_DEV_MAX_THREADS_PER_BLOCK = 1,
    CU_DEV_MAX_BLOCK_DIM_X = 2, /* y and z follow */
    CU_DEV_MAX_GRID_DIM_X = 5,  /* y and z follow */
    CU_DEV_SM_COUNT = 16,
    CU_DEV_L2_BYTES = 38,
    CU_DEV_CC_MAJOR = 75,
    CU_DEV_CC_MINOR = 76,
    CU_DEV_SHARED_PER_BLOCK_OPTIN = 97,
};

enum cu_function_attribute {
    CU_FN_MAX_THREADS_PER_BLOCK = 0,
    CU_FN_SHARED_BYTES = 1, /* static */
    CU_FN_LOCAL_BYTES = 3,
    CU_FN_REGISTERS = 4,
    CU_FN_MAX_DYNAMIC_SHARED_BYTES = 8,
};

enum cu_jit_option {
    CU_JIT_INFO_LOG = 3,
    CU_JIT_INFO_LOG_BYTES = 4,
    CU_JIT_ERROR_LOG = 5,
    CU_JIT_ERROR_LOG_BYTES = 6,
};

enum cu_stream_flag { CU_STREAM_NONBLOCKING = 1 };
enum cu_event_flag { CU_EVENT_TIMED = 0 };
/* Other threads' calls do not break a capture, and this thread's may allocate meanwhile. */
enum cu_capture_mode { CU_CAPTURE_RELAXED = 2 };

typedef uint64_t cu_ptr;
typedef int cu_device;

struct cuda_api {
    void *library;
    int driver_version; /* 13000 for CUDA 13.0 */

    int (*init)(unsigned flags);
    int (*driver_get_version)(int *version);
    int (*get_error_name)(int result, const char **name);
    int (*get_error_string)(int result, const char **text);

    int (*device_get_count)(int *count);
    int (*device_get)(cu_device *device, int ordinal);
    int (*device_get_name)(char *name, int bytes, cu_device device);
    int (*device_get_uuid)(struct cu_uuid *uuid, cu_device device);
    int (*device_total_mem)(size_t *bytes, cu_device device);
    int (*device_get_attribute)(int *value, int attribute, cu_device device);

    int (*primary_ctx_retain)(struct cu_context **context, cu_device device);
    int (*primary_ctx_release)(cu_device device);
    int (*ctx_set_current)(struct cu_context *context);

    int (*stream_create)(struct cu_stream **stream, unsigned flags);
    int (*stream_destroy)(struct cu_stream *stream);
    int (*stream_synchronize)(struct cu_stream *stream);
    int (*stream_begin_capture)(struct cu_stream *stream, int mode);
    int (*stream_end_capture)(struct cu_stream *stream, struct cu_graph **graph);

    int (*mem_alloc)(cu_ptr *ptr, size_t bytes);
    int (*mem_free)(cu_ptr ptr);
    int (*memcpy_htod_async)(cu_ptr dst, const void *src, size_t bytes, struct cu_stream *stream);
    int (*memcpy_dtoh_async)(void *dst, cu_ptr src, size_t bytes, struct cu_stream *stream);
    int (*memcpy_dtod_async)(cu_ptr dst, cu_ptr src, size_t bytes, struct cu_stream *stream);
    int (*memset_d32_async)(cu_ptr dst, unsigned word, size_t words, struct cu_stream *stream);

    int (*module_load_data_ex)(struct cu_module **module, const void *image, unsigned noptions,
                               int *options, void **values);
    int (*module_unload)(struct cu_module *module);
    int (*module_get_function)(struct cu_function **function, struct cu_module *module,
                               const char *name);
    int (*module_get_function_count)(unsigned *count, struct cu_module *module);
    int (*module_enumerate_functions)(struct cu_function **functions, unsigned count,
                                      struct cu_module *module);

    int (*func_get_name)(const char **name, struct cu_function *function);
    int (*func_get_attribute)(int *value, int attribute, struct cu_function *function);
    int (*func_set_attribute)(struct cu_function *function, int attribute, int value);
    int (*func_get_param_info)(struct cu_function *function, size_t index, size_t *offset,
                               size_t *bytes);
    int (*launch_kernel)(struct cu_function *function, unsigned grid_x, unsigned grid_y,
                         unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, struct cu_stream *stream, void **params,
                         void **extra);

    int (*event_create)(struct cu_event **event, unsigned flags);
    int (*event_destroy)(struct cu_event *event);
    int (*event_record)(struct cu_event *event, struct cu_stream *stream);
    int (*event_synchronize)(struct cu_event *event);
    int (*event_elapsed_time)(float *ms, struct cu_event *start, struct cu_event *stop);

    int (*graph_instantiate)(struct cu_graph_exec **exec, struct cu_graph *graph,
                             unsigned long long flags);
    int (*graph_destroy)(struct cu_graph *graph);
    int (*graph_exec_destroy)(struct cu_graph_exec *exec);
    int (*graph_launch)(struct cu_graph_exec *exec, struct cu_stream *stream);
};

#define CUDA_LIBRARY "libcuda.so.1"

/* Loads `library` (CUDA_LIBRARY; a test gives its own), binds every function and calls cuInit.
   ERR_MISSING: no library, a function that it lacks (the driver is too old), the toolkit's
   stub, or no device. ERR_SYSTEM: the driver is there and does not start. On failure nothing
   stays open. */
int cuda_api_open(struct cuda_api *api, const char *library, struct err *err);
void cuda_api_close(struct cuda_api *api);

/* "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (invalid argument)", with the kind that fits:
   ERR_FAULT for what only a kernel can cause, ERR_MISSING for no device or no code for it,
   else ERR_SYSTEM. Returns -1; 0 for CU_SUCCESS. */
int cuda_check(const struct cuda_api *api, const char *call, int result, struct err *err);

/* True for the results after which the context is lost. */
int cuda_is_fault(int result);

#endif
