/* The constants of the toolkit's math_constants.h, single precision. */
#ifndef MATH_CONSTANTS_H
#define MATH_CONSTANTS_H

#pragma GCC system_header

#include "cuda_shim.h"

#define CUDART_INF_F        __uint_as_float(0x7f800000u)
#define CUDART_NAN_F        __uint_as_float(0x7fffffffu)
#define CUDART_MIN_DENORM_F __uint_as_float(0x00000001u)
#define CUDART_MAX_NORMAL_F __uint_as_float(0x7f7fffffu)
#define CUDART_NEG_ZERO_F   __uint_as_float(0x80000000u)
#define CUDART_ZERO_F       0.0f
#define CUDART_ONE_F        1.0f
#define CUDART_SQRT_HALF_F  0x1.6a09e6p-1f
#define CUDART_SQRT_TWO_F   0x1.6a09e6p+0f
#define CUDART_L2E_F        0x1.715476p+0f
#define CUDART_LN2_F        0x1.62e43p-1f
#define CUDART_PI_F         0x1.921fb6p+1f

#endif
