/*
 * A CUDA driver without a GPU, for the tests of the CUDA device: memory is the host's, kernels do
 * nothing, and any function can be told to fail. Its state is per loaded library; a test resets
 * it first.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_MAX_PARAMS 64
#define FAKE_ERRORS     8

struct fake_launch {
    char entry[64];
    unsigned grid[3], block[3], shared;
    unsigned nparams;
    unsigned char param[FAKE_MAX_PARAMS][8];
};

struct fake_state {
    int driver_version; /* 13000 */
    int device_count;
    int cc_major, cc_minor;
    /* Calls that fail: the function's name and the result it gives. */
    struct {
        const char *symbol;
        int result;
    } fail[FAKE_ERRORS];
    const char *jit_log; /* written to the error log of a module load that fails */
    int fault;           /* what a launch of "crash" leaves behind; every call then returns it */
    int sticky;          /* that result, once it happened */
    unsigned launches;
    struct fake_launch last;
    int dynamic_allowed; /* the last value of the shared-memory attribute */
    int contexts;        /* retained primary contexts */
    int allocations, streams, events, modules, graphs; /* alive */
    int capturing;
    unsigned graph_launches;
};

/* Found by dlsym(). Resets and returns the state. */
struct fake_state *fake_cuda_reset(void);

#endif
