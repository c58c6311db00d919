/*
 * What the two operators of the token recurrence share: a set of its buffers, the launch of one
 * token of it, what is expected and the work.
 */
#ifndef OPS_KDA_STEPS_COMMON_H
#define OPS_KDA_STEPS_COMMON_H

#include "kernels/ops/kda_recurrence_common.h"
#include "kernels/ops/kda_recurrence_launch.h"

/* Buffers of one run of T tokens: the inputs, query, key and value as bf16, gate and beta as f32,
   then these. */
enum {
    STEPS_STATE = KDA_INPUTS, /* f32 [H, D, D], in place */
    STEPS_OUT,                /* f32 [T, H, D] */
    STEPS_SET
};

/* Adds them under these names. */
int kda_add_steps(struct problem *p, const char *const name[STEPS_SET], const struct kda_sizes *n,
                  struct err *err);
/* Fills the first set by the case's regimes. ERR_INPUT for a gate that is no log decay. */
int kda_fill_steps(struct problem *p, const struct kda_sizes *n, struct err *err);

/* The token's arguments, entering the set from buffer `first` on. */
struct kda_recurrent_args kda_step_args(const struct operator_run *run, int first, size_t token);

/* Expects outputs and state of that set, and returns what it expects. */
struct kda_expected kda_expect_steps(const struct problem *p, const struct reference_env *env,
                                     struct golden *g, int first);

/* Of one set. */
void kda_steps_cost(const struct problem *p, struct cost *cost);

#endif
