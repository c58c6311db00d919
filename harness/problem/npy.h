/* Arrays for NumPy and everything that reads its files: the .npy format, version 1.0. */
#ifndef PROBLEM_NPY_H
#define PROBLEM_NPY_H

#include <stddef.h>

#include "base/err.h"

/* Writes a C-ordered array of `ndim` dims; `descr` is NumPy's type text ("<f8", "<f4", "<u4",
   "<u2", "|u1") and `bytes` the size of `data`, which must be the dims' product times the type's
   size. The file is replaced atomically. */
int npy_write(const char *path, const char *descr, const size_t *dim, unsigned ndim,
              const void *data, size_t bytes, struct err *err);

#endif
