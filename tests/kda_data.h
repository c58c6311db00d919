/*
 * Stored cases of the KDA recurrence (tests/data/kda_*; tests/data/kda.md names their source) and inputs
 * drawn for the bounds' tests, as packed tokens of one head.
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

/* Element `i` of a stored array of `type` ('2' bf16 bits, '4' float, '8' double). */
static inline double npy_element(char type, const char *data, size_t i)
{
    uint16_t half;
    float single;
    double wide;

    if (type == '2') {
        memcpy(&half, data + 2 * i, sizeof(half));
        return (double)bf16_to_float(half);
    }
    if (type == '4') {
        memcpy(&single, data + 4 * i, sizeof(single));
        return (double)single;
    }
    memcpy(&wide, data + 8 * i, sizeof(wide));
    return wide;
}

/* `take` numbers, `skip` apart, from element `first` on; false when there is no such file. */
struct npy_rows {
    size_t first, row, stride, rows;
};

static inline bool npy_read(const char *set, const char *name, struct npy_rows r, double *out)
{
    char path[256], type;
    long bytes;
    snprintf(path, sizeof(path), "tests/data/%s/%s.npy", set, name);
    FILE *f = fopen(path, "rb");

    if (!f)
        return false;
    if (fseek(f, 0, SEEK_END) != 0 || (bytes = ftell(f)) < 10 || fseek(f, 0, SEEK_SET) != 0)
        abort();
    char *all = xcalloc((size_t)bytes + 1, 1);
    if (fread(all, 1, (size_t)bytes, f) != (size_t)bytes)
        abort();
    fclose(f);
    size_t header = (size_t)(unsigned char)all[8] | (size_t)(unsigned char)all[9] << 8;
    const char *descr = strstr(all + 10, "'<");
    type = descr[3];
    for (size_t i = 0; i < r.rows; i++)
        for (size_t k = 0; k < r.row; k++)
            out[i * r.row + k] = npy_element(type, all + 10 + header, r.first + i * r.stride + k);
    free(all);
    return true;
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

/* Head `head` of `heads` of the stored case. */
static inline void kda_case_load(struct kda_case *c, const char *set, size_t heads, size_t head,
                                 size_t dim, size_t count)
{
    struct npy_rows rows = {head * dim, dim, heads * dim, count};
    struct npy_rows cells = {head * dim * dim, dim, dim, dim};
    double *state = xcalloc(dim * dim, sizeof(*state));

    kda_case_init(c, dim, count);
    c->out = xcalloc(count * dim, sizeof(double));
    c->last = xcalloc(dim * dim, sizeof(double));
    if (!npy_read(set, "q.bf16", rows, c->query) || !npy_read(set, "k.bf16", rows, c->key) ||
        !npy_read(set, "v.bf16", rows, c->value) || !npy_read(set, "g", rows, c->gate) ||
        !npy_read(set, "o", rows, c->out) || !npy_read(set, "ht", cells, c->last) ||
        !npy_read(set, "beta", (struct npy_rows){head, 1, heads, count}, c->beta))
        abort();
    if (npy_read(set, "h0", cells, state)) /* absent: zero */
        for (size_t i = 0; i < dim * dim; i++)
            c->state[i] = (float)state[i];
    free(state);
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
            x[i * dim + k] = (double)bf16_to_float(
                bf16_from_double(norm * x[i * dim + k] / sqrt(sum)));
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
