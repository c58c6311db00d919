/* Part of what cuda_shim.h, which is included before every kernel source, already gives. */
#ifndef CPU_CUDA_H
#define CPU_CUDA_H

#pragma GCC system_header

#include "cuda_shim.h"

#endif
