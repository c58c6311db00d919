/* Loads the fake driver for a test and resets its state. */
#ifndef FAKE_CUDA_LOAD_H
#define FAKE_CUDA_LOAD_H

#include <dlfcn.h>
#include <string.h>

#include "tests/fake_cuda/fake_cuda.h"

#define FAKE "build/tests/fake_cuda/fake_cuda.so"

/* dlclose() *library; a device that was opened meanwhile keeps it loaded. NULL: dlerror() says
   why. */
static inline struct fake_state *fake_load(void **library)
{
    struct fake_state *(*reset)(void);
    void *symbol = NULL;

    *library = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL);
    if (*library)
        symbol = dlsym(*library, "fake_cuda_reset");
    if (!symbol)
        return NULL;
    memcpy(&reset, &symbol, sizeof symbol); /* a data pointer is no function's */
    return reset();
}

#endif
