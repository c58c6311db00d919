/*
 * fp32 models of the KDA recurrence in plain C, one head: right ones, which no bound may call
 * wrong, and wrong ones, which every bound must.
 */
#ifndef TESTS_KDA_MODELS_H
#define TESTS_KDA_MODELS_H

#include "tests/kda_data.h"

enum model {
    MODEL_RIGHT,         /* sums in sequence */
    MODEL_PAIRWISE,      /* sums by halves */
    MODEL_FUSED,         /* multiply-adds with one rounding */
    MODEL_FAST_EXP,      /* exponentials as far off as __expf may be, subnormal ones flushed */
    MODEL_BF16_SUMS,     /* wrong: sums kept in bf16 */
    MODEL_BF16_STATE,    /* wrong: the state rounded to bf16 after each token or chunk */
    MODEL_BF16_BETA,     /* wrong: beta narrowed to bf16 */
    MODEL_LATE_DECAY,    /* wrong: the decay after the delta */
    MODEL_LAST_DECAY,    /* wrong (chunk): the state's decay from the token before the last */
    MODEL_TWICE_DECAYED, /* wrong (chunk): the decay counted twice in w */
    MODEL_UNSCALED,      /* wrong: the scale missing from the query */
};

static inline float narrow(float x)
{
    return bf16_to_float(bf16_from_float(x));
}

/* sum of a_i b_i, elements `sa` and `sb` apart. */
static inline float model_dot(enum model m, const float *a, size_t sa, const float *b, size_t sb,
                              size_t n)
{
    if (m == MODEL_PAIRWISE && n > 1)
        return model_dot(m, a, sa, b, sb, n / 2) +
               model_dot(m, a + n / 2 * sa, sa, b + n / 2 * sb, sb, n - n / 2);
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) {
        sum = m == MODEL_FUSED ? fmaf(a[i * sa], b[i * sb], sum) : sum + a[i * sa] * b[i * sb];
        if (m == MODEL_BF16_SUMS)
            sum = narrow(sum);
    }
    return sum;
}

/* The fast one errs by 2 + floor(1.173 |x|) ulp, of which one is left to expf. */
static inline float model_exp(enum model m, float x)
{
    float y = expf(x);
    if (m != MODEL_FAST_EXP)
        return y;
    float ulp = nextafterf(y, HUGE_VALF) - y;
    float low = y - (1.0f + floorf(1.173f * fabsf(x))) * ulp;
    return low < FLT_MIN ? 0.0f : low;
}

/* c + a b in one rounding or two. */
static inline float model_add(enum model m, float c, float a, float b)
{
    return m == MODEL_FUSED ? fmaf(a, b, c) : c + a * b;
}

static inline float *floats(const double *x, size_t n)
{
    float *f = xcalloc(n, sizeof(*f));
    for (size_t i = 0; i < n; i++)
        f[i] = (float)x[i];
    return f;
}

static inline float model_beta(enum model m, const struct kda_case *c, size_t i)
{
    return m == MODEL_BF16_BETA ? narrow((float)c->beta[i]) : (float)c->beta[i];
}

/* One token: `s` [d][d] in place, `out` [d]. */
static inline void model_token(enum model m, const struct kda_case *c, size_t i, float *s,
                               float *out)
{
    size_t d = c->dim;
    float *q = floats(c->query + i * d, d), *k = floats(c->key + i * d, d);
    float *v = floats(c->value + i * d, d), *g = floats(c->gate + i * d, d);
    float beta = model_beta(m, c, i), scale = (float)(1.0 / sqrt((double)d));

    for (size_t r = 0; r < d; r++) {
        q[r] *= m == MODEL_UNSCALED ? 1.0f : scale;
        g[r] = model_exp(m, g[r]);
    }
    for (size_t j = 0; j < d; j++) {
        for (size_t r = 0; m != MODEL_LATE_DECAY && r < d; r++)
            s[r * d + j] *= g[r];
        float delta = (v[j] - model_dot(m, s + j, d, k, 1, d)) * beta;
        for (size_t r = 0; m == MODEL_LATE_DECAY && r < d; r++)
            s[r * d + j] *= g[r];
        for (size_t r = 0; r < d; r++) {
            s[r * d + j] = model_add(m, s[r * d + j], k[r], delta);
            if (m == MODEL_BF16_STATE)
                s[r * d + j] = narrow(s[r * d + j]);
        }
        out[j] = model_dot(m, s + j, d, q, 1, d);
    }
    free(q);
    free(k);
    free(v);
    free(g);
}

static inline void model_recurrent(enum model m, const struct kda_case *c, float *s, float *out)
{
    for (size_t i = 0; i < c->count; i++)
        model_token(m, c, i, s, out + i * c->dim);
}

/* The largest |computed - value| / radius. */
struct ratios {
    double worst, likely;
};

static inline void ratios_take(struct ratios *r, const struct kda_field *f, const float *got,
                               size_t count, double lambda)
{
    for (size_t i = 0; i < count; i++) {
        struct bounded b = kda_field_at(f, i);
        double error = fabs((double)got[i] - b.value);
        double worst = error > 0.0 ? error / b.worst : 0.0;
        double likely = error > 0.0 ? error / bounded_likely(b, lambda) : 0.0;
        r->worst = !(worst <= r->worst) ? worst : r->worst;
        r->likely = !(likely <= r->likely) ? likely : r->likely;
    }
}

#endif
