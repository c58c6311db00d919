/*
 * What the operators of the chunked KDA recurrence share: their buffers, the places of chunks, and
 * the launches of prepare and scan.
 */
#ifndef OPS_KDA_CHUNKS_COMMON_H
#define OPS_KDA_CHUNKS_COMMON_H

#include "kernels/ops/kda_recurrence_common.h"
#include "reference/kda_chunk_terms.h"

/* Buffers of one run of the chunked form: the inputs, all f32 of whole chunks, then these. */
enum {
    CHUNKS_GC = KDA_INPUTS, /* f32 [rows, H, D]; so are u, w and out */
    CHUNKS_U,
    CHUNKS_W,
    CHUNKS_STATE, /* f32 [H, D, D] */
    CHUNKS_OUT,
    CHUNKS_SET
};

/* Which of two sets a buffer is of: the twin's inputs have a pad of zeros. */
enum chunks_twin { CHUNKS_PADDED, CHUNKS_BLANK };
/* Whether the case has a twin: it asks for one, and there are pad rows. */
bool kda_has_blank_twin(const struct problem *p, const struct kda_sizes *n);

/* Add parts of a set, in the order above. */
int kda_add_chunk_inputs(struct problem *p, enum chunks_twin twin, const struct kda_sizes *n,
                         struct err *err);
int kda_add_chunk_terms(struct problem *p, enum chunks_twin twin, enum role role,
                        const struct kda_sizes *n, struct err *err); /* gc, u, w */
int kda_add_chunk_results(struct problem *p, enum chunks_twin twin, const struct kda_sizes *n,
                          struct err *err); /* state, out */

/* The first set's inputs: the T rows by the case's regimes, the pad by its parameter "pad".
   ERR_INPUT for a gate that is no log decay. */
int kda_fill_chunk_inputs(struct problem *p, const struct kda_sizes *n, struct err *err);
/* The inputs from `to` on become the first set's, with a pad of zeros. */
void kda_blank_twin(struct problem *p, int to, const struct kda_sizes *n);

/* Number `index` of a sequence's chunks, head by head, and how many there are. */
struct kda_chunk_place {
    size_t head, first, count; /* tokens [first, first + count) */
};
size_t kda_chunk_places(const struct kda_sizes *n);
struct kda_chunk_place kda_chunk_place(const struct kda_sizes *n, size_t index);
/* The reference's gc, u and w of that chunk; to be released. */
struct kda_chunk_terms kda_chunk_terms_of(const struct kda_sequence *s,
                                          const struct kda_chunk_place *at);

/* What a launch is given; prepare needs neither state nor out. */
struct kda_chunk_call {
    dev_ptr query, key, value, gate, beta;
    dev_ptr gc, u, w, state, out;
    struct kda_sizes sizes;
};
/* Inputs and terms of the set from buffer `first` on; state and out are the caller's to set. */
struct kda_chunk_call kda_chunk_call_of(const struct operator_run *run, int first,
                                        const struct kda_sizes *n);

/* Tokens [first, first + count): every buffer is entered at row `first`. */
int kda_call_prepare(const struct kernel *kernel, const struct kda_chunk_call *c, uint32_t first,
                     uint32_t count, struct err *err);
int kda_call_scan(const struct kernel *kernel, const struct kda_chunk_call *c, uint32_t first,
                  uint32_t count, struct err *err);

#endif
