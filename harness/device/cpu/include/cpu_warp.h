/* Barriers, warp operations, fences and traps. */
#ifndef CPU_WARP_H
#define CPU_WARP_H

#pragma GCC system_header

#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "cpu_abi.h"
#include "cpu_atomics.h"

#define __syncthreads()        cpu_barrier(CPU_SITE)
#define __syncthreads_count(p) cpu_barrier_vote(CPU_VOTE_COUNT, !!(p), CPU_SITE)
#define __syncthreads_and(p)   cpu_barrier_vote(CPU_VOTE_AND, !!(p), CPU_SITE)
#define __syncthreads_or(p)    cpu_barrier_vote(CPU_VOTE_OR, !!(p), CPU_SITE)

#define __syncwarp(...)           cpu::warp_sync(CPU_HERE, ##__VA_ARGS__)
#define __activemask()            ((unsigned)cpu_warp(CPU_WARP_ACTIVE, 0, 0, 0, 32, CPU_HERE))
#define __shfl_sync(m, ...)       cpu::shuffle<CPU_WARP_SHUFFLE>(CPU_HERE, m, __VA_ARGS__)
#define __shfl_up_sync(m, ...)    cpu::shuffle<CPU_WARP_SHUFFLE_UP>(CPU_HERE, m, __VA_ARGS__)
#define __shfl_down_sync(m, ...)  cpu::shuffle<CPU_WARP_SHUFFLE_DOWN>(CPU_HERE, m, __VA_ARGS__)
#define __shfl_xor_sync(m, ...)   cpu::shuffle<CPU_WARP_SHUFFLE_XOR>(CPU_HERE, m, __VA_ARGS__)
#define __ballot_sync(m, p)       cpu::ballot(CPU_HERE, m, !!(p))
#define __any_sync(m, p)          (cpu::ballot(CPU_HERE, m, !!(p)) != 0)
#define __all_sync(m, p)          (cpu::ballot(CPU_HERE, m, !(p)) == 0)
#define __uni_sync(m, p)          cpu::uniform(CPU_HERE, m, !!(p))
#define __match_any_sync(m, v)    cpu::match_any(CPU_HERE, m, v)
#define __match_all_sync(m, v, p) cpu::match_all(CPU_HERE, m, v, p)
#define __reduce_add_sync(m, v)   cpu::reduce<CPU_WARP_ADD, CPU_WARP_ADD>(CPU_HERE, m, v)
#define __reduce_min_sync(m, v)   cpu::reduce<CPU_WARP_MIN, CPU_WARP_MIN_SIGNED>(CPU_HERE, m, v)
#define __reduce_max_sync(m, v)   cpu::reduce<CPU_WARP_MAX, CPU_WARP_MAX_SIGNED>(CPU_HERE, m, v)
#define __reduce_and_sync(m, v)   cpu::reduce<CPU_WARP_AND, CPU_WARP_AND>(CPU_HERE, m, v)
#define __reduce_or_sync(m, v)    cpu::reduce<CPU_WARP_OR, CPU_WARP_OR>(CPU_HERE, m, v)
#define __reduce_xor_sync(m, v)   cpu::reduce<CPU_WARP_XOR, CPU_WARP_XOR>(CPU_HERE, m, v)

#define __trap()  cpu_trap("__trap()", CPU_HERE)
#define __brkpt() cpu_trap("__brkpt()", CPU_HERE)
#undef assert
#ifdef NDEBUG
#define assert(e) ((void)0)
#else
#define assert(e) ((e) ? (void)0 : cpu_trap("assertion failed: " #e, CPU_HERE))
#endif

#define __threadfence()        cpu::thread_fence()
#define __threadfence_block()  cpu::thread_fence()
#define __threadfence_system() cpu::thread_fence()
#define __nanosleep(ns)        ((void)(ns))

namespace cpu
{
inline void warp_sync(const char *where, uint32_t mask = 0xffffffffu)
{
    cpu_warp(CPU_WARP_SYNC, mask, 0, 0, 32, where);
}

template <enum cpu_warp_op Op, class T>
inline T shuffle(const char *where, uint32_t mask, T value, int arg, int width = 32)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value,
                  "warp shuffles move trivially copyable values of up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = cpu_warp(Op, mask, bits, arg, width, where);
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t ballot(const char *where, uint32_t mask, bool predicate)
{
    return (uint32_t)cpu_warp(CPU_WARP_BALLOT, mask, predicate, 0, 32, where);
}

inline int uniform(const char *where, uint32_t mask, bool predicate)
{
    return cpu_warp(CPU_WARP_MATCH_ALL, mask, predicate, 0, 32, where) != 0;
}

template <class T> inline uint64_t bits_of(T value)
{
    static_assert(sizeof(T) <= 8, "values of up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> inline uint32_t match_any(const char *where, uint32_t mask, T value)
{
    return (uint32_t)cpu_warp(CPU_WARP_MATCH_ANY, mask, bits_of(value), 0, 32, where);
}

template <class T> inline uint32_t match_all(const char *where, uint32_t mask, T value, int *same)
{
    uint32_t lanes = (uint32_t)cpu_warp(CPU_WARP_MATCH_ALL, mask, bits_of(value), 0, 32, where);
    *same = lanes != 0;
    return lanes;
}

template <enum cpu_warp_op Unsigned, enum cpu_warp_op Signed>
inline uint32_t reduce(const char *where, uint32_t mask, uint32_t value)
{
    return (uint32_t)cpu_warp(Unsigned, mask, value, 0, 32, where);
}

template <enum cpu_warp_op Unsigned, enum cpu_warp_op Signed>
inline int32_t reduce(const char *where, uint32_t mask, int32_t value)
{
    return (int32_t)cpu_warp(Signed, mask, (uint32_t)value, 0, 32, where);
}
} // namespace cpu

#endif
