/*
 * Compiling a user's .cu for a device, once per content: the result is kept in a cache folder and
 * used again as long as the source, every file that it included, the build script and the compiler
 * stay the same.
 */
#ifndef DEVICE_KERNEL_BUILD_H
#define DEVICE_KERNEL_BUILD_H

#include "base/text.h"
#include "device/device.h"

/* Appends the path of the folder that the running binary lies in, without a slash at the end. */
int kernel_build_home(struct text *out, struct err *err);

/* Appends to `out` the path of the module made from `source`. ERR_INPUT with the compiler's first
   error line when it does not compile, ERR_MISSING when the scripts or the compiler are not
   there. */
int kernel_build(enum device_kind kind, const char *source, struct text *out, struct err *err);

#endif
