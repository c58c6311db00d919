/* The shim's math against long double libm, in units in the last place, and its 16-bit formats
   against their definitions. */
#include <math.h>

#include "cpu_run.h"

#define N 20000

static double ulps(float got, long double exact)
{
    int e;

    if (isnan(exact))
        return isnan(got) ? 0.0 : HUGE_VAL;
    if (isinf((float)exact) || isinf(got))
        return (float)exact == got ? 0.0 : HUGE_VAL;
    frexpl(exact, &e);
    e = e < -125 ? -125 : e; /* subnormals: one unit is 2^-149 */
    return (double)(fabsl((long double)got - exact) / ldexpl(1.0L, e - 24));
}

static long double rsqrt_exact(long double x)
{
    return 1.0L / sqrtl(x);
}

static long double pow_exact(long double x)
{
    return powl(x, (long double)1.7f);
}

static long double exp10_exact(long double x)
{
    return powl(10.0L, x);
}

/* In the order of tests/cpu/cpu_math.cu. */
static const struct {
    const char *name;
    long double (*exact)(long double);
    float from, to; /* uniform in this range; logarithmic when from > 0 */
    double limit;
} table[] = {
    {"expf", expl, -104.0f, 90.0f, 0.501},         {"exp2f", exp2l, -150.0f, 129.0f, 0.501},
    {"exp10f", exp10_exact, -45.0f, 39.0f, 0.501}, {"expm1f", expm1l, -20.0f, 20.0f, 0.501},
    {"logf", logl, 1e-44f, 3e38f, 0.501},          {"log2f", log2l, 1e-44f, 3e38f, 0.501},
    {"log10f", log10l, 1e-44f, 3e38f, 0.501},      {"log1pf", log1pl, -0.999f, 10.0f, 0.501},
    {"tanhf", tanhl, -11.0f, 11.0f, 0.501},        {"sinf", sinl, -1000.0f, 1000.0f, 0.501},
    {"cosf", cosl, -1000.0f, 1000.0f, 0.501},      {"sinhf", sinhl, -90.0f, 90.0f, 0.501},
    {"coshf", coshl, -90.0f, 90.0f, 0.501},        {"erff", erfl, -5.0f, 5.0f, 0.501},
    {"erfcf", erfcl, -3.0f, 10.5f, 0.501},         {"rsqrtf", rsqrt_exact, 1e-44f, 3e38f, 0.501},
    {"sqrtf", sqrtl, 1e-44f, 3e38f, 0.5},          {"tanf", tanl, -1.5f, 1.5f, 0.501},
    {"powf", pow_exact, 1e-20f, 1e20f, 0.501},     {"__expf", expl, -104.0f, 90.0f, 0.501},
    {"std::exp", expl, -104.0f, 90.0f, 0.501},
};

static float sample(size_t i, float from, float to)
{
    double u = (double)(i * 2654435761u % 1000003u) / 1000003.0;

    if (from > 0)
        return (float)exp(log((double)from) + u * (log((double)to) - log((double)from)));
    return (float)((double)from + u * ((double)to - (double)from));
}

static void functions_are_within_half_an_ulp(void **state)
{
    static float x[N], y[N];
    struct cpu_run r;
    dev_ptr px, py;

    (void)state;
    cpu_run_open(&r, "cpu_math");
    px = cpu_buffer_of(&r, "x", NULL, sizeof x);
    py = cpu_buffer_of(&r, "y", NULL, sizeof y);
    for (unsigned f = 0; f < sizeof table / sizeof *table; f++) {
        struct launch l = cpu_launch_of(&r, "math", (N + 255) / 256, 256);
        double worst = 0;
        size_t at = 0;

        for (size_t i = 0; i < N; i++)
            x[i] = sample(i, table[f].from, table[f].to);
        x[0] = -0.0f;
        x[1] = 0.0f;
        x[2] = NAN;
        x[3] = 0x1p-149f;
        x[4] = 1.0f;
        x[5] = INFINITY;
        MUST(&r, device_upload(r.device, px, x, sizeof x, &r.err));
        launch_u32(&l, f);
        launch_ptr(&l, px);
        launch_ptr(&l, py);
        launch_u32(&l, N);
        cpu_submit(&r, &l);
        cpu_read(&r, y, py, sizeof y);
        for (size_t i = 0; i < N; i++) {
            double u = ulps(y[i], table[f].exact((long double)x[i]));

            if (!(u <= worst)) {
                worst = u;
                at = i;
            }
        }
        print_message("  %-8s %.4f ulp at %a\n", table[f].name, worst, (double)x[at]);
        if (!(worst <= table[f].limit))
            fail_msg("%s(%a) = %a: %.4f ulp", table[f].name, (double)x[at], (double)y[at], worst);
    }
    cpu_run_close(&r);
}

/* Round to nearest even by the definition: of the two neighbours the nearer, the even one when both
   are. */
static uint16_t bf16_by_definition(uint32_t u)
{
    uint32_t low = u & 0xffffu, kept = u >> 16;

    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    if (low > 0x8000u || (low == 0x8000u && (kept & 1u)))
        kept++;
    return (uint16_t)kept;
}

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31;
    double m = h & 1023;
    double v = e == 31 ? (m > 0 ? (double)NAN : HUGE_VAL)
               : e     ? ldexp(1024 + m, e - 25)
                       : ldexp(m, -24);

    return h & 0x8000u ? -v : v;
}

/* Is h the half nearest to f? The neighbours differ by one in their bits. */
static int half_is_nearest(uint16_t h, float f)
{
    double v = (double)f, d = fabs(half_value(h) - v);

    if (isnan(f))
        return h == 0x7fff;
    if (fabs(v) >= 65520.0)
        return h == (v < 0 ? 0xfc00 : 0x7c00);
    for (int step = -1; step <= 1; step += 2) {
        uint16_t other = (uint16_t)(h + step);
        double e = fabs(half_value(other) - v);

        if ((other & 0x7c00u) == 0x7c00u || ((h ^ other) & 0x8000u) || isnan(e))
            continue;
        if (e < d || (!(e > d) && (h & 1u)))
            return 0;
    }
    return !signbit(half_value(h)) == !signbit(f);
}

static void conversions_round_to_nearest_even(void **state)
{
    enum { BATCH = 1 << 16 };
    static uint16_t b[BATCH], h[BATCH];
    static float from_h[BATCH];
    const uint32_t stride = 1009; /* a prime: one in a thousand of all floats, all exponents */
    struct cpu_run r;
    dev_ptr pb, ph, pf;

    (void)state;
    cpu_run_open(&r, "cpu_math");
    pb = cpu_buffer_of(&r, "bf16", NULL, sizeof b);
    ph = cpu_buffer_of(&r, "half", NULL, sizeof h);
    pf = cpu_buffer_of(&r, "float", NULL, sizeof from_h);
    for (uint64_t first = 0; first < UINT64_C(1) << 32; first += (uint64_t)stride * BATCH) {
        struct launch l = cpu_launch_of(&r, "narrow", BATCH / 256, 256);

        launch_u32(&l, (uint32_t)first);
        launch_u32(&l, stride);
        launch_ptr(&l, pb);
        launch_ptr(&l, ph);
        launch_ptr(&l, pf);
        launch_u32(&l, BATCH);
        cpu_submit(&r, &l);
        cpu_read(&r, b, pb, sizeof b);
        cpu_read(&r, h, ph, sizeof h);
        for (uint32_t i = 0; i < BATCH; i++) {
            uint32_t u = (uint32_t)first + i * stride;
            float f;

            memcpy(&f, &u, sizeof f);
            if (b[i] != bf16_by_definition(u))
                fail_msg("bf16 of 0x%08x is 0x%04x", u, b[i]);
            if (!half_is_nearest(h[i], f))
                fail_msg("half of 0x%08x is 0x%04x", u, h[i]);
        }
    }
    cpu_read(&r, from_h, pf, sizeof from_h);
    for (uint32_t i = 0; i < BATCH; i++) {
        double want = half_value((uint16_t)i);

        if (isnan(want) ? !isnan(from_h[i]) : (double)from_h[i] != want)
            fail_msg("float of half 0x%04x is %a", i, (double)from_h[i]);
    }
    cpu_run_close(&r);
}

static long double bf16_value(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;

    memcpy(&f, &u, sizeof f);
    return (long double)f;
}

/* The exact result rounded once. Long double holds every product and, for operands within 2^30 of
   each other, every sum. */
static uint16_t bf16_once(long double exact)
{
    long double unit, q;
    int e;
    float f;
    uint32_t u;

    frexpl(exact, &e);
    e = e < -125 ? -125 : e;
    unit = ldexpl(1.0L, e - 8);
    q = rintl(exact / unit) * unit;
    f = (float)q;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)(u >> 16);
}

static void bf16_arithmetic_rounds_once(void **state)
{
    static uint16_t a[N], b[N], c[N], y[N];
    struct cpu_run r;
    dev_ptr p[4];

    (void)state;
    cpu_run_open(&r, "cpu_math");
    for (size_t i = 0; i < N; i++) { /* exponents 2^-8 .. 2^8 about 1: no overflow, sums exact */
        a[i] = (uint16_t)(0x3b80 + i * 40503u % 0x800u + (i & 1) * 0x8000u);
        b[i] = (uint16_t)(0x3b80 + i * 30011u % 0x800u + (i >> 1 & 1) * 0x8000u);
        c[i] = (uint16_t)(0x3b80 + i * 50021u % 0x800u + (i >> 2 & 1) * 0x8000u);
    }
    p[0] = cpu_buffer_of(&r, "a", a, sizeof a);
    p[1] = cpu_buffer_of(&r, "b", b, sizeof b);
    p[2] = cpu_buffer_of(&r, "c", c, sizeof c);
    p[3] = cpu_buffer_of(&r, "y", NULL, sizeof y);
    for (unsigned op = 0; op < 5; op++) {
        struct launch l = cpu_launch_of(&r, "bf16_op", (N + 255) / 256, 256);

        launch_u32(&l, op);
        for (int i = 0; i < 4; i++)
            launch_ptr(&l, p[i]);
        launch_u32(&l, N);
        cpu_submit(&r, &l);
        cpu_read(&r, y, p[3], sizeof y);
        for (size_t i = 0; i < N; i++) {
            long double u = bf16_value(a[i]), v = bf16_value(b[i]), w = bf16_value(c[i]);
            long double exact = op == 0   ? u + v
                                : op == 1 ? u - v
                                : op == 2 ? u * v
                                : op == 3 ? u / v
                                          : u * v + w;

            if (y[i] != bf16_once(exact) && !(exact == 0 && (y[i] & 0x7fffu) == 0))
                fail_msg("op %u of 0x%04x 0x%04x 0x%04x gives 0x%04x, not 0x%04x", op, a[i], b[i],
                         c[i], y[i], bf16_once(exact));
        }
    }
    cpu_run_close(&r);
}

static void min_and_max_know_nan_and_zero(void **state)
{
    const float a[] = {1, NAN, 2, -0.0f, 0.0f, NAN}, b[] = {2, 3, NAN, 0.0f, -0.0f, NAN};
    float lo[6], hi[6];
    struct cpu_run r;
    dev_ptr plo, phi;
    struct launch l;

    (void)state;
    cpu_run_open(&r, "cpu_math");
    l = cpu_launch_of(&r, "min_max", 1, 6);
    launch_ptr(&l, cpu_buffer_of(&r, "a", a, sizeof a));
    launch_ptr(&l, cpu_buffer_of(&r, "b", b, sizeof b));
    launch_ptr(&l, plo = cpu_buffer_of(&r, "lo", NULL, sizeof lo));
    launch_ptr(&l, phi = cpu_buffer_of(&r, "hi", NULL, sizeof hi));
    cpu_submit(&r, &l);
    cpu_read(&r, lo, plo, sizeof lo);
    cpu_read(&r, hi, phi, sizeof hi);
    assert_true(lo[0] == 1 && hi[0] == 2 && lo[1] == 3 && hi[1] == 3 && lo[2] == 2 && hi[2] == 2);
    assert_true(signbit(lo[3]) && !signbit(hi[3]) && signbit(lo[4]) && !signbit(hi[4]));
    assert_true(isnan(lo[5]) && isnan(hi[5]));
    cpu_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_within_half_an_ulp),
        cmocka_unit_test(conversions_round_to_nearest_even),
        cmocka_unit_test(bf16_arithmetic_rounds_once),
        cmocka_unit_test(min_and_max_know_nan_and_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
