/*
 * SplitMix64 read at any position: the n-th output of a stream is a mix of seed + n * gamma (G.
 * Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), so it
 * needs no state.
 */
#include "base/rng.h"

#define GAMMA 0x9e3779b97f4a7c15u /* SplitMix64: 2^64 / golden ratio, odd */

/* Names hash by FNV-1a, 64 bit (Fowler, Noll, Vo; draft-eastlake-fnv). */
#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* Keep the words behind rng_normal and rng_below apart from those of rng_bits at equal key
   and index: nothing-up-my-sleeve numbers, the first two initial words of SHA-512 (FIPS
   180-4, 5.3.5). */
#define SALT_NORMAL 0x6a09e667f3bcc908u
#define SALT_BELOW  0xbb67ae8584caa73bu

#define NORMAL_FIELD      21 /* three fields of 21 bits in a word, four words: 12 uniforms */
#define NORMAL_WORDS      4
#define NORMAL_PER_WORD   3
#define NORMAL_FIELD_MASK (((uint64_t)1 << NORMAL_FIELD) - 1)

/* The output function of SplitMix64 (D. Stafford's "Mix13" constants). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_key(uint64_t seed, const char *name)
{
    uint64_t h = FNV_BASIS;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * FNV_PRIME;
    return mix(h ^ mix(seed + GAMMA));
}

uint64_t rng_bits(uint64_t key, uint64_t index)
{
    return mix(key + (index + 1) * GAMMA);
}

double rng_uniform(uint64_t key, uint64_t index)
{
    return (double)(rng_bits(key, index) >> 11) * 0x1p-53;
}

double rng_normal(uint64_t key, uint64_t index)
{
    uint64_t sum = 0;

    for (uint64_t w = 0; w < NORMAL_WORDS; w++) {
        uint64_t bits = rng_bits(key ^ SALT_NORMAL, index * NORMAL_WORDS + w);

        for (int f = 0; f < NORMAL_PER_WORD; f++)
            sum += (bits >> (f * NORMAL_FIELD)) & NORMAL_FIELD_MASK;
    }
    /* 12 fields, each uniform on 0 .. 2^21-1 with mean (2^21-1)/2: the sum less its mean,
       scaled to unit intervals. Variance 12 (2^42-1)/12 / 2^42 = 1 - 2^-42. Every step is
       exact. */
    return ((double)sum - 6.0 * (double)NORMAL_FIELD_MASK) * 0x1p-21;
}

uint64_t rng_below(uint64_t key, uint64_t index, uint64_t bound)
{
    /* 2^64 mod bound: values below it would favour the small remainders, and are drawn again. */
    uint64_t unfair = (0 - bound) % bound;
    uint64_t x = rng_bits(key ^ SALT_BELOW, index);

    while (x < unfair)
        x = mix(x + GAMMA);
    return x % bound;
}
