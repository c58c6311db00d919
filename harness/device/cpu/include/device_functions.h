/* Part of what cuda_shim.h, which is included before every kernel source, already gives. */
#ifndef CPU_DEVICE_FUNCTIONS_H
#define CPU_DEVICE_FUNCTIONS_H

#pragma GCC system_header

#include "cuda_shim.h"

#endif
