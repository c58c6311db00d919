/* Part of what cuda_shim.h, which is included before every kernel source, already gives. */
#ifndef CPU_DEVICE_LAUNCH_PARAMETERS_H
#define CPU_DEVICE_LAUNCH_PARAMETERS_H

#pragma GCC system_header

#include "cuda_shim.h"

#endif
