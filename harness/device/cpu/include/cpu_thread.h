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
/* The running thread. Constant while a kernel function runs, so the compiler may keep it: an asm
   without inputs is as pure as it gets, and unlike a plain read of a thread-local it survives
   calls. */
__attribute__((always_inline)) inline const struct cpu_thread *self()
{
    const struct cpu_thread *t;
#if defined(__x86_64__)
    asm("movq cpu_current@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(t));
#elif defined(__aarch64__)
    uint64_t offset;
    asm("mrs %0, tpidr_el0\n\t"
        "adrp %1, :gottprel:cpu_current\n\t"
        "ldr %1, [%1, #:gottprel_lo12:cpu_current]\n\t"
        "ldr %0, [%0, %1]"
        : "=&r"(t), "=&r"(offset));
#else
#error "the CPU device knows x86-64 and aarch64"
#endif
    return t;
}

/* A field of the thread or block, equally constant: hidden from alias analysis in an asm. */
template <int Offset> __attribute__((always_inline)) inline uint32_t word(const void *base)
{
    uint32_t v;
#if defined(__x86_64__)
    asm("movl %c2(%1), %0" : "=r"(v) : "r"(base), "i"(Offset));
#else
    asm("ldr %w0, [%1, %2]" : "=r"(v) : "r"(base), "i"(Offset));
#endif
    return v;
}

template <int Offset> __attribute__((always_inline)) inline void *pointer(const void *base)
{
    void *v;
#if defined(__x86_64__)
    asm("movq %c2(%1), %0" : "=r"(v) : "r"(base), "i"(Offset));
#else
    asm("ldr %0, [%1, %2]" : "=r"(v) : "r"(base), "i"(Offset));
#endif
    return v;
}

__attribute__((always_inline)) inline const void *block()
{
    return pointer<offsetof(struct cpu_thread, block)>(self());
}

__attribute__((always_inline)) inline void *dynamic_shared()
{
    return pointer<offsetof(struct cpu_block, shared)>(block());
}

/* The launch limits, told to the compiler: products of indices then do not wrap for all it
   knows. */
__attribute__((always_inline)) inline uint3 within(uint3 v, uint32_t x, uint32_t y, uint32_t z)
{
    if (v.x > x || v.y > y || v.z > z)
        __builtin_unreachable();
    return v;
}

__attribute__((always_inline)) inline uint3 thread_index()
{
    const void *t = self();
    return within({word<0>(t), word<4>(t), word<8>(t)}, 1023, 1023, 63);
}

template <int Offset> __attribute__((always_inline)) inline uint3 block_words()
{
    const void *b = block();
    return {word<Offset>(b), word<Offset + 4>(b), word<Offset + 8>(b)};
}

__attribute__((always_inline)) inline uint3 block_index()
{
    return within(block_words<offsetof(struct cpu_block, index)>(), 0x7ffffffe, 65534, 65534);
}

__attribute__((always_inline)) inline dim3 block_dim()
{
    return within(block_words<offsetof(struct cpu_block, dim)>(), 1024, 1024, 64);
}

__attribute__((always_inline)) inline dim3 grid_dim()
{
    return within(block_words<offsetof(struct cpu_block, grid)>(), 0x7fffffff, 65535, 65535);
}

/* The address of a static shared variable, worked out once a function: a thread-local's address
   counts as a constant for the compiler, which would rather call for it again in every loop than
   keep it. */
template <class T> __attribute__((always_inline)) inline T *located(T *p)
{
    asm("" : "+r"(p));
    return p;
}
} // namespace cpu

#define threadIdx (cpu::thread_index())
#define blockIdx  (cpu::block_index())
#define blockDim  (cpu::block_dim())
#define gridDim   (cpu::grid_dim())
#define warpSize  32

#endif
