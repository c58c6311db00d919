/*
 * Force-included before a .cu that g++ compiles for the CPU device: what nvcc predefines. The
 * keywords __global__, __shared__, __launch_bounds__ and inline PTX are left to
 * scripts/cuda-prepass.c.
 *
 * `__restrict__` is defined away: across a barrier other threads of the block write what this one
 * points at, and a compiler that trusts restrict may keep a load over the call.
 */
#ifndef CUDA_SHIM_H
#define CUDA_SHIM_H

#pragma GCC system_header

#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "cpu_abi.h"

#define __CUDACC__           1
#define __CUDA_ARCH__        1210 /* GB10: compute capability 12.1 */
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __NVCC__             1
#define DELTARIG_CPU_DEVICE  1

#define __restrict__
#define __restrict
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__      inline __attribute__((always_inline))
#define __noinline__         __attribute__((noinline))
#define __align__(n)         __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __maxnreg__(n)
#define __builtin_assume(e)   ((void)0)
#define __assume(e)           ((void)0)
#define __cluster_dims__(...) static_assert(false, "thread block clusters are not supported");

#define CPU_TEXT_(x) #x
#define CPU_TEXT(x)  CPU_TEXT_(x)
#define CPU_HERE     (__FILE__ ":" CPU_TEXT(__LINE__))
/* The same, and behind its end what tells two barriers of one line apart. */
#define CPU_SITE (__FILE__ ":" CPU_TEXT(__LINE__) "\0" CPU_TEXT(__COUNTER__))

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;

#include "cpu_atomics.h"
#include "cpu_describe.h"
#include "cpu_math.h"
#include "cpu_ptx.h"
#include "cpu_rounding.h"
#include "cpu_thread.h"
#include "cpu_vectors.h"
#include "cpu_warp.h"

#endif
