/*
 * Inline PTX: one function per instruction that the CPU device knows, called with the operands in
 * the order of the PTX text (scripts/cuda-prepass.c writes the calls). An instruction that is not
 * here is a compile error that names it. Semantics: PTX ISA, by the instruction's own section.
 */
#ifndef CPU_PTX_H
#define CPU_PTX_H

#pragma GCC system_header

#include <stdint.h>
#include <string.h>

#include "cpu_math.h"
#include "cpu_narrow.h"
#include "cpu_thread.h"
#include "cpu_warp.h"

namespace ptx
{
/* An address operand: a generic pointer, its integer value, or a 32-bit shared address. */
inline void *address(uint32_t shared)
{
    return cpu_shared_pointer(shared);
}
inline void *address(int32_t shared)
{
    return cpu_shared_pointer((uint32_t)shared);
}
inline void *address(uint64_t generic)
{
    return reinterpret_cast<void *>(generic);
}
inline void *address(int64_t generic)
{
    return reinterpret_cast<void *>(generic);
}
inline void *address(unsigned long long generic)
{
    return reinterpret_cast<void *>(generic);
}
inline void *address(const void *p)
{
    return const_cast<void *>(p);
}
inline uint32_t shared_offset(uint32_t a)
{
    return a;
}

template <class A> inline auto offset(A a, int64_t bytes)
{
    return a + bytes;
}
template <class T> inline uint64_t offset(T *a, int64_t bytes)
{
    return (uint64_t)a + bytes;
}
inline uint32_t offset(uint32_t a, int64_t bytes)
{
    return a + (uint32_t)bytes;
}
inline uint32_t offset(int32_t a, int64_t bytes)
{
    return (uint32_t)a + (uint32_t)bytes;
}
inline float float_bits(uint32_t u)
{
    return __uint_as_float(u);
}

inline uint32_t special_laneid()
{
    return cpu_thread_lane();
}
inline uint32_t special_tid_x()
{
    return threadIdx.x;
}
inline uint32_t special_tid_y()
{
    return threadIdx.y;
}
inline uint32_t special_tid_z()
{
    return threadIdx.z;
}
inline uint32_t special_ctaid_x()
{
    return blockIdx.x;
}
inline uint32_t special_ctaid_y()
{
    return blockIdx.y;
}
inline uint32_t special_ctaid_z()
{
    return blockIdx.z;
}
inline uint32_t special_ntid_x()
{
    return blockDim.x;
}
inline uint32_t special_nctaid_x()
{
    return gridDim.x;
}

/* --- moves, conversions, scalar arithmetic ---------------------------------------------------- */

template <class To, class From> inline void copy_bits(To &to, From from)
{
    static_assert(sizeof to == sizeof from, "operands of different sizes");
    memcpy(&to, &from, sizeof to);
}
template <class D, class S> inline void mov_b32(D &d, S s)
{
    copy_bits(d, s);
}
template <class D, class S> inline void mov_u32(D &d, S s)
{
    d = (D)s;
}
template <class D, class S> inline void mov_s32(D &d, S s)
{
    d = (D)s;
}
template <class D, class S> inline void mov_b64(D &d, S s)
{
    copy_bits(d, s);
}
template <class D, class S> inline void mov_u64(D &d, S s)
{
    d = (D)s;
}
template <class D> inline void mov_b64(D &d, uint32_t lo, uint32_t hi)
{
    copy_bits(d, (uint64_t)hi << 32 | lo);
}
template <class D> inline void mov_b32(D &d, uint16_t lo, uint16_t hi)
{
    copy_bits(d, (uint32_t)hi << 16 | lo);
}
inline void mov_f32(float &d, float s)
{
    d = s;
}
template <class D, class S> inline void cvta_to_shared_u64(D &d, S s)
{
    d = (D)cpu_shared_address(address(s));
}
template <class D, class S> inline void cvta_to_global_u64(D &d, S s)
{
    d = (D)s;
}
template <class D, class S> inline void cvt_u32_u64(D &d, S s)
{
    d = (D)s;
}
template <class D, class S> inline void cvt_u64_u32(D &d, S s)
{
    d = (D)(uint32_t)s;
}
inline void ex2_approx_f32(float &d, float a)
{
    d = exp2f(a);
}
inline void ex2_approx_ftz_f32(float &d, float a)
{
    d = exp2f(a);
}
inline void lg2_approx_f32(float &d, float a)
{
    d = log2f(a);
}
inline void lg2_approx_ftz_f32(float &d, float a)
{
    d = log2f(a);
}
inline void rcp_approx_f32(float &d, float a)
{
    d = 1.0f / a;
}
inline void rcp_approx_ftz_f32(float &d, float a)
{
    d = 1.0f / a;
}
inline void rsqrt_approx_f32(float &d, float a)
{
    d = rsqrtf(a);
}
inline void rsqrt_approx_ftz_f32(float &d, float a)
{
    d = rsqrtf(a);
}
inline void sqrt_approx_f32(float &d, float a)
{
    d = __builtin_sqrtf(a);
}
inline void tanh_approx_f32(float &d, float a)
{
    d = tanhf(a);
}
inline void fma_rn_f32(float &d, float a, float b, float c)
{
    d = fmaf(a, b, c);
}
inline void add_f32(float &d, float a, float b)
{
    d = a + b;
}
inline void mul_f32(float &d, float a, float b)
{
    d = a * b;
}
template <class D> inline void add_u32(D &d, uint32_t a, uint32_t b)
{
    d = (D)(a + b);
}
template <class D> inline void add_s32(D &d, uint32_t a, uint32_t b)
{
    d = (D)(a + b);
}
template <class P> inline void setp_ne_b32(P &p, uint32_t a, uint32_t b)
{
    p = a != b;
}
template <class P> inline void setp_ne_u32(P &p, uint32_t a, uint32_t b)
{
    p = a != b;
}
template <class P> inline void setp_ne_s32(P &p, int32_t a, int32_t b)
{
    p = a != b;
}
template <class P> inline void setp_eq_u32(P &p, uint32_t a, uint32_t b)
{
    p = a == b;
}
template <class P> inline void setp_lt_u32(P &p, uint32_t a, uint32_t b)
{
    p = a < b;
}
/* bf16x2 from two floats: the first is the upper half. */
template <class D> inline void cvt_rn_bf16x2_f32(D &d, float hi, float lo)
{
    copy_bits(d, (uint32_t)cpu::bf16_from_float(hi) << 16 | cpu::bf16_from_float(lo));
}
template <class D> inline void cvt_rn_f16x2_f32(D &d, float hi, float lo)
{
    copy_bits(d, (uint32_t)cpu::half_from_float(hi) << 16 | cpu::half_from_float(lo));
}

/* tf32: 10 mantissa bits, to nearest with ties away from zero. */
template <class D> inline void cvt_rna_tf32_f32(D &d, float a)
{
    uint32_t u = __float_as_uint(a);
    bool finite = (u & 0x7f800000u) != 0x7f800000u;
    copy_bits(d, finite ? (u + 0x1000u) & 0xffffe000u : u);
}

/* --- fences, barriers ------------------------------------------------------------------------- */

inline void membar_gl()
{
    __threadfence();
}
inline void membar_cta()
{
    __threadfence_block();
}
inline void membar_sys()
{
    __threadfence();
}
inline void fence_acq_rel_gpu()
{
    __threadfence();
}
inline void fence_sc_gpu()
{
    __threadfence();
}
inline void nanosleep_u32(uint32_t)
{
}
inline void trap()
{
    cpu_trap("trap instruction", "inline PTX");
}
inline void bar_sync(int id)
{
    if (id)
        cpu_trap("named barriers other than 0 are not supported", "inline PTX");
    cpu_barrier("inline PTX bar.sync\0");
}
inline void barrier_sync(int id)
{
    bar_sync(id);
}
inline void bar_warp_sync(uint32_t mask)
{
    cpu_warp(CPU_WARP_SYNC, mask, 0, 0, 32, "inline PTX");
}

#include "cpu_ptx_memory.inc"
#include "cpu_ptx_mma.inc"
} // namespace ptx

#endif
