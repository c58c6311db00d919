/*
 * The bounds of the token recurrence over thousands of tokens and of the verify step along a
 * chain: an fp32 kernel stays within them at every length, one that narrows its sums or its state
 * does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gdn_model.h"

#define STATES (MODEL_K * MODEL_V)
#define TOKENS 4096
#define STEPS  150

struct walk {
    struct gdr_state exact;
    double value[STATES];
    struct gdr_error column[MODEL_V], element[STATES];
    float state[MODEL_K][MODEL_V]; /* the fp32 kernel's */
};

static void walk_init(struct walk *w, const struct model_case *c)
{
    memset(w, 0, sizeof(*w));
    w->exact = (struct gdr_state){.k_dim = MODEL_K,
                                  .v_dim = MODEL_V,
                                  .scale = 1.0 / sqrt((double)MODEL_K),
                                  .out = format_bf16,
                                  .value = w->value,
                                  .column = w->column,
                                  .element = w->element};
    memcpy(w->value, c->state64, sizeof(w->value));
    memcpy(w->state, c->state, sizeof(w->state));
}

struct ratios {
    struct model_ratio u, output, state;
};

/* One token on both sides, by slot t of the case. */
static void walk_token(struct walk *w, const struct model *m, const struct model_case *c, int t,
                       struct ratios *r)
{
    static struct model_out got;
    struct bounded u[MODEL_V];
    struct bounded output[MODEL_V];
    double lambda = bounds_lambda(1e8, BOUNDS_ALARM);
    struct gdr_token token = {c->query64[t], c->key64[t], c->value64[t],
                              gdn_clamp_gate((double)c->gate[t]), (double)c->beta[t]};
    gdr_step(&w->exact, &token, u, output);
    for (int v = 0; v < MODEL_V; v++) {
        model_token(m, c, &got, w->state, t, v);
        model_compare(&r->u, got.u[t][v], u[v], lambda);
        model_compare(&r->output, got.output[t][v], output[v], lambda);
        for (size_t i = 0; i < MODEL_K; i++)
            model_compare(&r->state, w->state[i][v], gdr_element(&w->exact, i, (size_t)v), lambda);
    }
}

static double walk_tokens(const struct model *m, enum model_gates gates, int tokens, uint64_t seed,
                          struct ratios *r)
{
    static struct model_case c;
    static struct walk w;
    model_tokens(&c, gates, &seed);
    model_random_state(&c, 1.0, &seed);
    walk_init(&w, &c);
    for (int t = 0; t < tokens; t++) {
        if (t % GDN_TOKENS == 0)
            model_tokens(&c, gates, &seed);
        walk_token(&w, m, &c, t % GDN_TOKENS, r);
    }
    return r->state.likely;
}

static const char *const gates_name[] = {"lazy", "strong", "one", "zero", "near one", "mixed"};

static void test_long_recurrence_within(void **state)
{
    (void)state;
    for (int gates = 0; gates < GATE_KINDS; gates++) {
        struct ratios r = {0};
        struct model m = {gates % 2 ? FORM_TOKENS : FORM_TOKENS_DECAY_FIRST,
                          (enum model_order)(gates % ORDERS), gates % 3 == 0, FAULT_NONE};
        walk_tokens(&m, (enum model_gates)gates, TOKENS, 11 + (uint64_t)gates, &r);
        print_message("%-9s u %.4f/%.4f  output %.3f/%.3f  state %.4f/%.4f\n", gates_name[gates],
                      r.u.worst, r.u.likely, r.output.worst, r.output.likely, r.state.worst,
                      r.state.likely);
        assert_true(r.u.likely < 1.0 && r.output.likely < 1.0 && r.state.likely < 1.0);
        assert_true(r.u.worst < 1.0 && r.output.worst < 1.0 && r.state.worst < 1.0);
        assert_true(r.u.likely > 0.01 && r.state.likely > 0.01);
    }
}

/* The likely bound does not fade with the length: it still sees a narrow kernel after any number
   of tokens. */
static void test_narrow_kernels_exceed_at_every_length(void **state)
{
    (void)state;
    static const int lengths[] = {1, 16, 128, 1024};
    for (int fault = FAULT_NARROW_SUMS; fault <= FAULT_NARROW_STATE; fault++)
        for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
            struct ratios all = {0};
            struct model good = {FORM_TOKENS, ORDER_WARPS, 1, FAULT_NONE};
            struct model bad = good;
            static struct model_case c;
            static struct walk w;
            uint64_t seed = 31;
            bad.fault = (enum model_fault)fault;
            model_tokens(&c, GATES_NEAR_ONE, &seed);
            model_random_state(&c, 1.0, &seed);
            walk_init(&w, &c);
            for (int t = 0; t < lengths[n]; t++) {
                struct ratios last = {0};
                if (t % GDN_TOKENS == 0)
                    model_tokens(&c, GATES_NEAR_ONE, &seed);
                walk_token(&w, &bad, &c, t % GDN_TOKENS, &last);
                all = last; /* the last token's ratios alone */
            }
            print_message("fault %d after %4d tokens: state %.1f times the likely bound\n", fault,
                          lengths[n], all.state.likely);
            assert_true(all.state.likely > 1.0);
        }
}

/*
 * Where rounding errors are NOT independent: one token over and over, gate 1. The fp32 state
 * reaches a fixed point and errs the same way at every step. The worst case still holds; the
 * likely one need not, which is why cases draw fresh tokens.
 */
static void test_repeated_token_keeps_the_worst_case(void **state)
{
    (void)state;
    static struct model_case c;
    static struct walk w;
    struct model m = {FORM_TOKENS, ORDER_CHAIN, 0, FAULT_NONE};
    struct ratios r = {0};
    uint64_t seed = 5;
    model_tokens(&c, GATES_ONE, &seed);
    model_random_state(&c, 1.0, &seed);
    walk_init(&w, &c);
    for (int t = 0; t < TOKENS; t++)
        walk_token(&w, &m, &c, 0, &r);
    print_message("one token %d times: state %.3f/%.3f\n", TOKENS, r.state.worst, r.state.likely);
    assert_true(r.state.worst < 1.0 && r.u.worst < 1.0 && r.output.worst < 1.0);
}

struct chain {
    double state[MODEL_K][MODEL_V];
    struct gdr_error before[MODEL_V], after[MODEL_V];
    float kernel[MODEL_K][MODEL_V];
};

/* One verify step from the chain's states, of which `accepted` tokens stay. */
static void chain_step(struct chain *ch, const struct model *m, struct model_case *c, int accepted,
                       double *scratch, struct ratios *r)
{
    static struct model_out got;
    static struct bounded states[GDN_TOKENS][STATES];
    struct bounded output[GDN_TOKENS * MODEL_V];
    struct gdn_results out = {.output = output};
    double lambda = bounds_lambda(1e7, BOUNDS_ALARM);
    memcpy(c->state64, ch->state, sizeof(c->state64));
    memcpy(c->state, ch->kernel, sizeof(c->state));
    struct gdn_operands in = model_operands(c);
    in.before = ch->before;
    for (int t = 0; t < GDN_TOKENS; t++)
        out.state[t] = states[t];
    if (accepted > 0)
        out.after[accepted - 1] = ch->after;
    gdn_verify_head(&in, scratch, &out);
    model_run(m, c, &got);
    for (int t = 0; t < GDN_TOKENS; t++)
        for (int v = 0; v < MODEL_V; v++) {
            model_compare(&r->output, got.output[t][v], output[t * MODEL_V + v], lambda);
            for (int i = 0; i < MODEL_K; i++)
                model_compare(&r->state, got.state[t][i][v], states[t][i * MODEL_V + v], lambda);
        }
    if (accepted == 0)
        return;
    memcpy(ch->before, ch->after, sizeof(ch->before));
    memcpy(ch->kernel, got.state[accepted - 1], sizeof(ch->kernel));
    for (int i = 0; i < STATES; i++)
        ch->state[i / MODEL_V][i % MODEL_V] = states[accepted - 1][i].value;
}

static void test_chain_within(void **state)
{
    (void)state;
    static struct chain ch;
    static struct model_case c;
    double *scratch = malloc(gdn_verify_scratch(MODEL_K) * sizeof(*scratch));
    assert_non_null(scratch);
    for (int gates = 0; gates < GATE_KINDS; gates++) {
        struct ratios r = {0};
        struct model m = {gates % 2 ? FORM_WY : FORM_TOKENS, (enum model_order)(gates % ORDERS), 1,
                          FAULT_NONE};
        uint64_t seed = 400 + (uint64_t)gates;
        memset(&ch, 0, sizeof(ch));
        model_random_state(&c, 1.0, &seed);
        memcpy(ch.state, c.state64, sizeof(ch.state));
        memcpy(ch.kernel, c.state, sizeof(ch.kernel));
        for (int n = 0; n < STEPS; n++) {
            model_tokens(&c, (enum model_gates)gates, &seed);
            chain_step(&ch, &m, &c, (int)(5.0 * model_uniform(&seed)), scratch, &r);
        }
        print_message("%-9s output %.3f/%.3f  state %.4f/%.4f\n", gates_name[gates], r.output.worst,
                      r.output.likely, r.state.worst, r.state.likely);
        assert_true(r.output.likely < 1.0 && r.output.worst < 1.0);
        assert_true(r.state.likely < 1.0 && r.state.worst < 1.0);
        assert_true(r.state.likely > 0.01);
    }
    free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_recurrence_within),
        cmocka_unit_test(test_narrow_kernels_exceed_at_every_length),
        cmocka_unit_test(test_repeated_token_keeps_the_worst_case),
        cmocka_unit_test(test_chain_within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
