/* threadIdx and its kin, and the launch's dynamic shared memory. */
#ifndef CPU_THREAD_H
#define CPU_THREAD_H

#pragma GCC system_header

#include <stddef.h>
#include <stdint.h>

#include "cpu_abi.h"
#include "cpu_vectors.h"

namespace cpu
{
__attribute__((always_inline)) inline void *dynamic_shared()
{
    return __builtin_assume_aligned(cpu_dynamic_shared(), 16);
}

/* The launch limits, told to the compiler: products of indices then do not wrap for all it
   knows. */
__attribute__((always_inline)) inline uint3 within(uint64_t packed, uint32_t x, uint32_t y,
                                                   uint32_t z)
{
    uint3 v = {cpu_axis(packed, 0), cpu_axis(packed, 1), cpu_axis(packed, 2)};
    if (v.x > x || v.y > y || v.z > z)
        __builtin_unreachable();
    return v;
}

__attribute__((always_inline)) inline uint3 thread_index()
{
    return within(cpu_thread_index(), 1023, 1023, 63);
}

__attribute__((always_inline)) inline uint3 block_index()
{
    return within(cpu_block_index(), 0x7ffffffe, 65534, 65534);
}

__attribute__((always_inline)) inline dim3 block_dim()
{
    return within(cpu_block_dim(), 1024, 1024, 64);
}

__attribute__((always_inline)) inline dim3 grid_dim()
{
    return within(cpu_grid_dim(), 0x7fffffff, 65535, 65535);
}

/* The address of a static shared variable, worked out once a function: a thread-local's address
   counts as a constant for the compiler, which would rather call for it again in every loop than
   keep it. */
template <class T> __attribute__((always_inline)) inline T *located(T *p)
{
    asm("" : "+r"(p));
    return static_cast<T *>(__builtin_assume_aligned(p, alignof(T))); /* spares alignment checks */
}
} // namespace cpu

#define threadIdx (cpu::thread_index())
#define blockIdx  (cpu::block_index())
#define blockDim  (cpu::block_dim())
#define gridDim   (cpu::grid_dim())
#define warpSize  32

#endif
