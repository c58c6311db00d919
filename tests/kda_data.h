/*
 * Stored cases of the KDA recurrence (tests/data/kda_*; tests/data/kda.md names their source) and
 * inputs drawn for the bounds' tests, as packed tokens of one head.
 */
#ifndef TESTS_KDA_DATA_H
#define TESTS_KDA_DATA_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "problem/dtype.h"
#include "problem/fill.h"
#include "reference/kda_recurrence.h"
#include "tests/npy_array.h"

/* One head's operands, all exactly representable in the kernels' types. */
struct kda_case {
    size_t dim, count;
    double *query, *key, *value, *gate; /* [count][dim] */
    double *beta;                       /* [count] */
    float *state;                       /* [dim][dim], before */
    double *out, *last;                 /* stored fp64 results; NULL for drawn cases */
};

static inline void kda_case_init(struct kda_case *c, size_t dim, size_t count)
{
    *c = (struct kda_case){.dim = dim, .count = count};
    c->query = xcalloc(count * dim, sizeof(double));
    c->key = xcalloc(count * dim, sizeof(double));
    c->value = xcalloc(count * dim, sizeof(double));
    c->gate = xcalloc(count * dim, sizeof(double));
    c->beta = xcalloc(count, sizeof(double));
    c->state = xcalloc(dim * dim, sizeof(float));
}

static inline void kda_case_release(struct kda_case *c)
{
    free(c->query);
    free(c->key);
    free(c->value);
    free(c->gate);
    free(c->beta);
    free(c->state);
    free(c->out);
    free(c->last);
}

static inline struct kda_tokens kda_case_tokens(const struct kda_case *c)
{
    return (struct kda_tokens){
        .head_dim = c->dim,
        .count = c->count,
        .query = c->query,
        .key = c->key,
        .value = c->value,
        .gate = c->gate,
        .beta = c->beta,
        .scale = 1.0 / sqrt((double)c->dim),
    };
}

/* `rows` rows of `row` numbers, `stride` apart, from element `first` of a stored array. */
struct stored_rows {
    size_t first, row, stride, rows;
};

static inline void stored_read(const char *set, const char *name, struct stored_rows r, double *out)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", set, name);
    struct npy_array all = npy_array_read(path);
    for (size_t i = 0; i < r.rows; i++)
        memcpy(out + i * r.row, all.value + r.first + i * r.stride, r.row * sizeof(*out));
    free(all.value);
}

/* The stored cases normalise q and k themselves: x / sqrt(sum x^2 + 1e-6). */
static inline void kda_normalise(double *x, size_t rows, size_t dim)
{
    for (size_t i = 0; i < rows; i++) {
        double sum = 1e-6;
        for (size_t k = 0; k < dim; k++)
            sum += x[i * dim + k] * x[i * dim + k];
        for (size_t k = 0; k < dim; k++)
            x[i * dim + k] /= sqrt(sum);
    }
}

/* A stored case; `carried`: it has an initial state. */
struct stored_case {
    const char *name;
    size_t heads, dim, count;
    bool carried;
};

static inline void kda_case_load(struct kda_case *c, const struct stored_case *set, size_t head)
{
    size_t dim = set->dim, count = set->count, cells = dim * dim;
    struct stored_rows rows = {head * dim, dim, set->heads * dim, count};
    struct stored_rows state = {head * cells, cells, cells, 1};

    kda_case_init(c, dim, count);
    c->out = xcalloc(count * dim, sizeof(double));
    c->last = xcalloc(cells, sizeof(double));
    stored_read(set->name, "q.bf16", rows, c->query);
    stored_read(set->name, "k.bf16", rows, c->key);
    stored_read(set->name, "v.bf16", rows, c->value);
    stored_read(set->name, "g", rows, c->gate);
    stored_read(set->name, "o", rows, c->out);
    stored_read(set->name, "beta", (struct stored_rows){head, 1, set->heads, count}, c->beta);
    if (set->carried) {
        stored_read(set->name, "h0", state, c->last);
        for (size_t i = 0; i < cells; i++)
            c->state[i] = (float)c->last[i];
    }
    stored_read(set->name, "ht", state, c->last);
    kda_normalise(c->query, count, dim);
    kda_normalise(c->key, count, dim);
}

/* Unit rows with a mean offset, rounded to bf16; row % 16 == 5 zero, == 11 of norm 1e-3. */
static inline void kda_unit_rows(double *x, uint64_t key, size_t rows, size_t dim)
{
    for (size_t i = 0; i < rows; i++) {
        double sum = 0.0, norm = i % 16 == 5 ? 0.0 : i % 16 == 11 ? 1e-3 : 1.0;
        for (size_t k = 0; k < dim; k++) {
            x[i * dim + k] = 0.75 + rng_normal(key, i * dim + k);
            sum += x[i * dim + k] * x[i * dim + k];
        }
        for (size_t k = 0; k < dim; k++)
            x[i * dim + k] =
                (double)bf16_to_float(bf16_from_double(norm * x[i * dim + k] / sqrt(sum)));
    }
}

/* `lower` bounds the log decays; beta covers (0, 1) with both ends. */
static inline void kda_case_draw(struct kda_case *c, size_t dim, size_t count,
                                 enum gate_regime regime, double lower, uint64_t seed)
{
    uint64_t gate = rng_key(seed, "gate"), value = rng_key(seed, "value");
    uint64_t beta = rng_key(seed, "beta"), state = rng_key(seed, "state");

    kda_case_init(c, dim, count);
    kda_unit_rows(c->query, rng_key(seed, "query"), count, dim);
    kda_unit_rows(c->key, rng_key(seed, "key"), count, dim);
    for (size_t i = 0; i < count * dim; i++) {
        c->value[i] = (double)bf16_to_float(bf16_from_double(rng_normal(value, i)));
        c->gate[i] = (double)(float)fill_log_decay(regime, gate, i, 0, lower);
    }
    for (size_t i = 0; i < count; i++) {
        double x = rng_uniform(beta, i);
        c->beta[i] = (double)(float)(i % 5 == 0 ? 1.0 - 1e-6 * x : i % 5 == 1 ? 1e-6 * x : x);
    }
    for (size_t i = 0; i < dim * dim; i++)
        c->state[i] = (float)(0.3 * rng_normal(state, i));
}

#endif
