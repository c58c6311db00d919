/*
 * Counter-based random numbers: the value at (key, index) needs no state, so inputs can be
 * generated in any order, on any thread, on any machine, with the same bits. Only integer
 * arithmetic and exact floating-point operations are used (no libm).
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

/* The key of one stream: the case's seed and the name of what is drawn ("query", "gate", ...). */
uint64_t rng_key(uint64_t seed, const char *name);

uint64_t rng_bits(uint64_t key, uint64_t index);  /* 64 uniform bits */
double rng_uniform(uint64_t key, uint64_t index); /* [0, 1), a multiple of 2^-53 */
double rng_normal(uint64_t key, uint64_t index);  /* mean 0, variance 1: a scaled sum of 12 uniforms
                                                        (Irwin-Hall), so |x| <= 6; exact, no libm */
uint64_t rng_below(uint64_t key, uint64_t index,
                   uint64_t bound); /* uniform in [0, bound), bound > 0 */

#endif
