/* Atomics (blocks run on several OS threads) and loads and stores with cache hints. */
#ifndef CPU_ATOMICS_H
#define CPU_ATOMICS_H

#pragma GCC system_header

#include <stdint.h>
#include <string.h>
#include <time.h>

#include <type_traits>

#include "cpu_abi.h"
#include "cpu_vectors.h"

namespace cpu
{
/* ThreadSanitizer's build must not take an atomic for more order than CUDA gives it. */
#ifdef __SANITIZE_THREAD__
constexpr int atomic_success = __ATOMIC_RELAXED;
inline void atomic_begin(void *p)
{
    cpu_atomic_begin(p);
}
inline void atomic_end(void *p)
{
    cpu_atomic_end(p);
}
inline void thread_fence()
{
    cpu_thread_fence();
}
#else
constexpr int atomic_success = __ATOMIC_ACQ_REL;
inline void atomic_begin(void *)
{
}
inline void atomic_end(void *)
{
}
inline void thread_fence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
#endif

/* Applies `f` to *p atomically; returns the old value. T is 2, 4 or 8 bytes. */
template <class T, class F> inline T atomic_update(T *p, F f)
{
    using word = std::conditional_t<sizeof(T) == 8, uint64_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    word *w = reinterpret_cast<word *>(p);
    atomic_begin(p);
    word old = __atomic_load_n(w, __ATOMIC_RELAXED), next;
    T value;

    do {
        memcpy(&value, &old, sizeof value);
        T changed = f(value);
        memcpy(&next, &changed, sizeof next);
    } while (!__atomic_compare_exchange_n(w, &old, next, false, atomic_success, __ATOMIC_RELAXED));
    atomic_end(p);
    return value;
}
} // namespace cpu

#define CPU_ATOMIC(name, T, expr)                                                                  \
    static inline T name(T *p, T v)                                                                \
    {                                                                                              \
        return cpu::atomic_update(p, [v](T old) -> T { return expr; });                            \
    }
#define CPU_ATOMIC_INTEGER(name, expr)                                                             \
    CPU_ATOMIC(name, int, expr)                                                                    \
    CPU_ATOMIC(name, unsigned int, expr)                                                           \
    CPU_ATOMIC(name, unsigned long long, expr)

CPU_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)v))
CPU_ATOMIC(atomicAdd, unsigned int, old + v)
CPU_ATOMIC(atomicAdd, unsigned long long, old + v)
CPU_ATOMIC(atomicAdd, float, old + v)
CPU_ATOMIC(atomicAdd, double, old + v)
CPU_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)v))
CPU_ATOMIC(atomicSub, unsigned int, old - v)
CPU_ATOMIC_INTEGER(atomicMin, v < old ? v : old)
CPU_ATOMIC(atomicMin, long long, v < old ? v : old)
CPU_ATOMIC_INTEGER(atomicMax, v > old ? v : old)
CPU_ATOMIC(atomicMax, long long, v > old ? v : old)
CPU_ATOMIC_INTEGER(atomicAnd, old &v)
CPU_ATOMIC_INTEGER(atomicOr, old | v)
CPU_ATOMIC_INTEGER(atomicXor, old ^ v)
CPU_ATOMIC_INTEGER(atomicExch, ((void)old, v))
CPU_ATOMIC(atomicExch, float, ((void)old, v))
CPU_ATOMIC(atomicInc, unsigned int, old >= v ? 0 : old + 1)
CPU_ATOMIC(atomicDec, unsigned int, old == 0 || old > v ? v : old - 1)

#undef CPU_ATOMIC
#undef CPU_ATOMIC_INTEGER

template <class T> static inline T atomicCAS(T *p, T compare, T value)
{
    static_assert(std::is_integral<T>::value, "atomicCAS takes integers");
    return cpu::atomic_update(p, [=](T old) -> T { return old == compare ? value : old; });
}

/* Each element on its own, in global memory (compute capability 9.0). */
template <class V, class F> static inline V atomic_each(V *p, V v, F f)
{
    V old;
    static_assert(sizeof(V) % sizeof(float) == 0, "vectors of float");
    for (unsigned i = 0; i < sizeof(V) / sizeof(float); i++)
        reinterpret_cast<float *>(&old)[i] =
            f(reinterpret_cast<float *>(p) + i, reinterpret_cast<float *>(&v)[i]);
    return old;
}
static inline float2 atomicAdd(float2 *p, float2 v)
{
    return atomic_each(p, v, [](float *a, float b) { return atomicAdd(a, b); });
}
static inline float4 atomicAdd(float4 *p, float4 v)
{
    return atomic_each(p, v, [](float *a, float b) { return atomicAdd(a, b); });
}

/* The scoped forms differ on the GPU in whom they order; here all are device-wide. */
#define atomicAdd_block   atomicAdd
#define atomicAdd_system  atomicAdd
#define atomicSub_block   atomicSub
#define atomicSub_system  atomicSub
#define atomicMin_block   atomicMin
#define atomicMin_system  atomicMin
#define atomicMax_block   atomicMax
#define atomicMax_system  atomicMax
#define atomicAnd_block   atomicAnd
#define atomicAnd_system  atomicAnd
#define atomicOr_block    atomicOr
#define atomicOr_system   atomicOr
#define atomicXor_block   atomicXor
#define atomicXor_system  atomicXor
#define atomicExch_block  atomicExch
#define atomicExch_system atomicExch
#define atomicInc_block   atomicInc
#define atomicDec_block   atomicDec
#define atomicCAS_block   atomicCAS
#define atomicCAS_system  atomicCAS

template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldca(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> static inline T __ldlu(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcv(const T *p)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the value in memory now, not one kept from before */
    return *p;
}
template <class T, class U> static inline void __stwb(T *p, U v)
{
    *p = v;
}
template <class T, class U> static inline void __stcg(T *p, U v)
{
    *p = v;
}
template <class T, class U> static inline void __stcs(T *p, U v)
{
    *p = v;
}
template <class T, class U> static inline void __stwt(T *p, U v)
{
    *p = v;
}

static inline uint32_t __isShared(const void *p)
{
    return cpu_shared_address(p) != 0;
}
static inline size_t __cvta_generic_to_shared(const void *p)
{
    return cpu_shared_address(p);
}
static inline void *__cvta_shared_to_generic(size_t a)
{
    return cpu_shared_pointer((uint32_t)a);
}
static inline size_t __cvta_generic_to_global(const void *p)
{
    return (size_t)p;
}
static inline long long clock64() /* nanoseconds: a rising count, as on the GPU, of another unit */
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
