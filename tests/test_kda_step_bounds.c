/*
 * The bounds of projections, convolution, norms and gates: fp32 models that do what the contract
 * declares, in every order, fused or not, with functions off by their declared ulps, stay below 1
 * on hard inputs; models with one public fault each exceed it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "reference/causal_conv1d.h"
#include "reference/kda_dense.h"
#include "reference/kda_pointwise.h"
#include "tests/kda_step_models.h"

#define VALUES 1e6 /* compared by one verdict: lambda 8.4 */
#define HEAD   128

static double lambda(void)
{
    return bounds_lambda(VALUES, BOUNDS_ALARM);
}

static void keep_max(double *max, double ratio)
{
    if (!(ratio <= *max))
        *max = ratio;
}

static void draw(float *x, size_t n, uint64_t key, double scale, double offset)
{
    for (size_t i = 0; i < n; i++)
        x[i] = to_bf16((float)(offset + scale * rng_normal(key, i)));
}

static void report(const char *what, double right, double least_wrong)
{
    print_message("%-28s right %.3f, least wrong %.3g\n", what, right, least_wrong);
    assert_true(right < 1.0);
    assert_true(right > 0.01);
    assert_true(least_wrong > 1.0);
}

/* --- projections
   ------------------------------------------------------------------------------------- */

enum dense_fault { DENSE_BF16_SUM, DENSE_SHORT, DENSE_FAULTS };

static float dense_wrong(enum dense_fault fault, const float *a, const float *b, size_t k)
{
    float sum = 0.0f;

    for (size_t i = 0; i < (fault == DENSE_SHORT ? k - 8 : k); i++)
        sum = fault == DENSE_BF16_SUM ? to_bf16(sum + a[i] * b[i]) : sum + a[i] * b[i];
    return to_bf16(sum);
}

/* Rows with a mean, and rows whose sums cancel. */
static void check_dense(size_t k, double offset, double *right, double wrong[DENSE_FAULTS])
{
    static float a[4096], b[4096];

    for (uint64_t key = 1; key <= 20; key++) {
        struct arithmetic m;
        unsigned step = 0;

        draw(a, k, key, 1.0, offset);
        draw(b, k, key + 1000, 1.0, offset);
        struct bounded want = kda_dense_element(a, b, k);
        while (arithmetic_next(&m, &step))
            keep_max(right, error_ratio(to_bf16(model_dot(m, a, b, k)), want, lambda()));
        for (int f = 0; f < DENSE_FAULTS; f++)
            keep_max(&wrong[f], error_ratio(dense_wrong(f, a, b, k), want, lambda()));
    }
}

static void test_projections(void **state)
{
    static const size_t k[] = {72, 264, 2304, 4096};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (int cancel = 0; cancel < 2; cancel++) {
            double right = 0, wrong[DENSE_FAULTS] = {0};
            char what[32];

            check_dense(k[i], cancel ? 0.0 : 0.75, &right, wrong);
            snprintf(what, sizeof(what), "dot of %zu%s", k[i], cancel ? ", cancelling" : "");
            report(what, right, fmin(wrong[DENSE_BF16_SUM], wrong[DENSE_SHORT]));
        }
    }
}

/* --- convolution
   ------------------------------------------------------------------------------------- */

enum conv_fault {
    CONV_NO_SILU,
    CONV_SIGMOID,
    CONV_BIAS_LOST,
    CONV_TAPS_REVERSED,
    CONV_OLD_WINDOW,
    CONV_FAULTS
};

static float conv_wrong(enum conv_fault fault, const struct conv_channel *c, const float *window)
{
    struct arithmetic m = {.fused = true};
    float acc = fault == CONV_BIAS_LOST ? 0.0f : c->bias;

    for (int i = 0; i < 4; i++) {
        int tap = fault == CONV_TAPS_REVERSED ? 3 - i : i;
        int from = fault == CONV_OLD_WINDOW && i > 0 ? i - 1 : i;

        acc += window[from] * c->weight[tap];
    }
    if (fault == CONV_NO_SILU)
        return to_bf16(acc);
    return to_bf16(fault == CONV_SIGMOID ? model_sigmoid(m, acc) : model_silu(m, acc));
}

static float conv_right(struct arithmetic m, const struct conv_channel *c, const float *window)
{
    float ones[5] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f}, term[5], taps[5];

    for (int i = 0; i < 4; i++) {
        term[i] = window[i];
        taps[i] = c->weight[i];
    }
    term[4] = ones[4];
    taps[4] = c->bias;
    return model_silu(m, model_dot(m, term, taps, 5));
}

static void check_conv(double scale, double *right, double wrong[CONV_FAULTS])
{
    float weight[4], values[8], state[4];

    for (uint64_t key = 1; key <= 400; key++) {
        struct conv_channel c = {.weight = weight, .window = 4};
        struct arithmetic m;
        unsigned step = 0;

        draw(weight, 4, key, 0.5, 0.1);
        draw(values, 6, key + 1000, scale, 0.0);
        c.bias = values[5];
        for (int i = 0; i < 4; i++) /* carried states are fp32, not bf16 */
            state[i] = values[i] * 1.0009765f;
        struct bounded want = rounded(causal_conv1d_step(&c, state, values[4]), format_bf16);
        while (arithmetic_next(&m, &step))
            keep_max(right, error_ratio(to_bf16(conv_right(m, &c, state)), want, lambda()));
        for (int f = 0; f < CONV_FAULTS; f++)
            keep_max(&wrong[f], error_ratio(conv_wrong(f, &c, state), want, lambda()));
    }
}

static void test_convolution(void **state)
{
    static const double scale[] = {1e-4, 1.0, 40.0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        double right = 0, wrong[CONV_FAULTS] = {0}, least = HUGE_VAL;
        char what[32];

        check_conv(scale[i], &right, wrong);
        for (int f = 0; f < CONV_FAULTS; f++)
            least = fmin(least, wrong[f]);
        snprintf(what, sizeof(what), "convolution, scale %g", scale[i]);
        report(what, right, least);
    }
}

/* --- norms
   ------------------------------------------------------------------------------------------- */

enum norm_fault { NORM_EPS_OUTSIDE, NORM_NO_EPS, NORM_MEAN, NORM_HALF_SUM, NORM_FAULTS };

static float norm_wrong(enum norm_fault fault, const float *x, size_t i, float eps)
{
    struct arithmetic m = {0};
    float sum = model_dot(m, x, x, fault == NORM_HALF_SUM ? HEAD / 2 : HEAD);

    if (fault == NORM_EPS_OUTSIDE)
        return to_bf16(x[i] / (sqrtf(sum) + eps));
    if (fault == NORM_NO_EPS)
        return to_bf16(x[i] / sqrtf(sum));
    return to_bf16(x[i] / sqrtf((fault == NORM_MEAN ? sum / HEAD : sum) + eps));
}

static void check_l2(double norm, double *right, double wrong[NORM_FAULTS])
{
    for (uint64_t key = 1; key <= 40; key++) {
        struct bounded want[HEAD];
        struct arithmetic m;
        unsigned step = 0;
        float x[HEAD];

        draw(x, HEAD, key, norm / sqrt(HEAD), 0.2 * norm / sqrt(HEAD));
        for (int i = 0; i < HEAD; i++)
            want[i] = exactly((double)x[i]);
        kda_l2_norm(want, HEAD, 1e-6f);
        for (int i = 0; i < HEAD; i++)
            want[i] = rounded(want[i], format_bf16);
        while (arithmetic_next(&m, &step)) {
            float square = model_dot(m, x, x, HEAD) + 1e-6f;

            for (int i = 0; i < HEAD; i++)
                keep_max(right,
                         error_ratio(to_bf16(model_over_root(m, x[i], square)), want[i], lambda()));
        }
        for (int f = 0; f < NORM_FAULTS; f++)
            for (size_t i = 0; i < HEAD; i++)
                keep_max(&wrong[f], error_ratio(norm_wrong(f, x, i, 1e-6f), want[i], lambda()));
    }
}

/* The epsilon's faults show on rows of norm 1e-3, the sum's on any. */
static void test_l2_norm(void **state)
{
    double right = 0, tiny[NORM_FAULTS] = {0}, ordinary[NORM_FAULTS] = {0};

    (void)state;
    check_l2(1e-3, &right, tiny);
    check_l2(1.0, &right, ordinary);
    check_l2(300.0, &right, ordinary);
    report("l2 norm", right,
           fmin(fmin(tiny[NORM_EPS_OUTSIDE], tiny[NORM_NO_EPS]),
                fmin(ordinary[NORM_MEAN], ordinary[NORM_HALF_SUM])));
}

enum gated_fault { GATED_SILU, GATED_ONE_PLUS, GATED_SUM, GATED_EPS_OUTSIDE, GATED_FAULTS };

static float gated_wrong(enum gated_fault fault, const float *x, float gate, float weight, size_t i)
{
    struct arithmetic m = {0};
    float sum = model_dot(m, x, x, HEAD);
    float root = sqrtf((fault == GATED_SUM ? sum : sum / HEAD) + 1e-5f);
    float w = fault == GATED_ONE_PLUS ? 1.0f + weight : weight;
    float g = fault == GATED_SILU ? model_silu(m, gate) : model_sigmoid(m, gate);

    if (fault == GATED_EPS_OUTSIDE)
        root = sqrtf(sum / HEAD) + 1e-5f;
    return to_bf16(x[i] / root * w * g);
}

static void check_gated(double rms, double *right, double wrong[GATED_FAULTS])
{
    for (uint64_t key = 1; key <= 20; key++) {
        struct bounded want[HEAD], scratch[HEAD];
        float x[HEAD], gate[HEAD], weight[HEAD];
        struct arithmetic m;
        unsigned step = 0;

        for (int i = 0; i < HEAD; i++)
            x[i] = (float)(rms * (0.2 + rng_normal(key, (uint64_t)i)));
        draw(gate, HEAD, key + 1000, 6.0, 0.0);
        draw(weight, HEAD, key + 2000, 0.4, 0.6);
        kda_o_norm_row(x, gate, weight, HEAD, 1e-5f, scratch, want);
        for (int i = 0; i < HEAD; i++)
            want[i] = rounded(want[i], format_bf16);
        while (arithmetic_next(&m, &step)) {
            float square = model_quotient(m, model_dot(m, x, x, HEAD), HEAD) + 1e-5f;

            for (int i = 0; i < HEAD; i++) {
                float y = model_over_root(m, x[i], square) * weight[i];

                keep_max(right,
                         error_ratio(to_bf16(y * model_sigmoid(m, gate[i])), want[i], lambda()));
            }
        }
        for (int f = 0; f < GATED_FAULTS; f++)
            for (size_t i = 0; i < HEAD; i++)
                keep_max(&wrong[f],
                         error_ratio(gated_wrong(f, x, gate[i], weight[i], i), want[i], lambda()));
    }
}

static void test_gated_norm(void **state)
{
    double right = 0, tiny[GATED_FAULTS] = {0}, ordinary[GATED_FAULTS] = {0};

    (void)state;
    check_gated(1e-3, &right, tiny);
    check_gated(1.0, &right, ordinary);
    report("gated norm", right,
           fmin(fmin(tiny[GATED_EPS_OUTSIDE], ordinary[GATED_SILU]),
                fmin(ordinary[GATED_ONE_PLUS], ordinary[GATED_SUM])));
}

/* --- gate
   -------------------------------------------------------------------------------------------- */

enum gate_fault { GATE_DECAY, GATE_NO_BIAS, GATE_NO_EXP, GATE_BF16_RATE, GATE_FAULTS };

static float gate_model(struct arithmetic m, float rate, float raw, float bias, float lower)
{
    return lower * model_sigmoid(m, rate * (raw + bias));
}

static float gate_wrong(enum gate_fault fault, float raw, float bias, float a_log, float lower)
{
    struct arithmetic m = {0};
    float rate = fault == GATE_NO_EXP ? a_log : model_exp(m, a_log);

    if (fault == GATE_BF16_RATE)
        rate = to_bf16(rate);
    if (fault == GATE_DECAY) /* exponentiated already: the recurrence would do it twice */
        return model_exp(m, gate_model(m, rate, raw, bias, lower));
    return gate_model(m, rate, raw, fault == GATE_NO_BIAS ? 0.0f : bias, lower);
}

static void check_gate(double raw_scale, double rate, double *right, double wrong[GATE_FAULTS])
{
    for (uint64_t key = 1; key <= 2000; key++) {
        float raw = to_bf16((float)(raw_scale * rng_normal(key, 0)));
        float bias = (float)(-4.0 + rng_normal(key, 1)), a_log = (float)det_log(rate);
        struct bounded want = kda_gate_value(raw, bias, a_log, -2.5f);
        struct arithmetic m;
        unsigned step = 0;

        while (arithmetic_next(&m, &step))
            keep_max(right, error_ratio(gate_model(m, model_exp(m, a_log), raw, bias, -2.5f), want,
                                        lambda()));
        for (int f = 0; f < GATE_FAULTS; f++)
            keep_max(&wrong[f],
                     error_ratio(gate_wrong(f, raw, bias, a_log, -2.5f), want, lambda()));
    }
}

static void test_gate(void **state)
{
    static const double rate[] = {0.3, 7.3, 200.6}, raw[] = {1.0, 5.0, 1e4};

    (void)state;
    for (int i = 0; i < 3; i++) {
        double right = 0, wrong[GATE_FAULTS] = {0}, least = HUGE_VAL;
        char what[32];

        for (int j = 0; j < 3; j++)
            check_gate(raw[j], rate[i], &right, wrong);
        for (int f = 0; f < GATE_FAULTS; f++)
            least = fmin(least, wrong[f]);
        snprintf(what, sizeof(what), "gate, exp(A_log) %g", rate[i]);
        report(what, right, least);
    }
}

/* Every finite bf16: half of them far into saturation. */
static void test_sigmoid_of_every_bf16(void **state)
{
    double right = 0, narrow = 0;

    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float x = bf16_to_float((uint16_t)bits);
        struct arithmetic m;
        unsigned step = 0;

        if (!isfinite(x))
            continue;
        struct bounded want = kda_sigmoid(exactly((double)x));
        while (arithmetic_next(&m, &step))
            keep_max(&right, error_ratio(model_sigmoid(m, x), want, lambda()));
        keep_max(&narrow, error_ratio(to_bf16(model_sigmoid(m, x)), want, lambda()));
    }
    report("sigmoid (wrong: bf16)", right, narrow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_projections), cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_l2_norm),     cmocka_unit_test(test_gated_norm),
        cmocka_unit_test(test_gate),        cmocka_unit_test(test_sigmoid_of_every_bf16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
