/* Inputs of the convolution operators. */
#include "kernels/ops/kda_conv_common.h"

#include "base/rng.h"

const char *const conv_biases[] = {"null", "set", NULL};
const char *const conv_states[] = {"carried", "zero", NULL};

double conv_channel_scale(size_t channel)
{
    static const double scale[] = {1.0, 1e-4, 0.0, 40.0};

    return scale[channel / 128 % 4];
}

void conv_fill_rows(struct buffer *b, uint64_t key, size_t rows, size_t stride, size_t dim)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < dim; c++)
            dtype_store(b->dtype, b->init, r * stride + c,
                        conv_channel_scale(c) * rng_normal(key, r * stride + c));
        buffer_poison(b, r * stride + dim, stride - dim);
    }
}

void conv_fill_state(struct buffer *b, uint64_t key, size_t dim, bool zero)
{
    size_t d_conv = b->dim[b->ndim - 1];

    for (size_t i = 0; i < b->count; i++)
        dtype_store(b->dtype, b->init, i,
                    zero ? 0.0 : conv_channel_scale(i / d_conv % dim) * rng_normal(key, i));
}

struct conv_channel conv_channel_of(const float *weight, const float *bias, size_t d_conv,
                                    size_t channel)
{
    return (struct conv_channel){
        .weight = weight + channel * d_conv,
        .window = d_conv,
        .bias = bias != NULL ? bias[channel] : 0.0f,
    };
}
