/* The KDA recurrence and its chunked form against stored results of public reference code, and
   each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/kda_chunk.h"
#include "tests/kda_data.h"

static const struct stored_case sets[] = {
    {"kda_t1_h4_d128", 4, 128, 1, true},           {"kda_t5_h1_d128_states", 1, 128, 5, true},
    {"kda_t31_h1_d128_nearlb", 1, 128, 31, false}, {"kda_t33_h2_d64_zero_rows", 2, 64, 33, true},
    {"kda_t64_h1_d128", 1, 128, 64, true},         {"kda_t100_h1_d128", 1, 128, 100, true},
};
#define SETS (sizeof(sets) / sizeof(sets[0]))

/* fp64 arithmetic in another order. */
#define AGREE 1e-12

struct result {
    struct kda_state state;
    struct kda_field out;
};

/* chunk 0: token by token. */
static void run(const struct kda_case *c, size_t chunk, struct result *r)
{
    struct kda_tokens t = kda_case_tokens(c);

    kda_state_init(&r->state, c->dim);
    kda_field_init(&r->out, c->count * c->dim);
    kda_state_load(&r->state, c->state);
    if (chunk == 0)
        kda_recurrence_run(&t, &r->state, &r->out);
    else
        kda_chunk_run(&t, chunk, &r->state, &r->out);
}

static void result_release(struct result *r)
{
    kda_state_release(&r->state);
    kda_field_release(&r->out);
}

static double largest_difference(const double *a, const double *b, size_t n)
{
    double top = 0.0;
    for (size_t i = 0; i < n; i++)
        top = !(fabs(a[i] - b[i]) <= top) ? fabs(a[i] - b[i]) : top;
    return top;
}

static void against_stored(size_t chunk)
{
    for (size_t i = 0; i < SETS; i++)
        for (size_t head = 0; head < sets[i].heads; head++) {
            struct kda_case c;
            struct result r;
            kda_case_load(&c, &sets[i], head);
            run(&c, chunk, &r);
            double out = largest_difference(r.out.value, c.out, c.count * c.dim);
            double last = largest_difference(r.state.cell.value, c.last, c.dim * c.dim);
            if (!(out <= AGREE && last <= AGREE))
                fail_msg("%s head %zu chunk %zu: out %g, state %g", sets[i].name, head, chunk, out,
                         last);
            result_release(&r);
            kda_case_release(&c);
        }
}

static void tokens_match_stored(void **unused)
{
    (void)unused;
    against_stored(0);
}

static void chunks_match_stored(void **unused)
{
    static const size_t chunks[] = {1, 2, 5, 16, 32, 64};

    (void)unused;
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
        against_stored(chunks[i]);
}

/* Over all regimes of the gate, and at every length around a chunk's. */
static void chunks_match_tokens(void **unused)
{
    (void)unused;
    for (int regime = 0; gate_regimes[regime] != NULL; regime++)
        for (size_t count = 1; count <= 66; count += count < 3 ? 1 : 15) {
            struct kda_case c;
            struct result tokens, chunks;
            kda_case_draw(&c, 32, count, (enum gate_regime)regime, -5.0, count);
            run(&c, 0, &tokens);
            run(&c, 32, &chunks);
            double out = largest_difference(tokens.out.value, chunks.out.value, count * c.dim);
            double last =
                largest_difference(tokens.state.cell.value, chunks.state.cell.value, c.dim * c.dim);
            if (!(out <= AGREE && last <= AGREE))
                fail_msg("%s T=%zu: out %g, state %g", gate_regimes[regime], count, out, last);
            result_release(&tokens);
            result_release(&chunks);
            kda_case_release(&c);
        }
}

/* Two runs of 10 and 23 tokens are one of 33, radii included. */
static void runs_continue(void **unused)
{
    struct kda_case c;
    struct result whole, parts;

    (void)unused;
    kda_case_draw(&c, 48, 33, GATE_MIXED, -5.0, 3);
    run(&c, 0, &whole);
    kda_state_init(&parts.state, c.dim);
    kda_state_load(&parts.state, c.state);
    kda_field_init(&parts.out, 23 * c.dim);
    struct kda_tokens t = kda_case_tokens(&c);
    t.count = 10;
    kda_recurrence_run(&t, &parts.state, &parts.out);
    t.count = 23;
    t.query += 10 * c.dim;
    t.key += 10 * c.dim;
    t.value += 10 * c.dim;
    t.gate += 10 * c.dim;
    t.beta += 10;
    kda_recurrence_run(&t, &parts.state, &parts.out);
    assert_memory_equal(parts.out.value, whole.out.value + 10 * c.dim, 23 * c.dim * sizeof(double));
    assert_memory_equal(parts.out.worst, whole.out.worst + 10 * c.dim, 23 * c.dim * sizeof(double));
    assert_memory_equal(parts.state.cell.fixed, whole.state.cell.fixed,
                        c.dim * c.dim * sizeof(double));
    result_release(&whole);
    result_release(&parts);
    kda_case_release(&c);
}

/* The quick form of the recurrence gives the same bits. */
static void values_alone_are_the_same(void **unused)
{
    struct kda_case c;
    struct result whole;
    struct kda_state state;
    struct kda_field out;

    (void)unused;
    kda_case_draw(&c, 48, 33, GATE_MIXED, -5.0, 3);
    run(&c, 0, &whole);
    kda_state_init(&state, c.dim);
    kda_state_load(&state, c.state);
    kda_field_init(&out, c.count * c.dim);
    struct kda_tokens t = kda_case_tokens(&c);
    kda_recurrence_values(&t, &state, &out);
    assert_memory_equal(out.value, whole.out.value, c.count * c.dim * sizeof(double));
    assert_memory_equal(state.cell.value, whole.state.cell.value, c.dim * c.dim * sizeof(double));
    kda_field_release(&out);
    kda_state_release(&state);
    result_release(&whole);
    kda_case_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_match_stored),       cmocka_unit_test(chunks_match_stored),
        cmocka_unit_test(chunks_match_tokens),       cmocka_unit_test(runs_continue),
        cmocka_unit_test(values_alone_are_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
