/*
 * T tokens through a whole KDA layer twice: decoded one at a time, and prefilled at once.
 *
 * Each path is judged stage by stage. And the paths are held against each other: their
 * projections sum in different orders and prefill rounds q and k to bf16 before their norm as
 * well as after it, so the two recurrences run on operands that differ, by known bits. Copies of
 * prefill's core output and state are expected where the recurrence on DECODE's operands puts
 * them, within the chunk kernels' bound and what those differences can do (struct kda_tokens,
 * *_error).
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda_layer_common.h"
#include "problem/operator.h"
#include "reference/kda_chunk.h"
#include "reference/kda_recurrence.h"

static const struct param params[] = {
    {.key = "hidden", .fallback = 256, .min = 8, .max = 65536},
    {.key = "H", .fallback = 2, .min = 1, .max = 1024},
    {.key = "T", .fallback = 5, .min = 1, .max = 4096},
    {.key = "gate", .max = 1, .choices = layer_gates},
    {.key = "lower", .max = 2, .choices = kda_lowers},
    {.key = "state", .max = 1, .choices = kda_states},
    {.key = NULL},
};

#define CORE_COPY  "core_of_prefill_by_decode"
#define STATE_COPY "state_of_prefill_by_decode"

static struct layer_sizes sizes_of(const struct problem *p, bool prefill)
{
    return layer_sizes_of(p, "T", prefill);
}

static int shape(struct problem *p, struct err *err)
{
    struct layer_sizes decode = sizes_of(p, false), prefill = sizes_of(p, true);
    const struct dim row = {"row", prefill.padded}, qkv = {"channel", prefill.qkv};
    const struct dim key = {"key", prefill.qkv}, value = {"value", LAYER_HEAD_DIM};

    if (layer_add_inputs(p, &decode, err) < 0 || layer_add_stages(p, &decode, TWIN_NONE, err) < 0 ||
        layer_add_stages(p, &prefill, TWIN_PREFILL, err) < 0 ||
        add_rows(p, CORE_COPY, DTYPE_F32, ROLE_OUT, row, qkv, err) < 0)
        return -1;
    return add_rows(p, STATE_COPY, DTYPE_F32, ROLE_OUT, key, value, err);
}

static int copy(const struct operator_run *run, int from, const char *to, struct err *err)
{
    return device_copy(run->device, run->ptr[problem_find(run->problem, to)], run->ptr[from],
                       run->problem->buffer[from].bytes, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct layer_sizes one = sizes_of(run->problem, false), all = sizes_of(run->problem, true);
    struct layer_run decode = layer_run_of(run, &one, TWIN_NONE);
    struct layer_run prefill = layer_run_of(run, &all, TWIN_PREFILL);

    for (uint32_t row = 0; row < one.rows; row++)
        if (layer_project(&decode, row, 1, err) < 0 ||
            layer_decode_rows(&decode, row, 1, err) < 0 || layer_finish(&decode, row, 1, err) < 0)
            return err_context(err, "decode of row %u", row);
    if (layer_project(&prefill, 0, all.rows, err) < 0 || layer_prefill_rows(&prefill, err) < 0 ||
        layer_finish(&prefill, 0, all.rows, err) < 0)
        return err_context(err, "prefill");
    if (copy(run, prefill.set.id[L_CORE], CORE_COPY, err) < 0)
        return -1;
    return copy(run, prefill.set.id[L_STATE], STATE_COPY, err);
}

/* ---- decode against prefill ---- */

struct paths {
    struct kda_sequence decode, prefill;
    const float *state;
    struct expectation *core, *state_after;
    double lambda;
};

/* The 2-norm (or the largest) of the differences of two rows of n. */
static double distance(const double *a, const double *b, size_t n, bool largest)
{
    double sum = 0.0, top = 0.0;

    for (size_t i = 0; i < n; i++) {
        double x = fabs(a[i] - b[i]);
        sum += x * x;
        top = !(x <= top) ? x : top; /* a NaN stays */
    }
    return largest ? top : sqrt(sum);
}

/* How far prefill's operands are from decode's, into arrays of `errors`, which has room for (4 +
   D) T. */
static void state_errors(struct kda_tokens *decode, const struct kda_tokens *prefill,
                         double *errors)
{
    size_t n = decode->count, d = decode->head_dim;
    double *query = errors, *key = errors + n, *gate = errors + 2 * n, *beta = errors + 3 * n;
    double *value = errors + 4 * n;

    for (size_t t = 0; t < n; t++) {
        query[t] = distance(decode->query + t * d, prefill->query + t * d, d, false);
        key[t] = distance(decode->key + t * d, prefill->key + t * d, d, false);
        gate[t] = distance(decode->gate + t * d, prefill->gate + t * d, d, true);
        beta[t] = fabs(decode->beta[t] - prefill->beta[t]);
    }
    for (size_t i = 0; i < n * d; i++)
        value[i] = fabs(decode->value[i] - prefill->value[i]);
    decode->query_error = query;
    decode->key_error = key;
    decode->gate_error = gate;
    decode->beta_error = beta;
    decode->value_error = value;
}

/* The value of `a`, with the radii of both: the kernels' own and what the operands' differences
   do. */
static struct bounded joined(const struct kda_field *a, const struct kda_field *b, size_t i)
{
    struct bounded x = kda_field_at(a, i), y = kda_field_at(b, i);

    x.worst += y.worst;
    x.spread = sqrt(x.spread * x.spread + y.spread * y.spread);
    x.fixed += y.fixed;
    return x;
}

static void expect_head(size_t head, void *ctx)
{
    const struct paths *x = ctx;
    size_t d = LAYER_HEAD_DIM, n = x->decode.tokens, heads = x->decode.heads;
    double *errors = xcalloc((4 + d) * n, sizeof(*errors));
    struct kda_packed decode, prefill;
    struct kda_state by_decode, by_prefill;
    struct kda_field rows, radii;

    kda_packed_init(&decode, d, n);
    kda_packed_init(&prefill, d, n);
    kda_packed_load(&decode, &x->decode, head, 0, n);
    kda_packed_load(&prefill, &x->prefill, head, 0, n);
    state_errors(&decode.tokens, &prefill.tokens, errors);
    kda_state_init(&by_decode, d);
    kda_state_init(&by_prefill, d);
    kda_state_load(&by_decode, x->state + head * d * d);
    kda_state_load(&by_prefill, x->state + head * d * d);
    kda_field_init(&rows, n * d);
    kda_field_init(&radii, n * d);
    kda_recurrence_run(&decode.tokens, &by_decode, &rows);
    kda_chunk_run(&prefill.tokens, LAYER_CHUNK, &by_prefill, &radii);
    for (size_t i = 0; i < n * d; i++)
        expect_bounded(x->core, (i / d * heads + head) * d + i % d, joined(&rows, &radii, i),
                       x->lambda);
    for (size_t i = 0; i < d * d; i++)
        expect_bounded(x->state_after, head * d * d + i,
                       joined(&by_decode.cell, &by_prefill.cell, i), x->lambda);
    kda_field_release(&radii);
    kda_field_release(&rows);
    kda_state_release(&by_prefill);
    kda_state_release(&by_decode);
    kda_packed_release(&prefill);
    kda_packed_release(&decode);
    free(errors);
}

static int stages(const struct outcome *out, const struct reference_env *env, struct golden *g,
                  struct err *err)
{
    const struct problem *p = out->problem;
    struct layer_sizes decode = sizes_of(p, false), prefill = sizes_of(p, true);
    int core = problem_find(p, CORE_COPY), state = problem_find(p, STATE_COPY);
    const struct layer_set set = layer_set_of(p, TWIN_NONE);

    (void)err;
    layer_expect(out, env, g, &decode, TWIN_NONE);
    layer_expect(out, env, g, &prefill, TWIN_PREFILL);
    struct paths x = {
        .decode = layer_core_sequence(out, &decode, TWIN_NONE),
        .prefill = layer_core_sequence(out, &prefill, TWIN_PREFILL),
        .state = p->buffer[set.id[L_STATE]].init,
        .core = golden_open(g, p, core),
        .state_after = golden_open(g, p, state),
        .lambda = verdict_lambda(p->buffer[core].count + p->buffer[state].count),
    };
    parallel_for(decode.heads, env->workers, expect_head, &x);
    return 0;
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct layer_sizes one = sizes_of(p, false), all = sizes_of(p, true);
    struct cost once;

    one.rows = 1;
    layer_cost(p, &all, cost);
    layer_cost(p, &one, &once);
    cost->read_bytes += layer_states_bytes(p); /* weights and hidden are the same for both ways */
    cost->write_bytes *= 2.0;
    cost->flops += all.rows * once.flops;
}

const struct op operator_kda_decode_vs_prefill = {
    .name = "kda_decode_vs_prefill",
    .summary = "a whole KDA layer, T decodes against one prefill of T",
    .entries = kda_entries,
    .params = params,
    .contract = LAYER_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = layer_reference,
    .launch = launch,
    .stages = stages,
    .cost = cost,
};
