/* The elementary functions against libm's long double ones: every error below one ulp. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/detmath.h"

#define DRAWS 200000

static long double sigmoid_long(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static long double softplus_long(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double silu_long(long double x)
{
    return x * sigmoid_long(x);
}

struct function {
    const char *name;
    double (*own)(double);
    long double (*libm)(long double);
    double low, high; /* a range for uniform draws; log-uniform draws cover the rest */
    double above;     /* the domain: arguments below are not drawn */
};

static const struct function functions[] = {
    {"exp", det_exp, expl, -746.0, 709.7, -HUGE_VAL},
    {"expm1", det_expm1, expm1l, -50.0, 709.7, -HUGE_VAL},
    {"log", det_log, logl, 0.5, 2.0, 0.0},
    {"log1p", det_log1p, log1pl, -1.0, 3.0, -1.0},
    {"sigmoid", det_sigmoid, sigmoid_long, -760.0, 60.0, -HUGE_VAL},
    {"softplus", det_softplus, softplus_long, -760.0, 60.0, -HUGE_VAL},
    {"silu", det_silu, silu_long, -760.0, 60.0, -HUGE_VAL},
};

static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static double uniform(uint64_t *s)
{
    return (double)(next(s) >> 11) * 0x1p-53;
}

/* Half over the interesting range, a quarter near zero, a quarter over all exponents. */
static double draw(const struct function *f, uint64_t *s)
{
    uint64_t which = next(s) >> 62;
    if (which < 2)
        return f->low + (f->high - f->low) * uniform(s);
    if (which == 2)
        return 4.0 * uniform(s) - 2.0;
    double sign = next(s) >> 63 ? 1.0 : -1.0;
    return sign * ldexp(1.0 + uniform(s), (int)(next(s) % 2000) - 1000);
}

static double ulps(double got, long double want)
{
    double rounded = (double)want;
    if (isinf(rounded) || isinf(got) || isnan(got))
        return got == rounded ? 0.0 : HUGE_VAL;
    int e;
    frexp(rounded, &e);
    double ulp = ldexp(1.0, e - 53 < -1074 ? -1074 : e - 53);
    return (double)(fabsl((long double)got - want) / (long double)ulp);
}

static void test_error_below_one_ulp(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        const struct function *f = &functions[i];
        uint64_t s = 88172645463325252u + i;
        double worst = 0.0, at = 0.0;
        for (int n = 0; n < DRAWS; n++) {
            double x = draw(f, &s);
            if (!(x > f->above))
                continue;
            double u = ulps(f->own(x), f->libm((long double)x));
            if (!(u <= worst)) {
                worst = u;
                at = x;
            }
        }
        print_message("%-8s max error %.3f ulp at %a\n", f->name, worst, at);
        assert_true(worst < 1.0);
    }
}

static void test_special_values(void **state)
{
    (void)state;
    assert_true(det_exp(0.0) == 1.0 && det_exp(-0.0) == 1.0);
    assert_true(isinf(det_exp(710.0)) && det_exp(-HUGE_VAL) == 0.0);
    assert_true(det_exp(-745.0) > 0.0 && det_exp(-746.0) == 0.0);
    assert_true(isinf(det_exp(HUGE_VAL)) && isnan(det_exp((double)NAN)));
    assert_true(signbit(det_expm1(-0.0)) && det_expm1(-HUGE_VAL) == -1.0);
    assert_true(isinf(det_expm1(HUGE_VAL)) && isnan(det_expm1((double)NAN)));
    assert_true(isinf(det_log(0.0)) && det_log(0.0) < 0.0 && isnan(det_log(-1.0)));
    assert_true(det_log(1.0) == 0.0 && isinf(det_log(HUGE_VAL)) && isnan(det_log((double)NAN)));
    assert_true(isinf(det_log1p(-1.0)) && isnan(det_log1p(-1.5)) && signbit(det_log1p(-0.0)));
    assert_true(det_sigmoid(0.0) == 0.5 && det_sigmoid(-HUGE_VAL) == 0.0);
    assert_true(det_sigmoid(HUGE_VAL) == 1.0 && isnan(det_sigmoid((double)NAN)));
    assert_true(isinf(det_softplus(HUGE_VAL)) && det_softplus(-HUGE_VAL) == 0.0);
    assert_true(isnan(det_softplus((double)NAN)) && isnan(det_silu((double)NAN)));
    assert_true(det_silu(0.0) == 0.0 && det_silu(-HUGE_VAL) == 0.0);
    assert_true(isinf(det_silu(HUGE_VAL)));
}

/* The same bits everywhere: a hash over many results, written down once. */
static void test_bits_are_portable(void **state)
{
    (void)state;
    uint64_t hash = 14695981039346656037u, s = 1;
    for (int n = 0; n < 20000; n++) {
        double x = 80.0 * uniform(&s) - 60.0;
        double y[] = {det_exp(x),     det_expm1(x),    det_log(fabs(x)), det_log1p(fabs(x)),
                      det_sigmoid(x), det_softplus(x), det_silu(x)};
        for (size_t i = 0; i < sizeof(y) / sizeof(y[0]); i++) {
            uint64_t bits;
            memcpy(&bits, &y[i], sizeof(bits));
            hash = (hash ^ bits) * 1099511628211u;
        }
    }
    print_message("bits %016llx\n", (unsigned long long)hash);
    assert_true(hash == 0x0b552427cbb44af3u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_below_one_ulp),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_bits_are_portable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
