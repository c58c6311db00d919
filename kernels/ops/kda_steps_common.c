/* Buffers, launches and expectations of the token recurrence. */
#include "kernels/ops/kda_steps_common.h"

#include <stdlib.h>

#include "kernels/ops/expect_common.h"
#include "reference/kda_recurrence.h"

int kda_add_steps(struct problem *p, const char *const name[STEPS_SET], const struct kda_sizes *n,
                  struct err *err)
{
    for (int i = KDA_QUERY; i <= KDA_VALUE; i++)
        if (kda_add_vectors(p, name[i], DTYPE_BF16, ROLE_IN, n, err) < 0)
            return -1;
    if (kda_add_vectors(p, name[KDA_GATE], DTYPE_F32, ROLE_IN, n, err) < 0 ||
        kda_add_scalars(p, name[KDA_BETA], DTYPE_F32, ROLE_IN, n, err) < 0 ||
        kda_add_state(p, name[STEPS_STATE], ROLE_INOUT, n, err) < 0)
        return -1;
    return kda_add_vectors(p, name[STEPS_OUT], DTYPE_F32, ROLE_OUT, n, err);
}

int kda_fill_steps(struct problem *p, const struct kda_sizes *n, struct err *err)
{
    kda_fill_state(p, STEPS_STATE);
    return kda_fill_inputs(p, 0, n, err);
}

struct kda_recurrent_args kda_step_args(const struct operator_run *run, int first, size_t token)
{
    const struct kda_sizes n = kda_sizes_of(run->problem, false);
    const dev_ptr *ptr = run->ptr + first;
    size_t row = token * n.heads * n.head_dim;

    return (struct kda_recurrent_args){
        .q = ptr[KDA_QUERY] + row * dtype_size(DTYPE_BF16),
        .k = ptr[KDA_KEY] + row * dtype_size(DTYPE_BF16),
        .v = ptr[KDA_VALUE] + row * dtype_size(DTYPE_BF16),
        .gate = ptr[KDA_GATE] + row * dtype_size(DTYPE_F32),
        .beta = ptr[KDA_BETA] + token * n.heads * dtype_size(DTYPE_F32),
        .state = ptr[STEPS_STATE],
        .out = ptr[STEPS_OUT] + row * dtype_size(DTYPE_F32),
        .heads = n.heads,
        .head_dim = n.head_dim,
        .scale = kda_scale(n.head_dim),
    };
}

struct kda_expected kda_expect_steps(const struct problem *p, const struct reference_env *env,
                                     struct golden *g, int first)
{
    struct kda_sizes n = kda_sizes_of(p, false);
    float *state = buffer_floats(&p->buffer[first + STEPS_STATE]);
    const struct kda_sequence s = kda_sequence_of(p, first, &n);
    const struct kda_expected e = {
        .out = golden_open(g, p, first + STEPS_OUT),
        .state = golden_open(g, p, first + STEPS_STATE),
        .lambda = verdict_lambda(p->buffer[STEPS_OUT].count + p->buffer[STEPS_STATE].count),
    };

    kda_expect(&s, env, state, 0, 0, &e);
    free(state);
    return e;
}

void kda_steps_cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = kda_sizes_of(p, false);
    double vectors = (double)n.tokens * n.heads * n.head_dim, scalars = (double)n.tokens * n.heads;
    double cells = (double)p->buffer[STEPS_STATE].count;

    /* One launch a token; the state that they hand on may stay in the L2. */
    cost->read_bytes = vectors * (3 * 2 + 4) + scalars * 4 + cells * 4;
    cost->write_bytes = vectors * 4 + cells * 4;
    cost->flops = kda_recurrence_flops(&n);
    cost->unit = COST_FP32;
}
