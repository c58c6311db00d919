#include "cli/case_select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"

#define TIER_BIT(t) (1u << (t))

static int parse_tiers(const char *name, unsigned *out, struct err *err)
{
    static const struct {
        const char *name;
        unsigned bits;
    } known[] = {
        {"smoke", TIER_BIT(TIER_SMOKE)},
        {"full", TIER_BIT(TIER_SMOKE) | TIER_BIT(TIER_FULL)},
        {"perf", TIER_BIT(TIER_PERF)},
        {"all", TIER_BIT(TIER_SMOKE) | TIER_BIT(TIER_FULL) | TIER_BIT(TIER_PERF)},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        *out = known[i].bits;
        return 0;
    }
    return err_set(err, ERR_INPUT, "--tier %s: use smoke, full (smoke too), perf or all", name);
}

struct folder {
    const char *dir;
    struct case_list *list;
    unsigned files;
};

static int read_file(const char *name, void *ctx, struct err *err)
{
    struct folder *f = ctx;
    char path[4096];
    size_t len = strlen(name);
    if (len < 5 || strcmp(name + len - 5, ".case") != 0)
        return 0;
    f->files++;
    int n = snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set(err, ERR_INPUT, "%s: the path is too long", name);
    return case_file_read(path, f->list, err);
}

static void folder_of(const struct case_selection *sel, char *out, size_t n)
{
    if (sel->dir != NULL)
        snprintf(out, n, "%s", sel->dir);
    else
        cli_project_path("cases", out, n);
}

static int read_folder(const struct case_selection *sel, struct case_list *list, struct err *err)
{
    char dir[4096];
    folder_of(sel, dir, sizeof(dir));
    struct folder f = {.dir = dir, .list = list};
    if (dir_each(dir, read_file, &f, err) < 0)
        return f.files > 0 ? -1 : err_context(err, "--cases");
    if (f.files == 0)
        return err_set(err, ERR_INPUT, "--cases: %s: holds no .case file", dir);
    return 0;
}

static bool wanted(const struct test_case *tc, unsigned tiers, const struct words *patterns)
{
    if (!(tiers & TIER_BIT(tc->tier)))
        return false;
    for (unsigned i = 0; i < patterns->count; i++)
        if (case_matches(tc, patterns->at[i]))
            return true;
    return patterns->count == 0;
}

struct keyed {
    const struct test_case *tc;
    size_t index;
};

static int by_text(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    int order = strcmp(a->tc->text, b->tc->text);
    if (order != 0)
        return order;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Drops all but the first of equal cases, keeping the order. */
static void drop_repeats(struct case_list *list)
{
    if (list->count == 0)
        return;
    struct keyed *order = xcalloc(list->count, sizeof(*order));
    bool *repeat = xcalloc(list->count, sizeof(*repeat));
    for (size_t i = 0; i < list->count; i++)
        order[i] = (struct keyed){&list->items[i], i};
    qsort(order, list->count, sizeof(*order), by_text);
    for (size_t i = 1; i < list->count; i++)
        repeat[order[i].index] = strcmp(order[i - 1].tc->text, order[i].tc->text) == 0;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!repeat[i])
            list->items[kept++] = list->items[i];
    list->count = kept;
    free(order);
    free(repeat);
}

static int select_one(const struct case_selection *sel, struct case_list *out, struct err *err)
{
    const char *other = sel->patterns->count > 0 ? "patterns"
                        : sel->dir != NULL       ? "--cases"
                        : sel->tiers != NULL     ? "--tier"
                                                 : NULL;
    if (other != NULL)
        return err_set(err, ERR_INPUT, "--case and %s exclude each other", other);
    return case_line_expand(sel->text, TIER_FULL, out, err) < 0 ? err_context(err, "--case") : 0;
}

static const char *tiers_of(const struct case_selection *sel)
{
    return sel->tiers != NULL ? sel->tiers : sel->usual;
}

int cases_none(const struct case_selection *sel)
{
    const struct words *p = sel->patterns;
    char dir[4096];
    folder_of(sel, dir, sizeof(dir));
    fprintf(stderr, "deltarig: no case matches: tier %s of %s has none", tiers_of(sel), dir);
    if (p->count > 0)
        fprintf(stderr, " like '%s'%s", p->at[0], p->count > 1 ? " or the other patterns" : "");
    fprintf(stderr, "; `deltarig list` shows all\n");
    return EXIT_NOTHING;
}

int cases_select(const struct case_selection *sel, struct case_list *out, struct err *err)
{
    if (sel->text != NULL)
        return select_one(sel, out, err);
    unsigned tiers = 0;
    if (parse_tiers(tiers_of(sel), &tiers, err) < 0 || read_folder(sel, out, err) < 0)
        return -1;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (wanted(&out->items[i], tiers, sel->patterns))
            out->items[kept++] = out->items[i];
    out->count = kept;
    drop_repeats(out);
    return 0;
}
