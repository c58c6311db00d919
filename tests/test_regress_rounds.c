/* The rounds of one side: collected from its records, refused when a sample is no time. */
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
#include "base/number.h"
#include "record/regress.h"

static void make_record(struct bench_record *r, struct bench_sample *sample, unsigned n)
{
    memset(r, 0, sizeof *r);
    r->valid = true;
    r->sample = sample;
    r->nsamples = n;
    for (unsigned i = 0; i < n; i++)
        sample[i] = (struct bench_sample){.us = 10.0 + i, .round = i / 2, .at_s = i};
}

static void rounds_are_medians_of_their_samples(void **state)
{
    struct bench_record *r = xcalloc(1, sizeof *r);
    const struct bench_record *list[] = {r};
    struct rounds *out = xcalloc(1, sizeof *out);
    struct bench_sample sample[6];

    (void)state;
    make_record(r, sample, 6);
    sample[3].flagged = true;
    sample[3].us = NAN64; /* a flagged sample does not count, whatever it is */
    r->event_tick_us = 1.0;
    r->launches_per_sample = 4;
    rounds_collect(list, 1, out);
    assert_string_equal(out->invalid, "");
    assert_int_equal(out->count, 3);
    assert_true(out->us[0] == 10.5 && out->us[1] == 12.0 && out->us[2] == 14.5);
    assert_true(out->first_s[2] == 4.0 && out->last_s[2] == 5.0);
    assert_true(out->tick_us == 0.25);
    assert_int_equal(out->nsamples, 5);
    assert_int_equal(out->nflagged, 1);
    assert_true(out->numbered && out->number[0] == 0 && out->number[2] == 2);
    rounds_collect((const struct bench_record *[]){r, r}, 2, out);
    assert_int_equal(out->count, 6);
    assert_false(out->numbered); /* the numbers of two runs say nothing */
    free(r);
    free(out);
}

static void bad_samples_make_the_side_invalid(void **state)
{
    struct bench_record *r = xcalloc(1, sizeof *r);
    const struct bench_record *list[] = {r};
    struct rounds *out = xcalloc(1, sizeof *out);
    struct bench_sample sample[4];

    (void)state;
    make_record(r, sample, 4);
    sample[2].us = NAN64;
    rounds_collect(list, 1, out);
    assert_non_null(strstr(out->invalid, "sample 3 of 4 is nan"));
    make_record(r, sample, 4);
    sample[0].us = 0.0; /* a launch that failed is not the fastest */
    rounds_collect(list, 1, out);
    assert_non_null(strstr(out->invalid, "sample 1 of 4 is 0 us"));
    make_record(r, sample, 4);
    for (int i = 0; i < 4; i++)
        sample[i].flagged = true;
    rounds_collect(list, 1, out);
    assert_non_null(strstr(out->invalid, "all 4 samples are flagged"));
    make_record(r, sample, 0);
    rounds_collect(list, 1, out);
    assert_non_null(strstr(out->invalid, "0 samples"));
    make_record(r, sample, 4);
    r->valid = false;
    snprintf(r->reason, sizeof r->reason, "below the floor");
    rounds_collect(list, 1, out);
    assert_string_equal(out->invalid, "below the floor");
    free(r);
    free(out);
}

static void many_rounds_are_merged(void **state)
{
    enum { N = 1000 };
    struct bench_record *r = xcalloc(1, sizeof *r);
    const struct bench_record *list[] = {r};
    struct rounds *out = xcalloc(1, sizeof *out);
    struct bench_sample *sample = xcalloc(N, sizeof *sample);

    (void)state;
    make_record(r, sample, N);
    rounds_collect(list, 1, out);
    assert_int_equal(out->count, REGRESS_MAX_ROUNDS);
    assert_true(out->us[0] < 30.0 && out->us[REGRESS_MAX_ROUNDS - 1] > 980.0);
    assert_true(out->last_s[REGRESS_MAX_ROUNDS - 1] == N - 1);
    assert_false(out->numbered);
    free(r);
    free(out);
    free(sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_are_medians_of_their_samples),
        cmocka_unit_test(bad_samples_make_the_side_invalid),
        cmocka_unit_test(many_rounds_are_merged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
