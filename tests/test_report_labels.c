/* Labels: what tells cases apart, and numbers that cover nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/labels.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void assert_label(const char *const *all, size_t count, size_t i, size_t n, const char *want)
{
    struct text out;

    text_init(&out);
    label_case(all, count, i, n, &out);
    assert_string_equal(out.data, want);
    text_release(&out);
}

static void cases_are_named_by_what_differs(void **state)
{
    static const char *const all[] = {
        "gemv N=64 K=4096 fill=unit seed=1",  "gemv N=64 K=128 fill=unit seed=1",
        "gemv N=128 K=4096 fill=unit seed=1", "gemv N=128 K=4096 fill=unit seed=1",
        "gemv_batchm M=2 N=64 seed=1",        "fill",
    };

    (void)state;
    assert_label(all, COUNT(all), 0, 60, "gemv N=64 K=4096");
    assert_label(all, COUNT(all), 1, 60, "gemv N=64 K=128");
    assert_label(all, COUNT(all), 2, 60, "gemv N=128 K=4096"); /* its hot twin is the same case */
    assert_label(all, COUNT(all), 4, 60, "gemv_batchm M=2 N=64 seed=1"); /* alone of its kind */
    assert_label(all, COUNT(all), 5, 60, "fill");
    assert_label(all, COUNT(all), 2, 12, "gemv N=12...");
}

static bool apart(const struct label_spot *a, double x, double y, double width, double height)
{
    return 2 * fabs(a->at_x - x) >= a->width + width - 1e-9 ||
           2 * fabs(a->at_y - y) >= a->height + height - 1e-9;
}

/* Eighty points in a heap. */
static void labels_cover_neither_points_nor_each_other(void **state)
{
    enum { N = 80 };
    struct label_spot spot[N];
    struct label_mark mark[N];

    (void)state;
    for (size_t i = 0; i < N; i++) {
        double x = 400 + 4.0 * (double)(i % 9), y = 300 + 7.0 * (double)(i / 9);

        spot[i] = (struct label_spot){.x = x, .y = y, .width = 16, .height = 11};
        mark[i] = (struct label_mark){x, y, 10, 10};
    }
    label_place(spot, N, mark, N, 1200, 700);
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++) {
            assert_true(apart(&spot[i], mark[k].x, mark[k].y, mark[k].width, mark[k].height));
            assert_true(i == k || apart(&spot[i], spot[k].at_x, spot[k].at_y, 16, 11));
        }
}

static void a_lone_label_stays_near_and_inside(void **state)
{
    struct label_spot spot[] = {{.x = 5, .y = 695, .width = 16, .height = 11},
                                {.x = 600, .y = 300, .width = 16, .height = 11}};

    (void)state;
    label_place(spot, COUNT(spot), NULL, 0, 1200, 700);
    for (size_t i = 0; i < COUNT(spot); i++) {
        assert_true(spot[i].at_x >= 8 && spot[i].at_y <= 700 - 5.5);
        assert_true(hypot(spot[i].at_x - spot[i].x, spot[i].at_y - spot[i].y) < 30);
        assert_false(spot[i].led);
    }
}

/* Nowhere to go: it stays beside its point, and nothing breaks. */
static void a_full_page_hides_nothing(void **state)
{
    struct label_spot spot = {.x = 600, .y = 300, .width = 16, .height = 11};
    struct label_mark all = {600, 350, 1200, 700};

    (void)state;
    label_place(&spot, 1, &all, 1, 1200, 700);
    assert_true(fabs(spot.at_x - spot.x) < 30 && fabs(spot.at_y - spot.y) < 30);
    label_place(NULL, 0, NULL, 0, 1200, 700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_are_named_by_what_differs),
        cmocka_unit_test(labels_cover_neither_points_nor_each_other),
        cmocka_unit_test(a_lone_label_stays_near_and_inside),
        cmocka_unit_test(a_full_page_hides_nothing),
    };

    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
