/* fp64 projections with the bound of an fp32 accumulation. */
#include "reference/kda_dense.h"

#include <math.h>

#define LANES                                                                                      \
    4 /* independent partial sums: the loop is bound by the latency of an addition otherwise */
#define U_FP64 0x1p-53

struct sums {
    double value;
    double magnitude;
};

static struct sums sum_products(const float *a, const float *b, size_t k)
{
    double value[LANES] = {0}, magnitude[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= k; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            double product = (double)a[i + j] * (double)b[i + j];

            value[j] += product;
            magnitude[j] += fabs(product);
        }
    for (; i < k; i++) {
        double product = (double)a[i] * (double)b[i];

        value[0] += product;
        magnitude[0] += fabs(product);
    }
    return (struct sums){
        .value = (value[0] + value[1]) + (value[2] + value[3]),
        .magnitude = (magnitude[0] + magnitude[1]) + (magnitude[2] + magnitude[3]),
    };
}

/*
 * Each of at most k additions on the way of a term rounds by u of a partial sum, and no partial
 * sum exceeds S = sum |a b|: worst gamma_k S; independent roundings sqrt(k) u S (Higham and Mary,
 * theorem 3.1, whose lambda the caller applies). Additions are exact below the normal range,
 * products are not: TINY_FP32 each. The reference's own fp64 additions have the same worst case at
 * u = 2^-53. A sum that may pass the largest fp32 value has no bound.
 */
struct bounded kda_dense_element(const float *a, const float *b, size_t k)
{
    struct sums s = sum_products(a, b, k);
    double depth = (double)k;
    double floor = depth * TINY_FP32 + gamma_n(depth, U_FP64) * s.magnitude;
    struct bounded sum = {
        .value = s.value,
        .worst = gamma_n(depth, U_FP32) * s.magnitude + floor,
        .spread = sqrt(depth) * U_FP32 * s.magnitude,
        .fixed = floor,
    };

    if (!(s.magnitude <= format_fp32.max))
        sum.worst = sum.fixed = HUGE_VAL;
    return rounded(sum, format_bf16);
}
