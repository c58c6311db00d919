#ifndef CUDA_PIPELINE_PRIMITIVES_H
#define CUDA_PIPELINE_PRIMITIVES_H

#pragma GCC system_header

#include "cuda_pipeline.h"

#endif
