/* Rounding directions: single precision against this machine's own in that rounding mode, the
   16-bit formats against their definition; and the intrinsics that come without a table. */
#include <fenv.h>
#include <math.h>

#include "cpu_run.h"

#define N 8192

/* In the order of tests/cpu/cpu_rounding.cu. */
enum way { ZERO, DOWN, UP, NEAREST };
static const int modes[] = {FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static double double_of(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* Any bits; then exponents that meet, so that sums cancel and products round; then the edges. */
static void operands(uint32_t *a, unsigned stream)
{
    static const uint32_t edge[] = {0,          0x80000000, 1,          0x80000001, 0x7f7fffff,
                                    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000,
                                    0xbf800000, 0x00800000, 0x80800000, 0x007fffff, 0x4effffff,
                                    0x7fffffff, 0xffffffff, 0x3f800001};
    const unsigned n = sizeof edge / sizeof *edge;
    uint64_t x = 88172645463325252u + stream * 0x9e3779b97f4a7c15u;

    for (unsigned i = 0; i < N; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        a[i] = (uint32_t)(x >> 16);
        if (i % 2)
            a[i] = (a[i] & 0x807fffffu) | (125u + (a[i] >> 24) % 6u) << 23;
        if (i < n * n)
            a[i] = edge[stream ? i / n : i % n];
    }
}

/* volatile: the compiler knows no rounding mode. */
static float here(unsigned op, uint32_t ua, uint32_t ub, uint32_t uc)
{
    volatile float a = float_of(ua), b = float_of(ub), c = float_of(uc), y = 0.0f;
    volatile double d = double_of((uint64_t)ua << 32 | ub);
    volatile int32_t i = (int32_t)ua;
    volatile int64_t l = (int64_t)((uint64_t)ua << 32 | ub);

    switch (op) {
    case 0:
        y = a + b;
        break;
    case 1:
        y = a - b;
        break;
    case 2:
        y = a * b;
        break;
    case 3:
        y = fmaf(a, b, c);
        break;
    case 4:
        y = a / b;
        break;
    case 5:
        y = 1.0f / a;
        break;
    case 6:
        y = sqrtf(a);
        break;
    case 7:
        y = (float)i;
        break;
    case 8:
        y = (float)(uint32_t)i;
        break;
    case 9:
        y = (float)l;
        break;
    case 10:
        y = (float)(uint64_t)l;
        break;
    default:
        y = (float)d;
        break;
    }
    return y;
}

static void check_directed(unsigned op, unsigned way, const uint32_t *a, const uint32_t *b,
                           const uint32_t *c, const float *y)
{
    for (unsigned i = 0; i < N; i++) {
        float want;

        fesetround(modes[way]);
        want = here(op, a[i], b[i], c[i]);
        fesetround(FE_TONEAREST);
        if (bits_of(want) != bits_of(y[i]) && !(isnan(want) && isnan(y[i])))
            fail_msg("op %u way %u of %08x %08x %08x: %a, must be %a", op, way, a[i], b[i], c[i],
                     (double)y[i], (double)want);
    }
}

static void single_precision_rounds_as_it_says(void **state)
{
    static uint32_t a[N], b[N], c[N];
    static float y[N];
    struct cpu_run r;
    dev_ptr p[3], py;

    (void)state;
    operands(a, 0);
    operands(b, 1);
    operands(c, 2);
    cpu_run_open(&r, "cpu_rounding");
    p[0] = cpu_buffer_of(&r, "a", a, sizeof a);
    p[1] = cpu_buffer_of(&r, "b", b, sizeof b);
    p[2] = cpu_buffer_of(&r, "c", c, sizeof c);
    py = cpu_buffer_of(&r, "y", NULL, sizeof y);
    for (unsigned op = 0; op < 12; op++)
        for (unsigned way = ZERO; way <= UP; way++) {
            struct launch l = cpu_launch_of(&r, "directed", N / 256, 256);

            launch_u32(&l, op);
            launch_u32(&l, way);
            for (unsigned i = 0; i < 3; i++)
                launch_ptr(&l, p[i]);
            launch_ptr(&l, py);
            launch_u32(&l, N);
            cpu_submit(&r, &l);
            cpu_read(&r, y, py, sizeof y);
            check_directed(op, way, a, b, c, y);
        }
    cpu_run_close(&r);
}

/* --- 16-bit formats --------------------------------------------------------------------------- */

struct format {
    int precision, emin, emax;
};
static const struct format bf16 = {8, -126, 127}, fp16 = {11, -14, 15};

/* x in units of the last place that it has there, cut; then the direction decides on one more. */
static uint16_t by_definition(const struct format *f, long double x, enum way way)
{
    const uint16_t infinity = (uint16_t)((f->emax - f->emin + 2) << (f->precision - 1));
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    long double a = fabsl(x), unit, k;
    bool outward = way == (sign ? DOWN : UP);
    int e;

    if (isnan(x))
        return 0x7fff;
    if (a == 0.0L || isinf(a))
        return (uint16_t)(sign | (isinf(a) ? infinity : 0));
    e = ilogbl(a) < f->emin ? f->emin : ilogbl(a);
    if (e > f->emax)
        return (uint16_t)(sign | (infinity - !(outward || way == NEAREST)));
    unit = ldexpl(1.0L, e - f->precision + 1);
    k = floorl(a / unit);
    long double rest = a / unit - k;

    if ((outward && rest > 0.0L) ||
        (way == NEAREST && (rest > 0.5L || (rest == 0.5L && fmodl(k, 2.0L) == 1.0L))))
        k += 1.0L;
    /* the bits of a magnitude count units: of the exponent e they start at (e - emin) 2^(p-1) */
    return (uint16_t)(sign | ((unsigned)(e - f->emin) * (1u << (f->precision - 1)) + (unsigned)k));
}

static long double exact_of(unsigned from, uint32_t hi, uint32_t lo)
{
    uint64_t u = (uint64_t)hi << 32 | lo;

    return from == 0   ? (long double)float_of(hi)
           : from == 1 ? (long double)(int32_t)hi
           : from == 2 ? (long double)(int64_t)u
                       : (long double)u;
}

static void narrow_formats_round_as_they_say(void **state)
{
    static uint32_t hi[N], lo[N];
    static uint16_t b[N], h[N];
    struct cpu_run r;
    dev_ptr phi, plo, pb, ph;

    (void)state;
    operands(hi, 0);
    operands(lo, 1);
    for (unsigned i = N / 2; i < N; i++) /* ties of 64-bit integers, and one beside them */
        hi[i] = i % 5 ? hi[i] & 0xffff0000u : hi[i] >> (i % 31);
    for (unsigned i = N / 2; i < N; i++)
        lo[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 0xffffffffu;
    cpu_run_open(&r, "cpu_rounding");
    phi = cpu_buffer_of(&r, "hi", hi, sizeof hi);
    plo = cpu_buffer_of(&r, "lo", lo, sizeof lo);
    pb = cpu_buffer_of(&r, "b", NULL, sizeof b);
    ph = cpu_buffer_of(&r, "h", NULL, sizeof h);
    for (unsigned from = 0; from < 4; from++)
        for (unsigned way = ZERO; way <= NEAREST; way++) {
            struct launch l = cpu_launch_of(&r, "narrow", N / 256, 256);

            launch_u32(&l, from);
            launch_u32(&l, way);
            launch_ptr(&l, phi);
            launch_ptr(&l, plo);
            launch_ptr(&l, pb);
            launch_ptr(&l, ph);
            launch_u32(&l, N);
            cpu_submit(&r, &l);
            cpu_read(&r, b, pb, sizeof b);
            cpu_read(&r, h, ph, sizeof h);
            for (unsigned i = 0; i < N; i++) {
                long double x = exact_of(from, hi[i], lo[i]);
                uint16_t want_b = by_definition(&bf16, x, (enum way)way);
                uint16_t want_h = by_definition(&fp16, x, (enum way)way);

                if (b[i] != want_b || h[i] != want_h)
                    fail_msg("from %u way %u of %08x %08x: %04x %04x, must be %04x %04x", from, way,
                             hi[i], lo[i], b[i], h[i], want_b, want_h);
            }
        }
    cpu_run_close(&r);
}

/* --- one by one ------------------------------------------------------------------------------- */

static void the_others_say_what_the_manual_says(void **state)
{
    static const float f[] = {1.0f, 0.0f, 0.0f, 0.0f, NAN,  0.75f, -1.0f, 1.0f,
                              2.0f, 1.0f, 1.0f, 3.0f, 6.0f, 2.0f,  4.0f};
    static const int64_t i[] = {0xffff,    1,         0, 2, -2,     -3, INT64_MAX, INT64_MIN, 0, -1,
                                INT32_MIN, INT32_MAX, 0, 1, -32768, 1,  -1,        1,         2, 1,
                                INT32_MAX, 7};
    float got_f[sizeof f / sizeof *f];
    int64_t got_i[sizeof i / sizeof *i];
    struct cpu_run r;
    struct launch l;
    dev_ptr pf, pi;

    (void)state;
    cpu_run_open(&r, "cpu_rounding");
    pf = cpu_buffer_of(&r, "f", NULL, sizeof f);
    pi = cpu_buffer_of(&r, "i", NULL, sizeof i);
    l = cpu_launch_of(&r, "one_by_one", 1, 1);
    launch_ptr(&l, pf);
    launch_ptr(&l, pi);
    cpu_submit(&r, &l);
    cpu_read(&r, got_f, pf, sizeof f);
    cpu_read(&r, got_i, pi, sizeof i);
    for (unsigned k = 0; k < sizeof f / sizeof *f; k++)
        if (got_f[k] != f[k] && !(isnan(f[k]) && isnan(got_f[k])))
            fail_msg("float %u: %g, must be %g", k, (double)got_f[k], (double)f[k]);
    for (unsigned k = 0; k < sizeof i / sizeof *i; k++)
        if (got_i[k] != i[k])
            fail_msg("integer %u: %lld, must be %lld", k, (long long)got_i[k], (long long)i[k]);
    cpu_run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_precision_rounds_as_it_says),
        cmocka_unit_test(narrow_formats_round_as_they_say),
        cmocka_unit_test(the_others_say_what_the_manual_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
