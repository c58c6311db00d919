/*
 * Kernel images as files: a cubin (ELF for EM_CUDA), a fatbin (a container of those and of PTX),
 * or PTX text. The driver takes an image by address alone and reads as far as its headers say, so
 * a file that is cut short must be refused before it gets there.
 */
#ifndef DEVICE_CUDA_IMAGE_H
#define DEVICE_CUDA_IMAGE_H

#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* ERR_INPUT naming `path` when the bytes are none of the three or the headers point past them. */
int cuda_image_check(const char *path, const void *bytes, size_t n, struct err *err);

/* Appends the names of the kernels that show in an image which passed the check, a line each, some
   of them twice: the entry symbols of a cubin, alone or as it is within a fatbin, and what .entry
   declares in PTX text. What a fatbin holds compressed, by default its PTX, does not show: a name
   that is not listed may be there all the same. */
void cuda_image_entries(const void *bytes, size_t n, struct text *names);

#endif
