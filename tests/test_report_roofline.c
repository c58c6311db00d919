/* The roofline of many cases: every number can be read, whatever its digits, and covers no roof's
   label. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "report/figures.h"

/* The figure's area in pixels, and what gnuplot's 8 point digits take there, seen in a PNG: 20 wide
   for three, 27 for four, 8 high. */
#define AREA_WIDTH  (1300 * 0.925)
#define AREA_HEIGHT (900 * 0.84)
#define DIGIT_WIDTH 6.9
#define INK_HEIGHT  8.0

struct many {
    struct device_stamp device;
    struct ceiling_record ceiling[3];
    const struct ceiling_record *roof[3];
    struct bench_record *record;
    const struct bench_record **view;
    struct device_group group;
};

struct spot {
    double x, y, width; /* in pixels; of its ink */
};

/* `n` cases on one device, their points at (x, y) of place(i). */
static void make_many(struct many *m, size_t n, void (*place)(size_t i, double *x, double *y))
{
    memset(m, 0, sizeof *m);
    snprintf(m->device.name, sizeof m->device.name, "NVIDIA H200");
    m->record = xcalloc(n, sizeof *m->record);
    m->view = xcalloc(n, sizeof *m->view);
    for (size_t i = 0; i < n; i++) {
        struct bench_record *r = &m->record[i];
        double x, y;

        place(i, &x, &y);
        snprintf(r->case_text, sizeof r->case_text, "op n=%05zu seed=1", i);
        r->valid = true;
        r->flops = 1e9;
        r->read_bytes = r->flops / x;
        r->median_us = 1e-6 * r->flops / y;
        m->view[i] = r;
    }
    m->ceiling[0] = (struct ceiling_record){.name = "dram_read", .unit = "GB/s", .value = 4500};
    m->ceiling[1] = (struct ceiling_record){.name = "dram_copy", .unit = "GB/s", .value = 4000};
    m->ceiling[2] = (struct ceiling_record){.name = "ffma", .unit = "TFLOP/s", .value = 60};
    for (size_t i = 0; i < 3; i++)
        m->roof[i] = &m->ceiling[i];
    m->group = (struct device_group){.device = &m->device,
                                     .slug = "nvidia-h200",
                                     .bench = m->view,
                                     .nbench = n,
                                     .ceiling = m->roof,
                                     .nceilings = 3};
}

static void release_many(struct many *m)
{
    free(m->view);
    free(m->record);
}

static double on_axis(double v, const double range[2], double pixels)
{
    return log(v / range[0]) / log(range[1] / range[0]) * pixels;
}

struct axes {
    double x[2], y[2];
};

static struct axes read_axes(const char *script)
{
    const char *at = strstr(script, "set xrange [");
    struct axes a;

    assert_non_null(at);
    assert_int_equal(sscanf(at, "set xrange [%lf:%lf]\nset yrange [%lf:%lf]", &a.x[0], &a.x[1],
                            &a.y[0], &a.y[1]),
                     4);
    return a;
}

/* Where the script puts the number of each case, as the reader sees it. */
static struct spot *read_numbers(const char *script, const struct axes *a, size_t n)
{
    const char *line = strstr(script, "$number << EOD\n");
    struct spot *spot = xcalloc(n, sizeof *spot);

    assert_non_null(line);
    line = strchr(line, '\n') + 1;
    for (size_t i = 0; i < n; i++) {
        double px, py;
        char digits[16];

        assert_int_equal(sscanf(line, "%lf %lf %15s", &px, &py, digits), 3);
        assert_int_equal(strtoul(digits, NULL, 10), i + 1);
        spot[i] = (struct spot){on_axis(px, a->x, AREA_WIDTH), on_axis(py, a->y, AREA_HEIGHT),
                                DIGIT_WIDTH * (double)strlen(digits)};
        line = strchr(line, '\n') + 1;
    }
    assert_memory_equal(line, "EOD\n", 4);
    return spot;
}

/* A roof's label in 9 point, seen in a PNG: 7 a character, 12 high, 15 above or below its point for
   an offset of one "character". */
static void expect_clear(const char *script, const struct axes *a, const char *name,
                         const struct spot *spot, size_t n)
{
    char start[64], side[8];
    double x, y, angle, lift, length;
    const char *at, *end;

    snprintf(start, sizeof start, "set label '%s ", name);
    at = strstr(script, start);
    assert_non_null(at);
    at += strlen("set label '");
    end = strchr(at, '\'');
    length = 7.0 * (double)(end - at);
    assert_int_equal(sscanf(end, "' at %lf,%lf %7s rotate by %lf offset 0,character %lf", &x, &y,
                            side, &angle, &lift),
                     5);
    angle *= acos(-1.0) / 180.0;
    if (strcmp(side, "right") == 0)
        length = -length;
    for (double share = 0.0; share <= 1.0; share += 1.0 / 128)
        for (size_t i = 0; i < n; i++) {
            double px = on_axis(x, a->x, AREA_WIDTH) + share * length * cos(angle);
            double py = on_axis(y, a->y, AREA_HEIGHT) + 15.0 * lift + share * length * sin(angle);

            if (fabs(px - spot[i].x) < spot[i].width / 2 &&
                fabs(py - spot[i].y) < INK_HEIGHT / 2 + 5)
                fail_msg("number %zu of %zu covers the label %s", i + 1, n, name);
        }
}

static void expect_readable(size_t n, void (*place)(size_t i, double *x, double *y))
{
    struct many m;
    struct plot p;
    struct axes a;
    struct spot *spot;

    make_many(&m, n, place);
    assert_true(figure_roofline(&m.group, 0, &p));
    a = read_axes(p.script.data);
    spot = read_numbers(p.script.data, &a, n);
    expect_clear(p.script.data, &a, "DRAM read", spot, n);
    expect_clear(p.script.data, &a, "DRAM copy", spot, n);
    expect_clear(p.script.data, &a, "fp32 fused multiply-add", spot, n);
    for (size_t i = 0; i < n; i++) {
        if (spot[i].x < 0 || spot[i].x > AREA_WIDTH || spot[i].y < 0 || spot[i].y > AREA_HEIGHT)
            fail_msg("number %zu lies outside", i + 1);
        for (size_t k = 0; k < i; k++)
            if (2 * fabs(spot[i].x - spot[k].x) < spot[i].width + spot[k].width &&
                fabs(spot[i].y - spot[k].y) < INK_HEIGHT)
                fail_msg("of %zu numbers %zu covers %zu", n, i + 1, k + 1);
    }
    free(spot);
    plot_release(&p);
    release_many(&m);
}

/* As the operators of a suite: few intensities, many times. */
static void in_columns(size_t i, double *x, double *y)
{
    *x = pow(2.0, (double)(i % 9));
    *y = 0.5 * pow(1.1, (double)(i / 9) * 20.0 / 16.0);
}

/* All in one place. */
static void in_a_heap(size_t i, double *x, double *y)
{
    *x = 4.0 * (1.0 + 1e-3 * (double)(i % 7));
    *y = 2.0 * (1.0 + 1e-3 * (double)(i % 11));
}

/* Anywhere, the same each time. */
static void scattered(size_t i, double *x, double *y)
{
    *x = pow(10.0, 3.0 * fmod((double)i * 0.618033988749895, 1.0));
    *y = pow(10.0, 3.0 * fmod((double)i * 0.754877666246693, 1.0) - 1.0);
}

static void numbers_of_three_digits_do_not_overlap(void **state)
{
    (void)state;
    expect_readable(150, in_columns);
    expect_readable(150, in_a_heap);
    expect_readable(150, scattered);
}

static void nor_do_those_of_one_two_and_four(void **state)
{
    (void)state;
    expect_readable(1, in_a_heap);
    expect_readable(99, in_a_heap);
    expect_readable(1010, scattered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_three_digits_do_not_overlap),
        cmocka_unit_test(nor_do_those_of_one_two_and_four),
    };

    return cmocka_run_group_tests_name("roofline", tests, NULL, NULL);
}
