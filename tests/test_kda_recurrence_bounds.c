/* Bounds of the token recurrence: no right fp32 kernel exceeds them, every wrong one does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/detmath.h"
#include "tests/kda_models.h"

#define SEED 11

struct run {
    struct kda_case c;
    struct kda_state state;
    struct kda_field out;
    double lambda;
};

static void run_init(struct run *r, size_t dim, size_t count, enum gate_regime regime, double lower)
{
    kda_case_draw(&r->c, dim, count, regime, lower, SEED);
    struct kda_tokens t = kda_case_tokens(&r->c);
    kda_state_init(&r->state, dim);
    kda_field_init(&r->out, count * dim);
    kda_state_load(&r->state, r->c.state);
    kda_recurrence_run(&t, &r->state, &r->out);
    r->lambda = bounds_lambda((double)(count * dim + dim * dim), BOUNDS_ALARM);
}

static void run_release(struct run *r)
{
    kda_state_release(&r->state);
    kda_field_release(&r->out);
    kda_case_release(&r->c);
}

/* How far the model strays, outputs and last state together. */
static struct ratios stray(const struct run *r, enum model m)
{
    size_t dim = r->c.dim, count = r->c.count;
    float *state = xcalloc(dim * dim, sizeof(*state)), *out = xcalloc(count * dim, sizeof(*out));
    struct ratios ratios = {0.0, 0.0};

    memcpy(state, r->c.state, dim * dim * sizeof(*state));
    model_recurrent(m, &r->c, state, out);
    ratios_take(&ratios, &r->out, out, count * dim, r->lambda);
    ratios_take(&ratios, &r->state.cell, state, dim * dim, r->lambda);
    free(state);
    free(out);
    return ratios;
}

static const struct {
    size_t dim, count;
} sizes[] = {{128, 1}, {64, 5}, {32, 33}, {32, 200}};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void right_models_stay_within(void **unused)
{
    (void)unused;
    for (int regime = 0; gate_regimes[regime] != NULL; regime++)
        for (size_t i = 0; i < SIZES; i++) {
            struct run r;
            run_init(&r, sizes[i].dim, sizes[i].count, (enum gate_regime)regime, -5.0);
            for (enum model m = MODEL_RIGHT; m <= MODEL_FAST_EXP; m++) {
                struct ratios x = stray(&r, m);
                if (!(x.worst <= 1.0 && x.likely <= 1.0))
                    fail_msg("%s D=%zu T=%zu model %d: worst %g, likely %g", gate_regimes[regime],
                             sizes[i].dim, sizes[i].count, m, x.worst, x.likely);
                if (!(x.likely >= 0.005)) /* a bound nothing comes near proves nothing */
                    fail_msg("%s D=%zu T=%zu model %d: likely only %g", gate_regimes[regime],
                             sizes[i].dim, sizes[i].count, m, x.likely);
            }
            run_release(&r);
        }
}

static void wrong_models_exceed(void **unused)
{
    static const enum model wrong[] = {MODEL_BF16_SUMS, MODEL_BF16_STATE, MODEL_BF16_BETA,
                                       MODEL_LATE_DECAY, MODEL_UNSCALED};

    (void)unused;
    for (int regime = 0; gate_regimes[regime] != NULL; regime++)
        for (size_t i = 0; i < SIZES; i++) {
            struct run r;
            run_init(&r, sizes[i].dim, sizes[i].count, (enum gate_regime)regime, -5.0);
            for (size_t m = 0; m < sizeof(wrong) / sizeof(wrong[0]); m++) {
                /* Without a decay its place does not matter; and the one beta of one token, 1 -
                   1e-6, is 1 in bf16. */
                if ((wrong[m] == MODEL_LATE_DECAY && regime == GATE_ONE) ||
                    (wrong[m] == MODEL_BF16_BETA && sizes[i].count == 1))
                    continue;
                struct ratios x = stray(&r, wrong[m]);
                if (!(x.likely > 2.0))
                    fail_msg("%s D=%zu T=%zu model %d: likely only %g", gate_regimes[regime],
                             sizes[i].dim, sizes[i].count, wrong[m], x.likely);
            }
            run_release(&r);
        }
}

/* Thousands of tokens without decay: errors pile up and the bound must neither break nor explode.
   */
static void long_runs_stay_useful(void **unused)
{
    struct run r;

    (void)unused;
    run_init(&r, 16, 4000, GATE_ONE, -5.0);
    struct ratios right = stray(&r, MODEL_RIGHT), wrong = stray(&r, MODEL_BF16_STATE);
    assert_true(right.worst <= 1.0 && right.likely <= 1.0);
    assert_true(wrong.likely > 5.0);
    run_release(&r);
}

/* Log decays down to -1000 a token underflow to a decay of zero. */
static void strongest_gates_stay_finite(void **unused)
{
    struct run r;

    (void)unused;
    run_init(&r, 32, 40, GATE_STRONG, -1e30);
    for (size_t i = 0; i < r.out.count; i++)
        assert_true(kda_field_at(&r.out, i).worst < 1e-4);
    struct ratios x = stray(&r, MODEL_RIGHT);
    assert_true(x.worst <= 1.0 && x.likely <= 1.0);
    run_release(&r);
}

/* Operands a little off, as stated: within; unstated: without. */
static void operand_errors_are_covered(void **unused)
{
    struct run r;
    struct kda_case off;
    double error[4][20] = {{0}}, value[20 * 32];
    size_t dim = 32, count = 20;

    (void)unused;
    run_init(&r, dim, count, GATE_LAZY, -5.0);
    kda_case_draw(&off, dim, count, GATE_LAZY, -5.0, SEED);
    for (size_t i = 0; i < count * dim; i++) {
        double x = i % 3 ? 1e-3 : -1e-3;
        off.query[i] = (double)(float)(off.query[i] * (1.0 + x));
        off.key[i] = (double)(float)(off.key[i] * (1.0 - x));
        off.value[i] = (double)(float)(off.value[i] + x);
        off.gate[i] = (double)(float)(off.gate[i] * (1.0 + x));
        error[0][i / dim] += pow(off.query[i] - r.c.query[i], 2.0);
        error[1][i / dim] += pow(off.key[i] - r.c.key[i], 2.0);
        error[2][i / dim] = fmax(error[2][i / dim], fabs(off.gate[i] - r.c.gate[i]));
        value[i] = fabs(off.value[i] - r.c.value[i]);
    }
    for (size_t t = 0; t < count; t++) {
        off.beta[t] = (double)(float)(off.beta[t] * 0.999);
        error[0][t] = sqrt(error[0][t]);
        error[1][t] = sqrt(error[1][t]);
        error[3][t] = fabs(off.beta[t] - r.c.beta[t]);
    }
    float *out = xcalloc(count * dim, sizeof(*out));
    model_recurrent(MODEL_RIGHT, &off, off.state, out);
    struct ratios unstated = {0.0, 0.0}, stated = {0.0, 0.0};
    ratios_take(&unstated, &r.out, out, count * dim, r.lambda);
    assert_true(unstated.likely > 5.0);
    struct kda_tokens t = kda_case_tokens(&r.c);
    t.query_error = error[0];
    t.key_error = error[1];
    t.gate_error = error[2];
    t.beta_error = error[3];
    t.value_error = value;
    kda_state_load(&r.state, r.c.state);
    kda_recurrence_run(&t, &r.state, &r.out);
    ratios_take(&stated, &r.out, out, count * dim, r.lambda);
    ratios_take(&stated, &r.state.cell, off.state, dim * dim, r.lambda);
    assert_true(stated.worst <= 1.0 && stated.likely <= 1.0 && stated.likely > 0.01);
    free(out);
    kda_case_release(&off);
    run_release(&r);
}

/* A NaN or an infinite operand must end in a bound that nothing passes. */
static void garbage_has_no_bound(void **unused)
{
    (void)unused;
    for (int what = 0; what < 4; what++) {
        struct run r;
        run_init(&r, 16, 3, GATE_MODEL, -5.0);
        double *spoilt[] = {r.c.key, r.c.value, r.c.gate, r.c.beta};
        spoilt[what][0] = what == 1 ? (double)INFINITY : (double)NAN;
        struct kda_tokens t = kda_case_tokens(&r.c);
        kda_state_load(&r.state, r.c.state);
        kda_recurrence_run(&t, &r.state, &r.out);
        size_t last = 2 * 16;
        struct bounded x = kda_field_at(&r.out, last);
        double likely = bounded_likely(x, r.lambda);
        assert_false(fabs(0.0 - x.value) <= likely && likely < (double)INFINITY);
        run_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_models_stay_within),   cmocka_unit_test(wrong_models_exceed),
        cmocka_unit_test(long_runs_stay_useful),      cmocka_unit_test(strongest_gates_stay_finite),
        cmocka_unit_test(operand_errors_are_covered), cmocka_unit_test(garbage_has_no_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
