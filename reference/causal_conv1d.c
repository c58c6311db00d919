/* fp64 convolution with the bound of an fp32 kernel. */
#include "reference/causal_conv1d.h"

#include "reference/kda_pointwise.h"

struct bounded causal_conv1d_step(const struct conv_channel *channel, float *state, float x)
{
    struct bounded window[CAUSAL_CONV1D_MAX_WINDOW + 1], tap[CAUSAL_CONV1D_MAX_WINDOW + 1];
    size_t n = channel->window;
    struct bounded acc;

    for (size_t i = 0; i + 1 < n; i++)
        state[i] = state[i + 1];
    state[n - 1] = x;
    for (size_t i = 0; i < n; i++) {
        window[i] = exactly((double)state[i]);
        tap[i] = exactly((double)channel->weight[i]);
    }
    /* The bias is one more term of the sum, wherever in the order a kernel adds it. */
    window[n] = exactly((double)channel->bias);
    tap[n] = exactly(1.0);
    acc = dot(window, 1, tap, 1, n + 1, (double)(n + 1), format_fp32);
    return kda_silu(acc);
}
