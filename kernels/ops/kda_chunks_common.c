/* Inputs and launches of the chunked KDA recurrence. */
#include "kernels/ops/kda_chunks_common.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/ops/expect_common.h"
#include "kernels/ops/kda.h"

/* Buffer names are kept by address: one static text per name and suffix. */
struct names {
    const char *suffix;
    const char *name[CHUNKS_INPUTS];
};

static const struct names known_names[] = {
    {"", {"query", "key", "value", "gate", "beta"}},
    {"_blank", {"query_blank", "key_blank", "value_blank", "gate_blank", "beta_blank"}},
};

int kda_add_chunk_inputs(struct problem *p, const char *suffix, const struct kda_sizes *n,
                         struct err *err)
{
    const struct names *names = &known_names[strcmp(suffix, "") == 0 ? 0 : 1];

    for (int i = CHUNKS_QUERY; i < CHUNKS_BETA; i++)
        if (kda_add_vectors(p, names->name[i], DTYPE_F32, ROLE_IN, n, err) < 0)
            return -1;
    return kda_add_scalars(p, names->name[CHUNKS_BETA], DTYPE_F32, ROLE_IN, n, err);
}

int kda_fill_chunk_inputs(struct problem *p, int first, const struct kda_sizes *n, bool pad,
                          struct err *err)
{
    kda_fill_unit(p, first + CHUNKS_QUERY, n);
    kda_fill_unit(p, first + CHUNKS_KEY, n);
    kda_fill_value(p, first + CHUNKS_VALUE, n);
    kda_fill_gate(p, first + CHUNKS_GATE, n);
    kda_fill_beta(p, first + CHUNKS_BETA, n);
    for (int i = first; pad && i < first + CHUNKS_INPUTS; i++)
        kda_fill_pad(p, i, n);
    return kda_check_gate(p, first + CHUNKS_GATE, n, err);
}

void kda_blank_twin(struct problem *p, int to, int from, const struct kda_sizes *n)
{
    for (int i = 0; i < CHUNKS_INPUTS; i++) {
        const struct buffer *b = &p->buffer[from + i];
        memcpy(p->buffer[to + i].init, b->init, b->bytes / n->rows * n->tokens);
    }
}

struct kda_sequence kda_chunk_sequence(const struct problem *p, int first,
                                       const struct kda_sizes *n)
{
    return (struct kda_sequence){
        .heads = n->heads,
        .head_dim = n->head_dim,
        .tokens = n->tokens,
        .query = kda_operand_of(p, first + CHUNKS_QUERY),
        .key = kda_operand_of(p, first + CHUNKS_KEY),
        .value = kda_operand_of(p, first + CHUNKS_VALUE),
        .gate = kda_operand_of(p, first + CHUNKS_GATE),
        .beta = kda_operand_of(p, first + CHUNKS_BETA),
        .scale = (double)kda_scale(n->head_dim),
    };
}

int kda_launch_chunks(const struct kda_chunk_call *c, uint32_t first, uint32_t count,
                      struct err *err)
{
    const struct kda_sizes *n = &c->sizes;
    size_t row = (size_t)first * n->heads * n->head_dim * dtype_size(DTYPE_F32);
    const struct kda_chunk_prepare_args prepare = {
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
    const struct kda_chunk_scan_args scan = {
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

    if (kda_launch_chunk_prepare(c->prepare, &prepare, err) < 0 ||
        kda_launch_chunk_scan(c->scan, &scan, err) < 0)
        return err_context(err, "tokens %u..%u", first, first + count - 1);
    return 0;
}
