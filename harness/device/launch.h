/*
 * The launcher layer: every kernel launch of the project is built here, on both devices.
 *
 *     struct launch l;
 *     launch_init(&l, kernel);
 *     launch_grid(&l, num_v_heads, batch, 1);
 *     launch_block(&l, 128, 1, 1);
 *     launch_shared(&l, k_dim * v_dim * 4);
 *     launch_ptr(&l, h_table);
 *     launch_u32(&l, batch);
 *     return launch_submit(&l, err);
 *
 * Arguments are appended in the kernel's own order. launch_submit() refuses (ERR_REFUSED, with
 * the kernel's name, the argument's index and both sizes) a launch whose argument count, sizes or
 * - where the device knows them - kinds differ from the kernel's signature, or whose geometry
 * breaks GB10's limits (the text carries CUDA's own error name, CUDA_ERROR_INVALID_VALUE and so
 * on).
 */
#ifndef DEVICE_LAUNCH_H
#define DEVICE_LAUNCH_H

#include "device/device.h"

struct launch {
    const struct kernel *kernel;
    struct extent grid, block;
    uint64_t shared; /* bytes of dynamic shared memory; 64 bits: an overflow is seen, not wrapped */
    unsigned nargs;
    char kind[KERNEL_MAX_PARAMS + 1]; /* 'p' 'u' 'i' 'f' per argument */
    uint8_t size[KERNEL_MAX_PARAMS];
    union {
        dev_ptr ptr;
        uint32_t u32;
        int32_t i32;
        float f32;
        unsigned char bytes[8];
    } arg[KERNEL_MAX_PARAMS];
    bool overflow; /* more than KERNEL_MAX_PARAMS arguments were appended */
};

void launch_init(struct launch *l,
                 const struct kernel *kernel); /* grid and block 1,1,1; shared 0 */
void launch_grid(struct launch *l, uint32_t x, uint32_t y, uint32_t z);
void launch_block(struct launch *l, uint32_t x, uint32_t y, uint32_t z);
void launch_shared(struct launch *l, uint64_t bytes);
void launch_ptr(struct launch *l, dev_ptr value);
void launch_u32(struct launch *l, uint32_t value);
void launch_i32(struct launch *l, int32_t value);
void launch_f32(struct launch *l, float value);

/* Checks, then hands the launch to the kernel's device. Asynchronous on CUDA: an error of the
   kernel itself is reported by device_sync(). */
int launch_submit(const struct launch *l, struct err *err);

#endif
