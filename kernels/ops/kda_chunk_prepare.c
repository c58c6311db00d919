/*
 * kda_chunk_prepare: gc, u and w of every chunk. Rows t >= T hold whatever "pad" says; where
 * there are any, a twin with a pad of zeros must give the same bits.
 */
#include "base/parallel.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"
#include "kernels/ops/kda_chunks_common.h"
#include "problem/operator.h"
#include "reference/kda_chunk_terms.h"

static const struct operator_entry entries[] = {
    {.module = "kda_chunk", .entry = "kda_chunk_prepare"},
    {.module = NULL},
};

static const struct param params[] = {
    {.key = "H", .fallback = 2, .min = 1, .max = 65535},
    {.key = "D", .fallback = 128, .min = 1, .max = 256},
    {.key = "T", .fallback = 40, .min = 1, .max = 1u << 20},
    {.key = "C", .fallback = 32, .min = 1, .max = 128},
    KDA_REGIME_PARAMS,
    {.key = "pad", .max = 2, .choices = kda_pads},
    {.key = "twin", .fallback = 1, .max = 1}, /* 0: no twin, for timing */
    {.key = NULL},
};

/* A set ends with w here. The query is not the kernel's; it keeps one order for all. */
enum { SET = CHUNKS_W + 1 };

static int add_set(struct problem *p, enum chunks_twin twin, const struct kda_sizes *n,
                   struct err *err)
{
    if (kda_add_chunk_inputs(p, twin, n, err) < 0)
        return -1;
    return kda_add_chunk_terms(p, twin, ROLE_OUT, n, err);
}

static int shape(struct problem *p, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);

    if (add_set(p, CHUNKS_PADDED, &n, err) < 0 || kda_fill_chunk_inputs(p, &n, err) < 0)
        return -1;
    if (!kda_has_blank_twin(p, &n))
        return 0;
    if (add_set(p, CHUNKS_BLANK, &n, err) < 0)
        return -1;
    kda_blank_twin(p, SET, &n);
    return 0;
}

struct chunks {
    struct kda_sizes sizes;
    struct kda_sequence s;
    struct expectation *out[3]; /* gc, u, w */
    double lambda;
};

/* Every chunk of every head on its own. */
static void expect_chunk(size_t index, void *ctx)
{
    const struct chunks *c = ctx;
    const struct kda_chunk_place at = kda_chunk_place(&c->sizes, index);
    struct kda_chunk_terms x = kda_chunk_terms_of(&c->s, &at);
    const struct kda_field *made[] = {&x.gc, &x.u, &x.w};
    size_t d = c->s.head_dim;

    for (unsigned f = 0; f < 3; f++)
        for (size_t i = 0; i < at.count * d; i++)
            expect_bounded(c->out[f], ((at.first + i / d) * c->s.heads + at.head) * d + i % d,
                           kda_field_at(made[f], i), c->lambda);
    kda_chunk_terms_release(&x);
}

/* Pad rows are nobody's business: a kernel may leave them or write them. */
static struct expectation *open_freed(struct golden *g, const struct problem *p, int id,
                                      const struct kda_sizes *n)
{
    struct expectation *e = golden_open(g, p, id);
    size_t row = (size_t)n->heads * n->head_dim;

    for (size_t i = n->tokens * row; i < n->rows * row; i++)
        e->expect[i] = EXPECT_FREE;
    return e;
}

static int reference(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    struct chunks c = {
        .sizes = n,
        .s = kda_sequence_of(p, 0, &n),
        .out = {open_freed(g, p, CHUNKS_GC, &n), open_freed(g, p, CHUNKS_U, &n),
                open_freed(g, p, CHUNKS_W, &n)},
        .lambda = verdict_lambda(3 * (size_t)n.tokens * n.heads * n.head_dim),
    };

    (void)err;
    parallel_for(kda_chunk_places(&n), env->workers, expect_chunk, &c);
    for (int id = CHUNKS_GC; kda_has_blank_twin(p, &n) && id < SET; id++)
        kda_expect_same(golden_open(g, p, SET + id), c.out[id - CHUNKS_GC], p->buffer[id].count);
    return 0;
}

static int launch_set(const struct operator_run *run, int first, const struct kda_sizes *n,
                      struct err *err)
{
    const struct kda_chunk_call call = kda_chunk_call_of(run, first, n);

    return kda_call_prepare(run->kernel[0], &call, 0, n->tokens, err);
}

static int launch(const struct operator_run *run, struct err *err)
{
    struct kda_sizes n = kda_sizes_of(run->problem, true);

    if (launch_set(run, 0, &n, err) < 0)
        return -1;
    return kda_has_blank_twin(run->problem, &n) ? launch_set(run, SET, &n, err) : 0;
}

static void identities(const struct outcome *out, struct identity_report *rep)
{
    static const char *const names[] = {"gc: any pad = pad of zeros", "u: any pad = pad of zeros",
                                        "w: any pad = pad of zeros"};
    struct kda_sizes n = kda_sizes_of(out->problem, true);

    for (int id = CHUNKS_GC; kda_has_blank_twin(out->problem, &n) && id < SET; id++)
        identity_equal(rep, out, names[id - CHUNKS_GC], (struct identity_side){.buffer = id},
                       (struct identity_side){.buffer = SET + id},
                       (size_t)n.tokens * n.heads * n.head_dim);
}

static void cost(const struct problem *p, struct cost *cost)
{
    struct kda_sizes n = kda_sizes_of(p, true);
    double vectors = (double)n.tokens * n.heads * n.head_dim, scalars = (double)n.tokens * n.heads;
    double c = n.chunk;

    cost->read_bytes = 4 * (3 * vectors + scalars);
    cost->write_bytes = 4 * 3 * vectors;
    /* Per row: half a chunk of products with their decays, and T b for u and w. */
    cost->flops = vectors * (c / 2 * 3 + 2 * c / 2 * 2);
    cost->unit = COST_FP32;
}

const struct op operator_kda_chunk_prepare = {
    .name = "kda_chunk_prepare",
    .summary = "chunked KDA: cumulated gates and the WY factors u and w of each chunk",
    .entries = entries,
    .params = params,
    .contract = KDA_CHUNK_CONTRACT,
    .reference_version = 1,
    .shape = shape,
    .reference = reference,
    .launch = launch,
    .identities = identities,
    .cost = cost,
};
