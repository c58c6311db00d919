/*
 * What the operators of the KDA recurrence share: the inputs' regimes, the domain check of the
 * gate, and expectations from the references over all heads.
 */
#ifndef OPS_KDA_RECURRENCE_COMMON_H
#define OPS_KDA_RECURRENCE_COMMON_H

#include "problem/fill.h"
#include "problem/operator.h"
#include "reference/kda_recurrence.h"

/* Choices of the parameters; the numbers behind "lower". */
extern const char *const kda_lowers[];
extern const char *const kda_betas[];  /* mixed: near 0, near 1 and between; low; high */
extern const char *const kda_states[]; /* carried, zero */
extern const char
    *const kda_decays[]; /* log; linear: what a GDN caller would pass, refused by kda_check_gate */
extern const char *const kda_pads[]; /* what rows t >= T hold: poison, blank (zeros), huge */

/* The parameters of every operator of the recurrence, after its sizes. KDA_REGIME_PARAMS is five
   entries. */
#define KDA_REGIME_PARAMS                                                                          \
    {.key = "gate", .max = 6, .choices = gate_regimes},                                            \
        {.key = "lower", .max = 2, .choices = kda_lowers},                                         \
        {.key = "beta", .max = 2, .choices = kda_betas},                                           \
        {.key = "state", .max = 1, .choices = kda_states},                                         \
    {                                                                                              \
        .key = "decay", .max = 1, .choices = kda_decays                                            \
    }

#define KDA_RECURRENCE_CONTRACT                                                                    \
    "fp32 state and sums, bf16 or fp32 operands; sums over D in any order, multiply-adds fused "   \
    "or not; exp(x) within 2 + 1.173 |x| ulp, subnormal results possibly flushed"
#define KDA_CHUNK_CONTRACT                                                                         \
    "fp32 throughout; gc in sequence or by a scan tree, exponents as differences of gc, forward "  \
    "substitution by rows, sums in any order, multiply-adds fused or not; exp(x) within "          \
    "2 + 1.173 |x| ulp, subnormal results possibly flushed"

/* Sizes of a case: parameters H, D, T, and C where the operator has it (else rows = tokens). */
struct kda_sizes {
    uint32_t heads, head_dim, tokens, chunk;
    size_t rows; /* tokens, padded to whole chunks */
};
struct kda_sizes kda_sizes_of(const struct problem *p, bool chunked);

/* Adds [rows, H, D], [rows, H] or [H, D, D]; *id may be NULL. */
int kda_add_vectors(struct problem *p, const char *name, enum dtype dtype, enum role role,
                    const struct kda_sizes *n, struct err *err);
int kda_add_scalars(struct problem *p, const char *name, enum dtype dtype, enum role role,
                    const struct kda_sizes *n, struct err *err);
int kda_add_state(struct problem *p, const char *name, enum role role, const struct kda_sizes *n,
                  struct err *err);

/* The inputs of a run are consecutive buffers in this order. */
enum { KDA_QUERY, KDA_KEY, KDA_VALUE, KDA_GATE, KDA_BETA, KDA_INPUTS };

/* Fill by the case's regimes, from the seed and the buffer's name; rows from T on are left. */
void kda_fill_unit(struct problem *p, int id,
                   const struct kda_sizes *n); /* query, key: unit rows, some 0, 1e-3 */
/* Values, and the states that they make, are of unit size but for a few channels of 2^20, 2^-20. */
void kda_fill_value(struct problem *p, int id, const struct kda_sizes *n);
void kda_fill_gate(struct problem *p, int id, const struct kda_sizes *n);
void kda_fill_beta(struct problem *p, int id, const struct kda_sizes *n);
void kda_fill_state(struct problem *p, int id);
/* All inputs from buffer `first` on, and the gate's domain checked. */
int kda_fill_inputs(struct problem *p, int first, const struct kda_sizes *n, struct err *err);
/* Rows from T on of a [rows, ..] buffer hold what the parameter "pad" says. */
void kda_fill_pad(struct problem *p, int id, const struct kda_sizes *n);

/* ERR_INPUT names the first gate of the T rows that is no log decay (> 0 or NaN). */
int kda_check_gate(const struct problem *p, int id, const struct kda_sizes *n, struct err *err);

/* The operands of all heads: element (t, h, d) of a matrix lies at t * stride + h * D + d, of
   beta at t * stride + h; stride 0 stands for H * D, of beta H. Unused ones may be NULL. */
struct kda_operand {
    const void *data;
    enum dtype dtype;
    size_t stride;
};
struct kda_sequence {
    size_t heads, head_dim, tokens;
    struct kda_operand query, key, value, gate, beta;
    double scale;
};
struct kda_operand kda_operand_of(const struct problem *p, int id); /* initial contents */
/* The inputs from buffer `first` on, with the launchers' scale. */
struct kda_sequence kda_sequence_of(const struct problem *p, int first, const struct kda_sizes *n);
float kda_scale(size_t head_dim); /* 1 / sqrt(D) as the launchers pass it */

/* Tokens [first, first + count) of one head, widened; owned by the caller. */
struct kda_packed {
    struct kda_tokens tokens;
    double *block;
};
void kda_packed_init(struct kda_packed *x, size_t head_dim, size_t capacity);
void kda_packed_release(struct kda_packed *x);
void kda_packed_load(struct kda_packed *x, const struct kda_sequence *s, size_t head, size_t first,
                     size_t count);

/*
 * Expects what the recurrence makes of the sequence from `state` (f32 [H, D, D]): out (t, h, d)
 * at (t * H + h) * D + d, and the state after it; either may be NULL. Values are the token
 * recurrence's. chunk 0: with the bounds of the token kernel. Else with those of the chunk
 * kernels, whose chunks of `chunk` tokens start over at token `split` (a multiple of nothing; 0
 * for one call).
 */
struct kda_expected {
    struct expectation *out, *state;
    double lambda;
};
void kda_expect(const struct kda_sequence *s, const struct reference_env *env, const float *state,
                size_t chunk, size_t split, const struct kda_expected *e);

/* Copies expectations [first, first + count) of `from` to the same place of `to`. */
void kda_expect_same(struct expectation *to, const struct expectation *from, size_t count);

/* D^2 multiply-adds each for the two sums and the update, and the decay: per token and head. */
double kda_recurrence_flops(const struct kda_sizes *n);

#endif
