/* `deltarig golden`: what the reference says, without any kernel or device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/case_select.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "measure/golden_cache.h"
#include "problem/operator.h"

struct args {
    const char *case_text, *tier, *cases_dir, *golden_dir, *export_dir;
    bool check;
};

#define AT(member) offsetof(struct args, member)

static const struct option_spec specs[] = {
    {"--case", OPTION_TEXT, AT(case_text), "TEXT", "this case alone (key={a,b} makes several)"},
    {"--tier", OPTION_TEXT, AT(tier), "TIER", TIER_HELP},
    {"--check", OPTION_FLAG, AT(check), NULL,
     "is the cached file sound and what the reference says now?"},
    {"--export", OPTION_TEXT, AT(export_dir), "DIR",
     "write inputs, values and bounds as .npy (one case)"},
    {"--golden-dir", OPTION_TEXT, AT(golden_dir), "DIR", "the cache (default build/golden)"},
    {"--cases", OPTION_TEXT, AT(cases_dir), "DIR", "the case files (default cases)"},
    {NULL, OPTION_FLAG, 0, NULL, NULL},
};

static const struct usage usage = {
    .synopsis = "deltarig golden [PATTERN...] [options]",
    .about = "Computes the goldens of the cases that match (or takes them from the cache) and "
             "shows, for\n"
             "each output, how many values are compared, their magnitude and the bounds.\n"
             "Exit codes: 0 shown or the same, 1 --check: a cached golden differs from the\n"
             "reference, 2 bad input or --check: one is damaged, 3 no case, or --check: none is\n"
             "cached or all are stale.\n",
    .specs = specs,
    .max_words = 1000,
};

/* --- showing ---------------------------------------------------------------------------------- */

static void print_buffer(const struct buffer *b, const struct expectation *e)
{
    size_t n[EXPECT_FREE + 1] = {0};
    double largest = 0.0, likely = 0.0, worst = 0.0;
    for (size_t i = 0; i < b->count; i++) {
        enum expect what = expectation_at(e, i);
        n[what]++;
        if (what != EXPECT_VALUE)
            continue;
        largest = fmax(largest, fabs(e->value[i]));
        likely = fmax(likely, (double)e->likely[i]);
        worst = fmax(worst, (double)e->worst[i]);
    }
    printf("  %-14s %zu values, %zu exact, %zu kept, %zu free", b->name, n[EXPECT_VALUE],
           n[EXPECT_EXACT], n[EXPECT_KEEP], n[EXPECT_FREE]);
    if (n[EXPECT_VALUE] > 0)
        printf("; largest value %.4g, likely bound %.3g, worst-case bound %.3g", largest, likely,
               worst);
    printf("\n");
}

static void print_golden(const struct problem *p, const struct golden *g, bool cached,
                         double seconds)
{
    if (cached)
        printf("%s\n  from the cache\n", p->tc.text);
    else
        printf("%s\n  computed in %.2f s\n", p->tc.text, seconds);
    for (unsigned i = 0; i < p->count; i++)
        if (p->buffer[i].role == ROLE_OUT || p->buffer[i].role == ROLE_INOUT)
            print_buffer(&p->buffer[i], &g->of[i]);
}

static int show(const struct args *a, const struct golden_source *src, const struct problem *p,
                struct err *err)
{
    struct golden g;
    bool cached;
    double seconds;
    if (golden_obtain(p, src, &g, &cached, &seconds, err) < 0)
        return cli_error(err);
    print_golden(p, &g, cached, seconds);
    int code = EXIT_PASS;
    if (a->export_dir != NULL && golden_export(a->export_dir, p, &g, err) < 0)
        code = cli_error(err);
    golden_release(&g);
    return code;
}

/* --- checking --------------------------------------------------------------------------------- */

static bool same_array(const void *a, const void *b, size_t bytes)
{
    return (a == NULL || b == NULL) ? a == b : memcmp(a, b, bytes) == 0;
}

/* Compares what counts: the arrays of a fresh golden may be there without holding anything. */
static bool same_expectation(const struct buffer *b, const struct expectation *x,
                             const struct expectation *y)
{
    for (size_t i = 0; i < b->count; i++) {
        enum expect what = expectation_at(x, i);
        if (what != expectation_at(y, i))
            return false;
        if (what == EXPECT_KEEP || what == EXPECT_FREE)
            continue;
        if (!same_array(&x->value[i], &y->value[i], sizeof(*x->value)))
            return false;
        if (what == EXPECT_VALUE && (!same_array(&x->worst[i], &y->worst[i], sizeof(*x->worst)) ||
                                     !same_array(&x->likely[i], &y->likely[i], sizeof(*x->likely))))
            return false;
    }
    return true;
}

static int compare_goldens(const struct problem *p, const struct golden *cached, struct err *err)
{
    struct golden fresh;
    struct golden_source src = {.dir = NULL};
    bool from_cache;
    double seconds;
    if (golden_obtain(p, &src, &fresh, &from_cache, &seconds, err) < 0)
        return cli_error(err);
    int code = EXIT_PASS;
    for (unsigned i = 0; i < p->count && code == EXIT_PASS; i++) {
        if (same_expectation(&p->buffer[i], &cached->of[i], &fresh.of[i]))
            continue;
        printf("DIFFERS  %s: buffer %s is not what the same reference says now\n", p->tc.text,
               p->buffer[i].name);
        code = EXIT_FAIL;
    }
    if (code == EXIT_PASS)
        printf("same     %s\n", p->tc.text);
    golden_release(&fresh);
    return code;
}

static int check(const char *dir, const struct problem *p, struct err *err)
{
    struct golden g;
    golden_init(&g, p);
    int rc = golden_load(dir, p, &g, err);
    int code = EXIT_NOTHING;
    if (rc < 0)
        code = cli_error(err);
    else if (rc == 0)
        code = compare_goldens(p, &g, err);
    else
        printf("absent or stale  %s\n", p->tc.text);
    golden_release(&g);
    return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static int work(const struct args *a, const struct golden_source *src, const struct test_case *tc)
{
    struct problem p;
    struct err err = ERR_INIT;
    problem_init(&p, tc);
    int code;
    if (tc->op->shape(&p, &err) < 0) {
        err_context(&err, "%s", tc->origin[0] != '\0' ? tc->origin : tc->op->name);
        code = cli_error(&err);
    } else {
        code = a->check ? check(src->dir, &p, &err) : show(a, src, &p, &err);
    }
    problem_release(&p);
    return code;
}

/* The gravest of all cases: bad input, then differences; absent ones count when there is nothing
 * else. */
static int gravest(int a, int b)
{
    static const int order[] = {
        [EXIT_NOTHING] = 0, [EXIT_PASS] = 1, [EXIT_FAIL] = 2, [EXIT_INPUT] = 3};
    return order[a] > order[b] ? a : b;
}

/* Where things are read from and written to: asked before a reference is computed. */
static int check_places(const struct args *a, const struct case_list *cases,
                        struct golden_place *place, struct err *err)
{
    if (a->export_dir != NULL && a->check)
        return err_set(err, ERR_INPUT, "--export and --check exclude each other");
    if (a->export_dir != NULL && cases->count > 1)
        return err_set(err, ERR_INPUT, "--export takes one case, not %zu", cases->count);
    if (a->export_dir != NULL && dir_writable(a->export_dir, err) < 0)
        return err_context(err, "--export");
    return cli_goldens(a->golden_dir, a->check, place, err);
}

static int work_all(const struct args *a, const struct golden_place *place,
                    const struct case_list *cases)
{
    struct progress said;
    progress_init(&said);
    struct golden_source src = {
        .dir = place->dir, .read_only = place->read_only, .warn = progress_warn, .ctx = &said};
    int code = EXIT_NOTHING;
    for (size_t i = 0; i < cases->count; i++)
        code = gravest(code, work(a, &src, &cases->items[i]));
    progress_release(&said);
    return code;
}

static int run(const struct args *a, const struct words *patterns)
{
    struct case_list cases;
    struct err err = ERR_INIT;
    struct golden_place place;
    struct case_selection sel = {.text = a->case_text,
                                 .dir = a->cases_dir,
                                 .tiers = a->tier,
                                 .usual = "full",
                                 .patterns = patterns};
    case_list_init(&cases);
    int code = EXIT_NOTHING;
    if (cases_select(&sel, &cases, &err) < 0)
        code = cli_error(&err);
    else if (cases.count == 0)
        code = cases_none(&sel);
    else if (check_places(a, &cases, &place, &err) < 0)
        code = cli_error(&err);
    else
        code = work_all(a, &place, &cases);
    case_list_release(&cases);
    return code;
}

int cmd_golden(int argc, char **argv)
{
    struct args args = {.check = false};
    struct words patterns;
    int code = EXIT_INPUT;
    switch (options_parse(&usage, argc, argv, &args, &patterns)) {
    case OPTIONS_OK:
        code = run(&args, &patterns);
        break;
    case OPTIONS_HELP:
        code = EXIT_PASS;
        break;
    case OPTIONS_BAD:
        break;
    }
    free(patterns.at);
    return code;
}
