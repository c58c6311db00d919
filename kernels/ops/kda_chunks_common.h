/*
 * What the operators of the chunked KDA recurrence share: their inputs and the launch of prepare
 * and scan.
 */
#ifndef OPS_KDA_CHUNKS_COMMON_H
#define OPS_KDA_CHUNKS_COMMON_H

#include "kernels/ops/kda_recurrence_common.h"

/* Buffers of one run of the chunked form, in this order from some first one on. */
enum { CHUNKS_QUERY, CHUNKS_KEY, CHUNKS_VALUE, CHUNKS_GATE, CHUNKS_BETA, CHUNKS_INPUTS };

/* Adds the five inputs, f32 [rows, H, D] (beta [rows, H]), with `suffix` after their names. */
int kda_add_chunk_inputs(struct problem *p, const char *suffix, const struct kda_sizes *n,
                         struct err *err);
/* Fills those from buffer `first` on: the T rows by the case's regimes, the pad by its parameter
   "pad" where the operator has one (else zeros). ERR_INPUT for a gate that is no log decay. */
int kda_fill_chunk_inputs(struct problem *p, int first, const struct kda_sizes *n, bool pad,
                          struct err *err);
/* The inputs from `to` on become those from `from` on, with a pad of zeros. */
void kda_blank_twin(struct problem *p, int to, int from, const struct kda_sizes *n);

/* They as the reference's sequence. */
struct kda_sequence kda_chunk_sequence(const struct problem *p, int first,
                                       const struct kda_sizes *n);

/* One prepare and one scan over tokens [first, first + count): every buffer is entered at row
   `first`. */
struct kda_chunk_call {
    const struct kernel *prepare, *scan;
    dev_ptr query, key, value, gate, beta;
    dev_ptr gc, u, w, state, out;
    struct kda_sizes sizes;
};
int kda_launch_chunks(const struct kda_chunk_call *c, uint32_t first, uint32_t count,
                      struct err *err);

#endif
