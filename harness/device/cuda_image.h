/*
 * Kernel images as files: a cubin (ELF for EM_CUDA), a fatbin (a container of those and of PTX),
 * or PTX text. The driver takes an image by address alone and reads as far as its headers say, so
 * a file that is cut short must be refused before it gets there.
 */
#ifndef DEVICE_CUDA_IMAGE_H
#define DEVICE_CUDA_IMAGE_H

#include <stddef.h>

#include "base/err.h"

/* ERR_INPUT naming `path` when the bytes are none of the three or the headers point past them. */
int cuda_image_check(const char *path, const void *bytes, size_t n, struct err *err);

#endif
