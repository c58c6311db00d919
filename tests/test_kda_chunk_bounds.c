/* Bounds of the chunked recurrence: no right fp32 kernel exceeds them, every wrong one does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/kda_chunk.h"
#include "tests/kda_chunk_models.h"

#define SEED 5

struct run {
    struct kda_case c;
    struct kda_state state;
    struct kda_field out;
    size_t chunk;
    double lambda;
};

static void run_init(struct run *r, size_t dim, size_t count, size_t chunk, enum gate_regime regime,
                     double lower)
{
    kda_case_draw(&r->c, dim, count, regime, lower, SEED);
    struct kda_tokens t = kda_case_tokens(&r->c);
    r->chunk = chunk;
    kda_state_init(&r->state, dim);
    kda_field_init(&r->out, count * dim);
    kda_state_load(&r->state, r->c.state);
    kda_chunk_run(&t, chunk, &r->state, &r->out);
    r->lambda = bounds_lambda((double)(count * dim + dim * dim), BOUNDS_ALARM);
}

static void run_release(struct run *r)
{
    kda_state_release(&r->state);
    kda_field_release(&r->out);
    kda_case_release(&r->c);
}

static struct ratios stray(const struct run *r, enum model m)
{
    size_t dim = r->c.dim, count = r->c.count;
    float *state = xcalloc(dim * dim, sizeof(*state)), *out = xcalloc(count * dim, sizeof(*out));
    struct ratios ratios = {0.0, 0.0};

    memcpy(state, r->c.state, dim * dim * sizeof(*state));
    model_chunked(m, &r->c, r->chunk, state, out);
    ratios_take(&ratios, &r->out, out, count * dim, r->lambda);
    ratios_take(&ratios, &r->state.cell, state, dim * dim, r->lambda);
    free(state);
    free(out);
    return ratios;
}

static const struct {
    size_t dim, count, chunk;
} sizes[] = {{64, 5, 4}, {32, 33, 32}, {32, 40, 8}, {16, 100, 32}};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void right_models_stay_within(void **unused)
{
    (void)unused;
    for (int regime = 0; gate_regimes[regime] != NULL; regime++)
        for (size_t i = 0; i < SIZES; i++) {
            struct run r;
            run_init(&r, sizes[i].dim, sizes[i].count, sizes[i].chunk, (enum gate_regime)regime,
                     -5.0);
            for (enum model m = MODEL_RIGHT; m <= MODEL_FAST_EXP; m++) {
                struct ratios x = stray(&r, m);
                if (!(x.worst <= 1.0 && x.likely <= 1.0 && x.likely >= 0.005))
                    fail_msg("%s D=%zu T=%zu C=%zu model %d: worst %g, likely %g",
                             gate_regimes[regime], r.c.dim, r.c.count, r.chunk, m, x.worst,
                             x.likely);
            }
            run_release(&r);
        }
}

/* The models that are right ones in some regimes: without decay there is none to misplace, and
   where decays reach exp(-5) a token, nothing is left of the state that a chunk began with. */
static bool harmless(enum model m, int regime)
{
    if (m == MODEL_LAST_DECAY)
        return regime != GATE_MODEL && regime != GATE_LAZY;
    return m == MODEL_TWICE_DECAYED && regime == GATE_ONE;
}

static void wrong_models_exceed(void **unused)
{
    static const enum model wrong[] = {MODEL_BF16_SUMS,  MODEL_BF16_STATE, MODEL_BF16_BETA,
                                       MODEL_LAST_DECAY, MODEL_UNSCALED,   MODEL_TWICE_DECAYED};

    (void)unused;
    for (int regime = 0; gate_regimes[regime] != NULL; regime++)
        for (size_t i = 0; i < SIZES; i++) {
            struct run r;
            run_init(&r, sizes[i].dim, sizes[i].count, sizes[i].chunk, (enum gate_regime)regime,
                     -5.0);
            for (size_t m = 0; m < sizeof(wrong) / sizeof(wrong[0]); m++) {
                if (harmless(wrong[m], regime))
                    continue;
                struct ratios x = stray(&r, wrong[m]);
                if (!(x.likely > 1.0))
                    fail_msg("%s D=%zu T=%zu C=%zu model %d: likely only %g", gate_regimes[regime],
                             r.c.dim, r.c.count, r.chunk, wrong[m], x.likely);
            }
            run_release(&r);
        }
}

/* gc, u and w of the model of prepare against theirs. */
static void prepared_terms_stay_within(void **unused)
{
    (void)unused;
    for (int regime = 0; gate_regimes[regime] != NULL; regime++) {
        struct kda_case c;
        struct kda_chunk_terms x;
        struct model_chunk m;
        size_t dim = 64, count = 32;
        kda_case_draw(&c, dim, count, (enum gate_regime)regime, -5.0, SEED);
        struct kda_tokens t = kda_case_tokens(&c);
        kda_chunk_terms_init(&x, count, dim);
        kda_chunk_prepare(&t, &x);
        for (enum model kind = MODEL_RIGHT; kind <= MODEL_BF16_SUMS; kind++) {
            struct ratios gc = {0.0, 0.0}, uw = {0.0, 0.0};
            double lambda = bounds_lambda(3.0 * (double)(count * dim), BOUNDS_ALARM);
            model_chunk_open(kind, &c, 0, count, &m);
            model_prepare(kind, &m);
            ratios_take(&gc, &x.gc, m.gc, count * dim, lambda);
            ratios_take(&uw, &x.u, m.u, count * dim, lambda);
            ratios_take(&uw, &x.w, m.w, count * dim, lambda);
            assert_true(gc.likely <= 1.0);
            if (kind <= MODEL_FAST_EXP)
                assert_true(uw.worst <= 1.0 && uw.likely <= 1.0 && uw.likely > 0.005);
            else
                assert_true(uw.likely > 10.0);
            model_chunk_close(&m);
        }
        kda_chunk_terms_release(&x);
        kda_case_release(&c);
    }
}

/* One chunk of `c` from `first` on: the model's terms become the fp64 ones rounded to fp32, and x
   those. */
static void share_terms(struct model_chunk *m, struct kda_chunk_terms *x, size_t values)
{
    struct kda_field *fields[] = {&x->gc, &x->u, &x->w};
    float *floats_of[] = {m->gc, m->u, m->w};

    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; i < values; i++) {
            floats_of[f][i] = (float)fields[f]->value[i];
            fields[f]->value[i] = (double)floats_of[f][i];
        }
        memset(fields[f]->worst, 0, 3 * fields[f]->count * sizeof(double));
    }
}

/* scan alone, on terms that are exact inputs, over several chunks. */
static void scan_of_given_terms_stays_within(void **model)
{
    const enum model kind = *(const enum model *)*model;
    size_t dim = 32, chunk = 16, chunks = 5, values = chunk * dim;

    for (int regime = 0; gate_regimes[regime] != NULL; regime++) {
        struct kda_case c;
        struct kda_chunk_terms x;
        struct kda_state s;
        struct kda_field rows;
        struct ratios ratios = {0.0, 0.0};
        double lambda = bounds_lambda((double)(chunks * values + dim * dim), BOUNDS_ALARM);
        kda_case_draw(&c, dim, chunks * chunk, (enum gate_regime)regime, -5.0, SEED);
        kda_chunk_terms_init(&x, chunk, dim);
        kda_field_init(&rows, values);
        kda_state_init(&s, dim);
        kda_state_load(&s, c.state);
        float *out = xcalloc(values, sizeof(*out));
        for (size_t i = 0; i < chunks; i++) {
            struct kda_tokens t = kda_case_tokens(&c);
            struct model_chunk m;
            t.count = chunk;
            t.query += i * values;
            t.key += i * values;
            t.value += i * values;
            t.gate += i * values;
            t.beta += i * chunk;
            kda_chunk_prepare(&t, &x);
            model_chunk_open(kind, &c, i * chunk, chunk, &m);
            share_terms(&m, &x, values);
            kda_chunk_scan(&t, &x, kda_chunk_carry(&t, &x), &s, &rows);
            model_scan(kind, &m, c.state, out);
            ratios_take(&ratios, &rows, out, values, lambda);
            model_chunk_close(&m);
        }
        ratios_take(&ratios, &s.cell, c.state, dim * dim, lambda);
        if (!(ratios.worst <= 1.0 && ratios.likely <= 1.0 && ratios.likely > 0.005))
            fail_msg("%s: model %d: worst %g, likely %g", gate_regimes[regime], kind, ratios.worst,
                     ratios.likely);
        free(out);
        kda_state_release(&s);
        kda_field_release(&rows);
        kda_chunk_terms_release(&x);
        kda_case_release(&c);
    }
}

/* -5 a token is -160 a chunk: exponentials underflow, bounds do not. */
static void strong_gates_stay_finite(void **unused)
{
    static const double lowers[] = {-5.0, -300.0};

    (void)unused;
    for (size_t l = 0; l < 2; l++) {
        struct run r;
        run_init(&r, 32, 96, 32, GATE_LOWER, lowers[l]);
        size_t blind = 0;
        for (size_t i = 0; i < r.out.count; i++) {
            struct bounded x = kda_field_at(&r.out, i);
            assert_true(x.worst < 1e-3);
            blind += x.value != 0.0 && !(bounded_likely(x, r.lambda) < fabs(x.value));
        }
        assert_true(blind < r.out.count / 20);
        struct ratios x = stray(&r, MODEL_RIGHT);
        assert_true(x.worst <= 1.0 && x.likely <= 1.0);
        run_release(&r);
    }
}

/* Sums so long that fp32 says nothing about a difference: no finite bound is claimed. */
static void absurd_gates_have_no_bound(void **unused)
{
    struct run r;

    (void)unused;
    run_init(&r, 16, 32, 32, GATE_LOWER, -1e6);
    struct bounded x = kda_field_at(&r.out, 31 * 16);
    assert_false(x.worst < (double)INFINITY);
    run_release(&r);
}

int main(void)
{
    static enum model right = MODEL_RIGHT, fast = MODEL_FAST_EXP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_models_stay_within),
        cmocka_unit_test(wrong_models_exceed),
        cmocka_unit_test(prepared_terms_stay_within),
        cmocka_unit_test_prestate(scan_of_given_terms_stays_within, &right),
        cmocka_unit_test_prestate(scan_of_given_terms_stays_within, &fast),
        cmocka_unit_test(strong_gates_stay_finite),
        cmocka_unit_test(absurd_gates_have_no_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
