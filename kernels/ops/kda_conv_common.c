/* Inputs of the convolution operators. */
#include "kernels/ops/kda_conv_common.h"

#include <stdlib.h>

#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "problem/fill.h"

const char *const conv_biases[] = {"null", "set", NULL};
const char *const conv_states[] = {"carried", "zero", NULL};

int conv_add_weights(struct problem *p, struct err *err)
{
    const struct dim channel = {"channel", case_u32(&p->tc, "dim")};
    const struct dim tap = {"tap", case_u32(&p->tc, "d_conv")}, none = {NULL, 0};

    if (add_rows(p, "weight", DTYPE_BF16, ROLE_IN, channel, tap, err) < 0)
        return -1;
    return add_rows(p, "bias", DTYPE_BF16, ROLE_IN, channel, none, err);
}

static double channel_scale(size_t channel)
{
    static const double scale[] = {1.0, 1e-4, 0.0, 40.0};

    return scale[channel / 128 % 4];
}

/* `rows` rows of `dim` channels, `stride` apart; poison in the gaps. */
static void fill_rows(struct buffer *b, uint64_t key, size_t rows, size_t stride, size_t dim)
{
    for (size_t r = 0; r < rows && !b->hollow; r++) {
        for (size_t c = 0; c < dim; c++)
            dtype_store(b->dtype, b->init, r * stride + c,
                        channel_scale(c) * rng_normal(key, r * stride + c));
        buffer_poison(b, r * stride + dim, stride - dim);
    }
}

static void fill_state(struct buffer *b, uint64_t key, size_t dim, bool zero)
{
    size_t d_conv = b->dim[b->ndim - 1];

    for (size_t i = 0; i < b->count && !b->hollow; i++)
        dtype_store(b->dtype, b->init, i,
                    zero ? 0.0 : channel_scale(i / d_conv % dim) * rng_normal(key, i));
}

void conv_fill_inputs(struct problem *p)
{
    struct buffer *x = &p->buffer[CONV_X], *weight = &p->buffer[CONV_WEIGHT];
    uint64_t seed = p->tc.seed;
    size_t dim = case_u32(&p->tc, "dim");

    fill_state(&p->buffer[CONV_STATE], rng_key(seed, "conv_state"), dim,
               case_u32(&p->tc, "state") != 0);
    fill_rows(x, rng_key(seed, "x"), x->dim[0], x->dim[1], dim);
    fill_normal(weight, rng_key(seed, "weight"), 0, weight->count, 0.5, 0.1);
    fill_rows(&p->buffer[CONV_BIAS], rng_key(seed, "bias"), 1, dim, dim);
}

struct conv_operands conv_operands_of(const struct problem *p)
{
    return (struct conv_operands){
        .state = buffer_floats(&p->buffer[CONV_STATE]),
        .x = buffer_floats(&p->buffer[CONV_X]),
        .weight = buffer_floats(&p->buffer[CONV_WEIGHT]),
        .bias = case_u32(&p->tc, "bias") ? buffer_floats(&p->buffer[CONV_BIAS]) : NULL,
        .window = case_u32(&p->tc, "d_conv"),
    };
}

void conv_operands_release(struct conv_operands *o)
{
    free(o->bias);
    free(o->weight);
    free(o->x);
    free(o->state);
}

struct bounded conv_step(const struct conv_operands *o, size_t channel, size_t state, float x)
{
    const struct conv_channel taps = {
        .weight = o->weight + channel * o->window,
        .window = o->window,
        .bias = o->bias != NULL ? o->bias[channel] : 0.0f,
    };

    return causal_conv1d_step(&taps, o->state + state * o->window, x);
}
