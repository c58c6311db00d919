/* Case files: lines, tiers, brace products. The grammar is in problem/test_case.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "problem/test_case.h"

/* A line has at most one brace per parameter and one for the seed. */
#define MAX_BRACES (CASE_MAX_PARAMS + 1)

void case_list_init(struct case_list *list)
{
    memset(list, 0, sizeof(*list));
}

void case_list_release(struct case_list *list)
{
    free(list->items);
    memset(list, 0, sizeof(*list));
}

static int list_add(struct case_list *list, const struct test_case *tc, struct err *err)
{
    if (list->count == CASE_LIST_MAX)
        return err_set(err, ERR_INPUT, "more than %d cases; split the braces", CASE_LIST_MAX);
    if (list->count == list->cap) {
        list->cap = list->cap > 0 ? 2 * list->cap : 64;
        list->items = xrealloc(list->items, list->cap, sizeof(*list->items));
    }
    list->items[list->count++] = *tc;
    return 0;
}

/* Where a line's first brace group is: key={first,second}. */
struct braces {
    const char *open, *close;
};

/* 1 when there is a group, 0 when there is none. */
static int find_braces(const char *line, struct braces *b, struct err *err)
{
    b->open = strchr(line, '{');
    const char *stray = strchr(line, '}');
    if (b->open == NULL && stray == NULL)
        return 0;
    if (b->open == NULL || (stray != NULL && stray < b->open))
        return err_set(err, ERR_INPUT, "'}' without a '{' before it");
    b->close = strpbrk(b->open + 1, "{}");
    if (b->close == NULL)
        return err_set(err, ERR_INPUT, "'{' without its '}'");
    if (*b->close == '{')
        return err_set(err, ERR_INPUT, "braces inside braces");
    bool whole = b->open > line && b->open[-1] == '=' && strchr(" \t", b->close[1]) != NULL;
    if (!whole)
        return err_set(err, ERR_INPUT, "braces must be a whole value: key={a,b,c}");
    return 1;
}

static int expand(const char *line, enum tier tier, unsigned depth, struct case_list *list,
                  struct err *err);

static int expand_item(const char *line, const struct braces *b, const char *item, size_t len,
                       enum tier tier, unsigned depth, struct case_list *list, struct err *err)
{
    while (len > 0 && isspace((unsigned char)*item)) {
        item++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)item[len - 1]))
        len--;
    if (len == 0)
        return err_set(err, ERR_INPUT, "an empty value in '%.*s'", (int)(b->close - b->open + 1),
                       b->open);
    char one[CASE_LINE_MAX];
    int n = snprintf(one, sizeof(one), "%.*s%.*s%s", (int)(b->open - line), line, (int)len, item,
                     b->close + 1);
    if (n < 0 || (size_t)n >= sizeof(one))
        return err_set(err, ERR_INPUT, "a line longer than %d characters", CASE_LINE_MAX - 1);
    return expand(one, tier, depth + 1, list, err);
}

static int expand(const char *line, enum tier tier, unsigned depth, struct case_list *list,
                  struct err *err)
{
    struct braces b = {.open = NULL, .close = NULL};
    int found = find_braces(line, &b, err);
    if (found < 0)
        return -1;
    if (found == 0) {
        struct test_case tc;
        if (case_parse(line, &tc, err) < 0)
            return -1;
        tc.tier = tier;
        return list_add(list, &tc, err);
    }
    if (depth == MAX_BRACES)
        return err_set(err, ERR_INPUT, "more than %d braces on a line", MAX_BRACES);
    const char *item = b.open + 1;
    while (item <= b.close) {
        size_t len = strcspn(item, ",}");
        if (expand_item(line, &b, item, len, tier, depth, list, err) < 0)
            return -1;
        item += len + 1;
    }
    return 0;
}

int case_line_expand(const char *line, enum tier tier, struct case_list *list, struct err *err)
{
    return expand(line, tier, 0, list, err);
}

/* --- whole files ------------------------------------------------------------------------------ */

struct reader {
    const char *path;
    char stem[64]; /* the operator's name */
    bool in_tier;
    enum tier tier;
    unsigned line;
};

static int set_stem(struct reader *r, struct err *err)
{
    const char *base = path_last(r->path);
    const char *dot = strrchr(base, '.');
    size_t len = dot != NULL ? (size_t)(dot - base) : strlen(base);
    if (len == 0 || len >= sizeof(r->stem))
        return err_set(err, ERR_INPUT,
                       "the file must be named after its operator: <operator>.case");
    memcpy(r->stem, base, len);
    r->stem[len] = '\0';
    return 0;
}

static int open_tier(struct reader *r, const char *line, struct err *err)
{
    char name[16] = "";
    size_t len = strlen(line);
    if (len < sizeof(name) && len > 2 && line[len - 1] == ']') {
        memcpy(name, line + 1, len - 2);
        name[len - 2] = '\0';
    }
    if (!tier_parse(name, &r->tier))
        return err_set(err, ERR_INPUT, "'%.40s' is no tier; write [smoke], [full] or [perf]", line);
    r->in_tier = true;
    return 0;
}

/* `line` is trimmed and not empty. */
static int read_line(struct reader *r, const char *line, struct case_list *list, struct err *err)
{
    if (line[0] == '[')
        return open_tier(r, line, err);
    if (!r->in_tier)
        return err_set(err, ERR_INPUT, "a case before the first [smoke], [full] or [perf]");
    size_t name = strcspn(line, " \t");
    if (name != strlen(r->stem) || memcmp(line, r->stem, name) != 0)
        return err_set(err, ERR_INPUT,
                       "cases of this file start with '%s' (the file's name), not '%.*s'", r->stem,
                       name < 64 ? (int)name : 64, line);
    size_t first = list->count;
    if (case_line_expand(line, r->tier, list, err) < 0)
        return -1;
    for (size_t i = first; i < list->count; i++)
        snprintf(list->items[i].origin, sizeof(list->items[i].origin), "%s:%u", r->path, r->line);
    return 0;
}

static char *trim(char *line)
{
    line[strcspn(line, "#")] = '\0';
    while (isspace((unsigned char)*line))
        line++;
    size_t n = strlen(line);
    while (n > 0 && isspace((unsigned char)line[n - 1]))
        line[--n] = '\0';
    return line;
}

static int read_lines(struct reader *r, char *data, size_t len, struct case_list *list,
                      struct err *err)
{
    char *end = data + len;
    while (data < end) {
        char *stop = memchr(data, '\n', (size_t)(end - data));
        if (stop == NULL)
            stop = end;
        *stop = '\0'; /* struct text keeps a byte after its contents */
        r->line++;
        if (strlen(data) != (size_t)(stop - data))
            return err_set(err, ERR_INPUT, "a NUL byte; case files are plain text");
        char *line = trim(data);
        if (strlen(line) >= CASE_LINE_MAX)
            return err_set(err, ERR_INPUT, "a line longer than %d characters", CASE_LINE_MAX - 1);
        if (line[0] != '\0' && read_line(r, line, list, err) < 0)
            return -1;
        data = stop + 1;
    }
    return 0;
}

static int by_tier_and_text(const void *left, const void *right)
{
    const struct test_case *a = *(const struct test_case *const *)left;
    const struct test_case *b = *(const struct test_case *const *)right;
    if (a->tier != b->tier)
        return a->tier < b->tier ? -1 : 1;
    int order = strcmp(a->text, b->text);
    if (order != 0)
        return order;
    return a < b ? -1 : a > b;
}

/* The same case twice in a tier: a slip in a product, and records are keyed by the text. */
static int find_duplicate(const struct case_list *list, size_t first, struct err *err)
{
    size_t n = list->count - first;
    if (n < 2)
        return 0;
    const struct test_case **order = xcalloc(n, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = &list->items[first + i];
    qsort(order, n, sizeof(*order), by_tier_and_text);
    int rc = 0;
    for (size_t i = 1; i < n && rc == 0; i++)
        if (order[i - 1]->tier == order[i]->tier && strcmp(order[i - 1]->text, order[i]->text) == 0)
            rc = err_set(err, ERR_INPUT, "%s: the case '%s' is there already, from %s",
                         order[i]->origin, order[i]->text, order[i - 1]->origin);
    free(order);
    return rc;
}

int case_file_read(const char *path, struct case_list *list, struct err *err)
{
    struct text data;
    text_init(&data);
    struct reader r = {.path = path};
    size_t first = list->count;
    int rc = -1;
    if (file_read(path, CASE_FILE_MAX_BYTES, &data, err) < 0)
        goto out;
    if (set_stem(&r, err) < 0) {
        err_context(err, "%s", path);
        goto out;
    }
    if (read_lines(&r, data.data, data.len, list, err) < 0) {
        err_context(err, "%s:%u", path, r.line);
        goto out;
    }
    if (list->count == first)
        err_set(err, ERR_INPUT, "%s: holds no case; write one, or remove the file", path);
    else
        rc = find_duplicate(list, first, err);
out:
    if (rc < 0)
        list->count = first;
    text_release(&data);
    return rc;
}
