/* The pipeline primitives of the CUDA toolkit: cp.async under C names. */
#ifndef CUDA_PIPELINE_H
#define CUDA_PIPELINE_H

#pragma GCC system_header

#include "cuda_shim.h"

static inline void __pipeline_memcpy_async(void *shared, const void *global, size_t bytes,
                                           size_t zero = 0)
{
    ptx::copy_async(shared, global, (int)bytes, (int)(bytes - zero), "__pipeline_memcpy_async");
}
static inline void __pipeline_commit()
{
    cpu_copy_commit();
}
static inline void __pipeline_wait_prior(size_t pending)
{
    cpu_copy_wait((uint32_t)pending);
}

#endif
