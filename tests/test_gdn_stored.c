/* The references against stored fp64 results of another implementation (tests/data/gdn.md). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/detmath.h"
#include "reference/gated_delta_verify.h"
#include "tests/npy_array.h"

#define TOLERANCE 1e-12 /* relative to the largest value of the array */

struct stored_case {
    const char *name;
    size_t tokens, nk, nv, k_dim, v_dim;
    int has_h0, has_states;
};

static const struct stored_case cases[] = {
    {"gdn_t1_k2v4_d128", 1, 2, 4, 128, 128, 1, 0},
    {"gdn_t4_k1v2_d128_states", 4, 1, 2, 128, 128, 1, 1},
    {"gdn_t17_k2v4_d64", 17, 2, 4, 64, 64, 1, 0},
    {"gdn_t17_k2v4_d32_strong", 17, 2, 4, 32, 32, 1, 0},
    {"gdn_t17_k2v4_k64v32", 17, 2, 4, 64, 32, 1, 0},
    {"gdn_t64_k1v2_d128", 64, 1, 2, 128, 128, 0, 0},
};

enum array {
    ARRAY_Q,
    ARRAY_K,
    ARRAY_V,
    ARRAY_G,
    ARRAY_BETA,
    ARRAY_O,
    ARRAY_HT,
    ARRAY_H0,
    ARRAY_STATES,
    ARRAYS
};

struct stored {
    const struct stored_case *c;
    struct npy_array a[ARRAYS];
};

static struct npy_array read_array(const struct stored_case *c, const char *array)
{
    char name[128];
    snprintf(name, sizeof(name), "%s/%s", c->name, array);
    return npy_array_read(name);
}

/* x / sqrt(sum x^2 + 1e-6), in place, every row of `dim`. */
static void normalise(struct npy_array *a, size_t dim)
{
    for (size_t r = 0; r < a->count / dim; r++) {
        double *row = a->value + r * dim;
        double sum = 1e-6;
        for (size_t i = 0; i < dim; i++)
            sum += row[i] * row[i];
        for (size_t i = 0; i < dim; i++)
            row[i] /= sqrt(sum);
    }
}

static void stored_init(struct stored *s, const struct stored_case *c)
{
    static const char *const names[ARRAYS] = {"q.bf16", "k.bf16", "v.bf16", "g",     "beta",
                                              "o",      "ht",     "h0",     "states"};
    *s = (struct stored){.c = c};
    for (int i = 0; i < ARRAYS; i++)
        if ((i != ARRAY_H0 || c->has_h0) && (i != ARRAY_STATES || c->has_states))
            s->a[i] = read_array(c, names[i]);
    assert_int_equal(s->a[ARRAY_O].count, c->tokens * c->nv * c->v_dim);
    assert_int_equal(s->a[ARRAY_HT].count, c->nv * c->k_dim * c->v_dim);
    normalise(&s->a[ARRAY_Q], c->k_dim);
    normalise(&s->a[ARRAY_K], c->k_dim);
}

static void stored_release(struct stored *s)
{
    for (int i = 0; i < ARRAYS; i++)
        free(s->a[i].value);
}

static struct gdr_token token_of(const struct stored *s, size_t t, size_t head)
{
    const struct stored_case *c = s->c;
    size_t key_head = head / (c->nv / c->nk);
    return (struct gdr_token){
        .query = s->a[ARRAY_Q].value + (t * c->nk + key_head) * c->k_dim,
        .key = s->a[ARRAY_K].value + (t * c->nk + key_head) * c->k_dim,
        .value = s->a[ARRAY_V].value + (t * c->nv + head) * c->v_dim,
        .gate = det_exp(s->a[ARRAY_G].value[t * c->nv + head]),
        .beta = s->a[ARRAY_BETA].value[t * c->nv + head],
    };
}

static void assert_close(const struct npy_array *want, size_t first, size_t n, const double *got,
                         double tolerance)
{
    double largest = 0.0;
    for (size_t i = 0; i < want->count; i++)
        largest = fmax(largest, fabs(want->value[i]));
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(got[i] - want->value[first + i]) <= tolerance * largest);
}

static double *initial_state(const struct stored *s, size_t head)
{
    size_t n = s->c->k_dim * s->c->v_dim;
    double *h = calloc(n, sizeof(*h));
    assert_non_null(h);
    if (s->c->has_h0)
        memcpy(h, s->a[ARRAY_H0].value + head * n, n * sizeof(*h));
    return h;
}

static void recur_head(const struct stored *s, size_t head)
{
    const struct stored_case *c = s->c;
    struct bounded output[128];
    double row[128];
    struct gdr_state state = {.k_dim = c->k_dim,
                              .v_dim = c->v_dim,
                              .scale = 1.0 / sqrt((double)c->k_dim),
                              .out = format_bf16,
                              .value = initial_state(s, head)};
    for (size_t t = 0; t < c->tokens; t++) {
        struct gdr_token token = token_of(s, t, head);
        gdr_step(&state, &token, NULL, output);
        for (size_t v = 0; v < c->v_dim; v++)
            row[v] = output[v].value;
        assert_close(&s->a[ARRAY_O], (t * c->nv + head) * c->v_dim, c->v_dim, row, TOLERANCE);
        if (c->has_states) /* stored as floats */
            assert_close(&s->a[ARRAY_STATES], (t * c->nv + head) * c->k_dim * c->v_dim,
                         c->k_dim * c->v_dim, state.value, 1e-7);
    }
    assert_close(&s->a[ARRAY_HT], head * c->k_dim * c->v_dim, c->k_dim * c->v_dim, state.value,
                 TOLERANCE);
    free(state.value);
}

static void test_token_recurrence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored s;
        stored_init(&s, &cases[i]);
        for (size_t head = 0; head < cases[i].nv; head++)
            recur_head(&s, head);
        stored_release(&s);
    }
}

/* Four tokens from t on by the verify step. Returns 0 when a gate would be clamped, which the
   stored results do not do. */
static int verify_four(const struct stored *s, size_t t, size_t head, double *h,
                       struct bounded *output, struct bounded *after)
{
    const struct stored_case *c = s->c;
    double *scratch = calloc(gdn_verify_scratch(c->k_dim), sizeof(*scratch));
    struct gdn_operands in = {.k_dim = c->k_dim, .v_dim = c->v_dim, .state = h};
    struct gdn_results out = {.output = output, .state = {[3] = after}};
    int clamped = 0;
    for (size_t j = 0; j < GDN_TOKENS; j++) {
        struct gdr_token token = token_of(s, t + j, head);
        in.query[j] = token.query;
        in.key[j] = token.key;
        in.value[j] = token.value;
        in.gate[j] = token.gate;
        in.beta[j] = token.beta;
        clamped |= gdn_clamp_gate(token.gate) != token.gate;
    }
    gdn_verify_head(&in, scratch, &out);
    free(scratch);
    return !clamped;
}

/* Whole groups of four tokens; true when the stored results could be compared to the end. */
static int verify_tokens(const struct stored *s, size_t head)
{
    const struct stored_case *c = s->c;
    size_t n = c->k_dim * c->v_dim;
    struct bounded *output = calloc(GDN_TOKENS * c->v_dim, sizeof(*output));
    struct bounded *after = calloc(n, sizeof(*after));
    double *h = initial_state(s, head);
    double row[128];
    size_t t = 0;
    for (; t + GDN_TOKENS <= c->tokens; t += GDN_TOKENS) {
        if (!verify_four(s, t, head, h, output, after))
            break;
        for (size_t j = 0; j < GDN_TOKENS; j++) {
            for (size_t v = 0; v < c->v_dim; v++)
                row[v] = output[j * c->v_dim + v].value;
            assert_close(&s->a[ARRAY_O], ((t + j) * c->nv + head) * c->v_dim, c->v_dim, row,
                         TOLERANCE);
        }
        for (size_t i = 0; i < n; i++)
            h[i] = after[i].value;
    }
    if (t == c->tokens)
        assert_close(&s->a[ARRAY_HT], head * n, n, h, TOLERANCE);
    free(output);
    free(after);
    free(h);
    return t == c->tokens;
}

static void test_verify_step(void **state)
{
    (void)state;
    int whole = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stored s;
        stored_init(&s, &cases[i]);
        for (size_t head = 0; head < cases[i].nv; head++)
            whole += verify_tokens(&s, head);
        stored_release(&s);
    }
    /* Two cases of whole groups with two heads each; one head has a gate that would be clamped. */
    assert_int_equal(whole, 3);
}

/* The gate that models feed the kernel, by the portable functions. */
static void test_gate(void **state)
{
    (void)state;
    enum { HEADS = 12 };
    struct npy_array x = npy_array_read("gate_gdn/x.bf16");
    struct npy_array a_log = npy_array_read("gate_gdn/A_log");
    struct npy_array dt_bias = npy_array_read("gate_gdn/dt_bias");
    struct npy_array g = npy_array_read("gate_gdn/g");
    assert_int_equal(g.count, x.count);
    for (size_t i = 0; i < g.count; i++) {
        size_t head = i % HEADS;
        double got = -det_exp(a_log.value[head]) * det_softplus(x.value[i] + dt_bias.value[head]);
        /* the stored softplus(y) is y above 20: off by exp(-20) = 2e-9 at most */
        double linear = x.value[i] + dt_bias.value[head] > 20.0 ? 2.1e-9 / 20.0 : 0.0;
        assert_true(fabs(got - g.value[i]) <= (1e-14 + linear) * fabs(g.value[i]));
    }
    free(x.value);
    free(a_log.value);
    free(dt_bias.value);
    free(g.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_recurrence),
        cmocka_unit_test(test_verify_step),
        cmocka_unit_test(test_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
