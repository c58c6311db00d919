/* fp32 models of the chunked KDA recurrence in plain C, one head; see kda_models.h. */
#ifndef TESTS_KDA_CHUNK_MODELS_H
#define TESTS_KDA_CHUNK_MODELS_H

#include "tests/kda_models.h"

struct model_chunk {
    size_t n, d;
    float *q, *k, *v, *beta; /* of the chunk */
    float *gc, *u, *w;
};

static inline void model_chunk_open(enum model m, const struct kda_case *c, size_t first, size_t n,
                                    struct model_chunk *x)
{
    size_t d = c->dim, at = first * d;
    *x = (struct model_chunk){
        .n = n,
        .d = d,
        .q = floats(c->query + at, n * d),
        .k = floats(c->key + at, n * d),
        .v = floats(c->value + at, n * d),
        .beta = floats(c->beta + first, n),
        .gc = floats(c->gate + at, n * d),
        .u = xcalloc(n * d, sizeof(float)),
        .w = xcalloc(n * d, sizeof(float)),
    };
    for (size_t i = 0; i < n; i++)
        x->beta[i] = model_beta(m, c, first + i);
    for (size_t i = d; i < n * d; i++)
        x->gc[i] += x->gc[i - d];
}

static inline void model_chunk_close(struct model_chunk *x)
{
    free(x->q);
    free(x->k);
    free(x->v);
    free(x->beta);
    free(x->gc);
    free(x->u);
    free(x->w);
}

/* sum_d a_i b_j exp(gc_i - gc_j) */
static inline float model_pair(enum model m, const struct model_chunk *x, const float *a, size_t i,
                               size_t j)
{
    float *term = xcalloc(x->d, sizeof(*term)), *one = xcalloc(x->d, sizeof(*one));
    for (size_t k = 0; k < x->d; k++) {
        term[k] = a[i * x->d + k] * x->k[j * x->d + k];
        one[k] = model_exp(m, x->gc[i * x->d + k] - x->gc[j * x->d + k]);
    }
    float sum = model_dot(m, term, 1, one, 1, x->d);
    free(term);
    free(one);
    return sum;
}

static inline void model_prepare(enum model m, struct model_chunk *x)
{
    size_t n = x->n, d = x->d;
    float *a = xcalloc(n * n, sizeof(*a)), *row = xcalloc(n, sizeof(*row));
    float *bv = xcalloc(n * d, sizeof(*bv)), *bk = xcalloc(n * d, sizeof(*bk));

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            row[j] = -x->beta[i] * model_pair(m, x, x->k, i, j);
        for (size_t j = 0; j < i; j++)
            a[i * n + j] = row[j] + model_dot(m, row + j + 1, 1, a + (j + 1) * n + j, n, i - j - 1);
        a[i * n + i] = 1.0f;
        for (size_t k = 0; k < d; k++) {
            float decay = model_exp(m, x->gc[i * d + k]);
            bv[i * d + k] = x->beta[i] * x->v[i * d + k];
            bk[i * d + k] = x->beta[i] * x->k[i * d + k] * decay;
            if (m == MODEL_TWICE_DECAYED)
                bk[i * d + k] *= decay;
        }
        for (size_t k = 0; k < d; k++) {
            x->u[i * d + k] = model_dot(m, a + i * n, 1, bv + k, d, i + 1);
            x->w[i * d + k] = model_dot(m, a + i * n, 1, bk + k, d, i + 1);
        }
    }
    free(a);
    free(row);
    free(bv);
    free(bk);
}

static inline void model_scan_update(enum model m, const struct model_chunk *x, const float *v,
                                     float *s)
{
    size_t n = x->n, d = x->d, last = n - 1;
    float *tail = xcalloc(n, sizeof(*tail));

    for (size_t k = 0; k < d; k++) {
        size_t of = m == MODEL_LAST_DECAY && last > 0 ? last - 1 : last;
        float decay = model_exp(m, x->gc[of * d + k]);
        for (size_t i = 0; i < n; i++)
            tail[i] = x->k[i * d + k] * model_exp(m, x->gc[last * d + k] - x->gc[i * d + k]);
        for (size_t j = 0; j < d; j++) {
            s[k * d + j] = decay * s[k * d + j] + model_dot(m, tail, 1, v + j, d, n);
            if (m == MODEL_BF16_STATE)
                s[k * d + j] = narrow(s[k * d + j]);
        }
    }
    free(tail);
}

static inline void model_scan(enum model m, const struct model_chunk *x, float *s, float *out)
{
    size_t n = x->n, d = x->d;
    float scale = m == MODEL_UNSCALED ? 1.0f : (float)(1.0 / sqrt((double)d));
    float *v = xcalloc(n * d, sizeof(*v)), *q = xcalloc(d, sizeof(*q));
    float *p = xcalloc(n, sizeof(*p));

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++)
            v[i * d + j] = x->u[i * d + j] - model_dot(m, x->w + i * d, 1, s + j, d, d);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < d; k++)
            q[k] = x->q[i * d + k] * model_exp(m, x->gc[i * d + k]);
        for (size_t j = 0; j <= i; j++)
            p[j] = scale * model_pair(m, x, x->q, i, j);
        for (size_t j = 0; j < d; j++)
            out[i * d + j] =
                scale * model_dot(m, q, 1, s + j, d, d) + model_dot(m, p, 1, v + j, d, i + 1);
    }
    model_scan_update(m, x, v, s);
    free(v);
    free(q);
    free(p);
}

static inline void model_chunked(enum model m, const struct kda_case *c, size_t chunk, float *s,
                                 float *out)
{
    struct model_chunk x;
    for (size_t first = 0; first < c->count; first += chunk) {
        size_t n = c->count - first < chunk ? c->count - first : chunk;
        model_chunk_open(m, c, first, n, &x);
        model_prepare(m, &x);
        model_scan(m, &x, s, out + first * c->dim);
        model_chunk_close(&x);
    }
}

#endif
