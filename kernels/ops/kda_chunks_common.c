/* Buffers and launches of the chunked KDA recurrence. */
#include "kernels/ops/kda_chunks_common.h"

#include <string.h>

#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"

/* Buffer names are kept by address: one static text each. */
static const char *const known_names[][CHUNKS_SET] = {
    [CHUNKS_PADDED] = {"query", "key", "value", "gate", "beta", "gc", "u", "w", "state", "out"},
    [CHUNKS_BLANK] = {"query_blank", "key_blank", "value_blank", "gate_blank", "beta_blank",
                      "gc_blank", "u_blank", "w_blank", "state_blank", "out_blank"},
};

bool kda_has_blank_twin(const struct problem *p, const struct kda_sizes *n)
{
    return case_u32(&p->tc, "twin") && n->rows > n->tokens;
}

int kda_add_chunk_inputs(struct problem *p, enum chunks_twin twin, const struct kda_sizes *n,
                         struct err *err)
{
    const char *const *name = known_names[twin];

    for (int i = KDA_QUERY; i < KDA_BETA; i++)
        if (kda_add_vectors(p, name[i], DTYPE_F32, ROLE_IN, n, err) < 0)
            return -1;
    return kda_add_scalars(p, name[KDA_BETA], DTYPE_F32, ROLE_IN, n, err);
}

int kda_add_chunk_terms(struct problem *p, enum chunks_twin twin, enum role role,
                        const struct kda_sizes *n, struct err *err)
{
    for (int i = CHUNKS_GC; i <= CHUNKS_W; i++)
        if (kda_add_vectors(p, known_names[twin][i], DTYPE_F32, role, n, err) < 0)
            return -1;
    return 0;
}

int kda_add_chunk_results(struct problem *p, enum chunks_twin twin, const struct kda_sizes *n,
                          struct err *err)
{
    const char *const *name = known_names[twin];

    if (kda_add_state(p, name[CHUNKS_STATE], ROLE_INOUT, n, err) < 0)
        return -1;
    return kda_add_vectors(p, name[CHUNKS_OUT], DTYPE_F32, ROLE_OUT, n, err);
}

int kda_fill_chunk_inputs(struct problem *p, const struct kda_sizes *n, struct err *err)
{
    for (int i = 0; i < KDA_INPUTS; i++)
        kda_fill_pad(p, i, n);
    return kda_fill_inputs(p, 0, n, err);
}

void kda_blank_twin(struct problem *p, int to, const struct kda_sizes *n)
{
    for (int i = 0; i < KDA_INPUTS; i++) {
        const struct buffer *b = &p->buffer[i];
        memcpy(p->buffer[to + i].init, b->init, b->bytes / n->rows * n->tokens);
    }
}

static size_t chunks_per_head(const struct kda_sizes *n)
{
    return n->rows / n->chunk;
}

size_t kda_chunk_places(const struct kda_sizes *n)
{
    return chunks_per_head(n) * n->heads;
}

struct kda_chunk_place kda_chunk_place(const struct kda_sizes *n, size_t index)
{
    size_t first = index % chunks_per_head(n) * n->chunk, left = n->tokens - first;

    return (struct kda_chunk_place){
        .head = index / chunks_per_head(n),
        .first = first,
        .count = left < n->chunk ? left : n->chunk,
    };
}

struct kda_chunk_terms kda_chunk_terms_of(const struct kda_sequence *s,
                                          const struct kda_chunk_place *at)
{
    struct kda_chunk_terms x;
    struct kda_packed packed;

    kda_packed_init(&packed, s->head_dim, at->count);
    kda_packed_load(&packed, s, at->head, at->first, at->count);
    kda_chunk_terms_init(&x, at->count, s->head_dim);
    kda_chunk_prepare(&packed.tokens, &x);
    kda_packed_release(&packed);
    return x;
}

struct kda_chunk_call kda_chunk_call_of(const struct operator_run *run, int first,
                                        const struct kda_sizes *n)
{
    const dev_ptr *ptr = run->ptr + first;

    return (struct kda_chunk_call){
        .query = ptr[KDA_QUERY],
        .key = ptr[KDA_KEY],
        .value = ptr[KDA_VALUE],
        .gate = ptr[KDA_GATE],
        .beta = ptr[KDA_BETA],
        .gc = ptr[CHUNKS_GC],
        .u = ptr[CHUNKS_U],
        .w = ptr[CHUNKS_W],
        .sizes = *n,
    };
}

/* Bytes before row `first` of an f32 [rows, H, D]. */
static size_t row_offset(const struct kda_chunk_call *c, uint32_t first)
{
    return (size_t)first * c->sizes.heads * c->sizes.head_dim * dtype_size(DTYPE_F32);
}

int kda_call_prepare(const struct kernel *kernel, const struct kda_chunk_call *c, uint32_t first,
                     uint32_t count, struct err *err)
{
    const struct kda_sizes *n = &c->sizes;
    size_t row = row_offset(c, first);
    const struct kda_chunk_prepare_args args = {
        .k = c->key + row,
        .v = c->value + row,
        .gate = c->gate + row,
        .beta = c->beta + (size_t)first * n->heads * dtype_size(DTYPE_F32),
        .gc = c->gc + row,
        .u = c->u + row,
        .w = c->w + row,
        .heads = n->heads,
        .head_dim = n->head_dim,
        .chunk = n->chunk,
        .tokens = count,
    };

    if (kda_launch_chunk_prepare(kernel, &args, err) < 0)
        return err_context(err, "tokens %u..%u", first, first + count - 1);
    return 0;
}

int kda_call_scan(const struct kernel *kernel, const struct kda_chunk_call *c, uint32_t first,
                  uint32_t count, struct err *err)
{
    const struct kda_sizes *n = &c->sizes;
    size_t row = row_offset(c, first);
    const struct kda_chunk_scan_args args = {
        .q = c->query + row,
        .k = c->key + row,
        .gc = c->gc + row,
        .u = c->u + row,
        .w = c->w + row,
        .state = c->state,
        .out = c->out + row,
        .heads = n->heads,
        .head_dim = n->head_dim,
        .chunk = n->chunk,
        .num_chunks = (uint32_t)(kda_padded_tokens(count, n->chunk) / n->chunk),
        .tokens = count,
        .scale = kda_scale(n->head_dim),
    };

    if (kda_launch_chunk_scan(kernel, &args, err) < 0)
        return err_context(err, "tokens %u..%u", first, first + count - 1);
    return 0;
}
