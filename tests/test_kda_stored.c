/* The references of the convolution and the gate against stored results of public
   implementations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/causal_conv1d.h"
#include "reference/kda_pointwise.h"
#include "tests/npy_array.h"

/* The stored results are fp64 of another order of operations. */
#define SAME 1e-14

static void assert_close(double got, double want)
{
    if (!(fabs(got - want) <= SAME * (1.0 + fabs(want))))
        fail_msg("got %.17g, stored %.17g", got, want);
}

static struct npy_array stored(const char *set, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", set, name);
    return npy_array_read(path);
}

#define WINDOW 4

struct conv_set {
    const char *name;
    size_t channels, tokens, state_len; /* of each of the two sequences */
    bool has_state;
};

/* One channel of one sequence: outputs, and the state afterwards. */
static void check_channel(const struct conv_set *set, size_t row, const struct npy_array array[5])
{
    const double *x = array[0].value, *weight = array[1].value, *y = array[2].value;
    const double *state_out = array[3].value, *state_in = array[4].value;
    float taps[WINDOW], state[WINDOW] = {0};
    const struct conv_channel channel = {.weight = taps, .window = WINDOW};

    for (size_t i = 0; i < WINDOW; i++)
        taps[i] = (float)weight[row % set->channels * WINDOW + i];
    for (size_t i = 0; set->has_state && i < set->state_len; i++)
        state[WINDOW - set->state_len + i] = (float)state_in[row * set->state_len + i];
    for (size_t t = 0; t < set->tokens; t++) {
        size_t at = row * set->tokens + t;

        assert_close(causal_conv1d_step(&channel, state, (float)x[at]).value, y[at]);
    }
    for (size_t i = 0; i < set->state_len; i++)
        assert_true((double)state[WINDOW - set->state_len + i] ==
                    state_out[row * set->state_len + i]);
}

static void check_conv(const struct conv_set *set)
{
    struct npy_array array[5] = {stored(set->name, "x.bf16"),
                                 stored(set->name, "weight.bf16"),
                                 stored(set->name, "y"),
                                 stored(set->name, "state_out.bf16"),
                                 {0, NULL}};

    if (set->has_state)
        array[4] = stored(set->name, "state_in.bf16");
    assert_int_equal(array[0].count, 2 * set->channels * set->tokens);
    assert_int_equal(array[2].count, array[0].count);
    for (size_t row = 0; row < 2 * set->channels; row++)
        check_channel(set, row, array);
    for (size_t i = 0; i < 5; i++)
        free(array[i].value);
}

static void test_conv_of_one_token(void **state)
{
    (void)state;
    check_conv(&(struct conv_set){"conv_update_t1", 96, 1, 4, true});
}

static void test_conv_of_four_tokens(void **state)
{
    (void)state;
    check_conv(&(struct conv_set){"conv_update_t4_s3", 96, 4, 3, true});
}

static void test_conv_of_a_prompt(void **state)
{
    (void)state;
    check_conv(&(struct conv_set){"conv_prefill_t9", 96, 9, 3, false});
}

static void test_gate_with_a_lower_bound(void **state)
{
    struct npy_array x = stored("gate_kda_lb", "x.bf16"), g = stored("gate_kda_lb", "g");
    struct npy_array a_log = stored("gate_kda_lb", "A_log"), dt = stored("gate_kda_lb", "dt_bias");
    size_t heads = a_log.count, channels = dt.count / heads;

    (void)state;
    assert_int_equal(x.count, 64 * dt.count);
    for (size_t i = 0; i < x.count; i++) {
        size_t head = i / channels % heads, at = i % dt.count;
        struct bounded got =
            kda_gate_value((float)x.value[i], (float)dt.value[at], (float)a_log.value[head], -5.0f);

        assert_close(got.value, g.value[i]);
    }
    free(dt.value);
    free(a_log.value);
    free(g.value);
    free(x.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_of_one_token),
        cmocka_unit_test(test_conv_of_four_tokens),
        cmocka_unit_test(test_conv_of_a_prompt),
        cmocka_unit_test(test_gate_with_a_lower_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
