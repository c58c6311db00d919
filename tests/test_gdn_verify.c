/*
 * The bounds of the verify step: no fp32 kernel of any form and order exceeds them, narrow ones
 * do; the WY form is the token recurrence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gdn_model.h"

#define STATES (MODEL_K * MODEL_V)
#define CASES  60 /* per gate regime */

struct reference {
    struct bounded u[GDN_TOKENS * MODEL_V], output[GDN_TOKENS * MODEL_V];
    struct bounded state[GDN_TOKENS][STATES];
    struct gdr_error after[GDN_TOKENS][MODEL_V];
};

static void evaluate(const struct model_case *c, struct reference *r)
{
    struct gdn_operands in = model_operands(c);
    struct gdn_results out = {.u = r->u, .output = r->output};
    double *scratch = malloc(gdn_verify_scratch(MODEL_K) * sizeof(*scratch));
    assert_non_null(scratch);
    for (int t = 0; t < GDN_TOKENS; t++) {
        out.state[t] = r->state[t];
        out.after[t] = r->after[t];
    }
    gdn_verify_head(&in, scratch, &out);
    free(scratch);
}

struct ratios {
    struct model_ratio u, output, state;
};

static void measure(const struct model *m, const struct model_case *c, const struct reference *r,
                    struct ratios *out)
{
    static struct model_out got;
    double lambda = bounds_lambda(1e6, BOUNDS_ALARM);
    model_run(m, c, &got);
    for (int t = 0; t < GDN_TOKENS; t++)
        for (int v = 0; v < MODEL_V; v++) {
            model_compare(&out->u, got.u[t][v], r->u[t * MODEL_V + v], lambda);
            model_compare(&out->output, got.output[t][v], r->output[t * MODEL_V + v], lambda);
            for (int i = 0; i < MODEL_K; i++)
                model_compare(&out->state, got.state[t][i][v], r->state[t][i * MODEL_V + v],
                              lambda);
        }
}

static void print_ratios(const char *what, const struct ratios *r)
{
    print_message("%-22s u %.3f/%.3f  output %.3f/%.3f  state %.3f/%.3f\n", what, r->u.worst,
                  r->u.likely, r->output.worst, r->output.likely, r->state.worst, r->state.likely);
}

static void test_every_form_and_order_within(void **state)
{
    (void)state;
    static struct model_case c;
    static struct reference r;
    static const char *const name[] = {"lazy", "strong", "one", "zero", "near one", "mixed"};
    static const double scale[] = {1.0, 0.0, 1e-3, 30.0};
    for (int gates = 0; gates < GATE_KINDS; gates++) {
        struct ratios worst = {0};
        uint64_t seed = 1000 + (uint64_t)gates;
        for (int n = 0; n < CASES; n++) {
            model_tokens(&c, (enum model_gates)gates, &seed);
            model_random_state(&c, scale[n % 4], &seed);
            evaluate(&c, &r);
            for (int form = 0; form < FORMS; form++) {
                struct model m = {(enum model_form)form, (enum model_order)(n / 4 % ORDERS), n % 2,
                                  FAULT_NONE};
                measure(&m, &c, &r, &worst);
            }
        }
        print_ratios(name[gates], &worst);
        assert_true(worst.u.worst <= 1.0 && worst.u.likely <= 1.0);
        assert_true(worst.output.worst <= 1.0 && worst.output.likely <= 1.0);
        assert_true(worst.state.worst <= 1.0 && worst.state.likely <= 1.0);
        assert_true(worst.u.likely > 0.01 && worst.output.likely > 0.01 &&
                    worst.state.likely > 0.01);
    }
}

/* How often a faulty kernel is seen in at least one element of a call. */
static void test_narrow_kernels_exceed(void **state)
{
    (void)state;
    static struct model_case c;
    static struct reference r;
    uint64_t seed = 77;
    for (int fault = FAULT_NARROW_SUMS; fault <= FAULT_NARROW_BETA; fault++) {
        int seen_output = 0;
        int seen_state = 0;
        for (int n = 0; n < CASES; n++) {
            struct model m = {(enum model_form)(n % FORMS), (enum model_order)(n % ORDERS), 1,
                              (enum model_fault)fault};
            struct ratios worst = {0};
            model_tokens(&c, GATES_LAZY, &seed);
            model_random_state(&c, 1.0, &seed);
            evaluate(&c, &r);
            measure(&m, &c, &r, &worst);
            seen_output += worst.output.likely > 1.0 && worst.output.worst > 1.0;
            seen_state += worst.state.likely > 1.0 && worst.state.worst > 1.0;
        }
        print_message("fault %d: seen in the state %d, in the output %d of %d calls\n", fault,
                      seen_state, seen_output, CASES);
        assert_true(seen_state == CASES);
        assert_true(seen_output > CASES * 9 / 10 || fault != FAULT_NARROW_SUMS);
    }
}

static void test_wy_form_is_the_recurrence(void **state)
{
    (void)state;
    static struct model_case c;
    static struct reference r;
    static double h[STATES];
    struct bounded u[MODEL_V];
    struct bounded output[MODEL_V];
    struct gdr_state s = {.k_dim = MODEL_K, .v_dim = MODEL_V, .out = format_bf16, .value = h};
    uint64_t seed = 5;
    s.scale = 1.0 / sqrt((double)MODEL_K);
    for (int n = 0; n < CASES; n++) {
        model_tokens(&c, (enum model_gates)(n % GATE_KINDS), &seed);
        model_random_state(&c, 1.0, &seed);
        evaluate(&c, &r);
        memcpy(h, c.state64, sizeof(h));
        for (int t = 0; t < GDN_TOKENS; t++) {
            struct gdr_token token = {c.query64[t], c.key64[t], c.value64[t],
                                      gdn_clamp_gate((double)c.gate[t]), (double)c.beta[t]};
            gdr_step(&s, &token, u, output);
            for (int v = 0; v < MODEL_V; v++) {
                assert_true(fabs(u[v].value - r.u[t * MODEL_V + v].value) <= 1e-12);
                assert_true(fabs(output[v].value - r.output[t * MODEL_V + v].value) <= 1e-12);
            }
            for (int i = 0; i < STATES; i++)
                assert_true(fabs(h[i] - r.state[t][i].value) <= 1e-12);
        }
    }
}

/* Columns beyond a whole block, and few of them, are the same numbers. */
static void test_any_number_of_columns(void **state)
{
    (void)state;
    enum { WIDE = 19, ROWS = 24 };
    static double h[ROWS * WIDE], vector[3][GDN_TOKENS][ROWS];
    struct bounded wide[GDN_TOKENS * WIDE];
    struct bounded narrow[GDN_TOKENS];
    double column[ROWS];
    double *scratch = malloc(gdn_verify_scratch(ROWS) * sizeof(*scratch));
    struct gdn_operands in = {.k_dim = ROWS, .v_dim = WIDE, .state = h};
    struct gdn_results out = {.output = wide};
    uint64_t seed = 9;
    for (int i = 0; i < ROWS * WIDE; i++)
        h[i] = model_normal(&seed);
    for (int t = 0; t < GDN_TOKENS; t++) {
        for (int i = 0; i < 3 * ROWS; i++)
            vector[i / ROWS][t][i % ROWS] = 0.2 * model_normal(&seed);
        in.query[t] = vector[0][t];
        in.key[t] = vector[1][t];
        in.value[t] = vector[2][t];
        in.gate[t] = 0.9;
        in.beta[t] = 0.5;
    }
    gdn_verify_head(&in, scratch, &out);
    for (int v = 0; v < WIDE; v++) {
        struct gdn_operands one = in;
        for (int i = 0; i < ROWS; i++)
            column[i] = h[i * WIDE + v];
        one.v_dim = 1;
        one.state = column;
        for (int t = 0; t < GDN_TOKENS; t++)
            one.value[t] = in.value[t] + v;
        gdn_verify_head(&one, scratch, &(struct gdn_results){.output = narrow});
        for (int t = 0; t < GDN_TOKENS; t++)
            assert_memory_equal(&narrow[t], &wide[t * WIDE + v], sizeof(narrow[t]));
    }
    free(scratch);
}

static void test_gate_clamp_is_in_floats(void **state)
{
    (void)state;
    assert_true(gdn_clamp_gate(0.0) == (double)1e-6f && gdn_clamp_gate(-1.0) == (double)1e-6f);
    assert_true(gdn_clamp_gate(1.0) == (double)0.999999f &&
                gdn_clamp_gate(2.0) == (double)0.999999f);
    assert_true(gdn_clamp_gate(0.5) == 0.5 && gdn_clamp_gate((double)NAN) == (double)1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form_and_order_within),
        cmocka_unit_test(test_narrow_kernels_exceed),
        cmocka_unit_test(test_wy_form_is_the_recurrence),
        cmocka_unit_test(test_any_number_of_columns),
        cmocka_unit_test(test_gate_clamp_is_in_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
