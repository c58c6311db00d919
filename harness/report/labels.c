#include "report/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "report/escape.h"

/* --- cases ------------------------------------------------------------------------------------ */

static bool same_operator(const char *a, const char *b)
{
    size_t n = strcspn(a, " ");

    return n == strcspn(b, " ") && strncmp(a, b, n) == 0;
}

/* True when `text` has the word of `n` characters. */
static bool has_word(const char *text, const char *word, size_t n)
{
    for (const char *p = text; *p; p += strspn(p, " ")) {
        size_t length = strcspn(p, " ");

        if (length == n && strncmp(p, word, n) == 0)
            return true;
        p += length;
    }
    return false;
}

/* The word tells all[i] from another case of its operator. */
static bool telling(const char *const *all, size_t count, size_t i, const char *word, size_t n)
{
    bool alone = true;

    for (size_t k = 0; k < count; k++) {
        if (strcmp(all[k], all[i]) == 0 || !same_operator(all[k], all[i]))
            continue;
        if (!has_word(all[k], word, n))
            return true;
        alone = false;
    }
    return alone;
}

void label_case(const char *const *all, size_t count, size_t i, size_t n, struct text *out)
{
    const char *p = all[i] + strcspn(all[i], " ");
    struct text label;

    text_init(&label);
    text_add_bytes(&label, all[i], (size_t)(p - all[i]));
    for (p += strspn(p, " "); *p; p += strspn(p, " ")) {
        size_t length = strcspn(p, " ");

        if (telling(all, count, i, p, length)) {
            text_add(&label, " ");
            text_add_bytes(&label, p, length);
        }
        p += length;
    }
    if (utf8_count(label.data) > n && label.len > n) {
        text_add_bytes(out, label.data, n - 3);
        text_add(out, "...");
    } else {
        text_add(out, label.data);
    }
    text_release(&label);
}

void label_bench(const struct device_group *g, const struct bench_record *r, size_t n,
                 struct text *out)
{
    const char **all = xcalloc(g->nbench, sizeof *all);
    struct text label;
    size_t at = 0;

    text_init(&label);
    for (size_t i = 0; i < g->nbench; i++) {
        all[i] = g->bench[i]->case_text;
        if (g->bench[i] == r)
            at = i;
    }
    label_case(all, g->nbench, at, n, &label);
    escape_gnuplot(out, label.data);
    text_release(&label);
    free(all);
}

/* --- places ----------------------------------------------------------------------------------- */

#define DIRECTIONS 16
#define NEAREST    1.0  /* gap between a point and its label, in heights of the label */
#define FARTHEST   14.0 /* a reader follows no longer line, unless nothing nearer is free */
#define LED_FROM   1.6

static bool overlap(const struct label_mark *a, const struct label_mark *b)
{
    return 2.0 * fabs(a->x - b->x) < a->width + b->width &&
           2.0 * fabs(a->y - b->y) < a->height + b->height;
}

struct page {
    struct label_mark *taken;
    size_t ntaken;
    double width, height;
};

static bool is_free(const struct page *page, const struct label_mark *m)
{
    if (m->x - m->width / 2 < 0 || m->x + m->width / 2 > page->width || m->y - m->height / 2 < 0 ||
        m->y + m->height / 2 > page->height)
        return false;
    for (size_t i = 0; i < page->ntaken; i++)
        if (overlap(&page->taken[i], m))
            return false;
    return true;
}

/* The label's centre `reach` away from the point, its nearer edge towards it; a `turn` of 1 is once
   around. */
static struct label_mark beside(const struct label_spot *s, double reach, double turn)
{
    double angle = 2.0 * acos(-1.0) * turn;

    return (struct label_mark){s->x + cos(angle) * (reach + s->width / 2),
                               s->y + sin(angle) * (reach + s->height / 2), s->width, s->height};
}

/* Tries `directions` places at that distance. */
static bool try_around(const struct page *page, const struct label_spot *s, double reach,
                       unsigned directions, struct label_mark *out)
{
    for (unsigned d = 0; d < directions; d++) {
        *out = beside(s, reach, (double)d / directions);
        if (is_free(page, out))
            return true;
    }
    return false;
}

static struct label_mark find_place(const struct page *page, struct label_spot *s)
{
    double longest = hypot(page->width, page->height);
    struct label_mark m;

    for (double gap = NEAREST; gap <= FARTHEST; gap *= 1.25)
        if (try_around(page, s, gap * s->height, DIRECTIONS, &m)) {
            s->led = gap > LED_FROM;
            return m;
        }
    s->led = true;
    /* Crowds of a hundred: rings a label apart, and labels side by side in them. */
    for (double reach = NEAREST * s->height; reach < longest; reach += s->height)
        if (try_around(page, s, reach, 8 + (unsigned)(6.3 * reach / s->height), &m))
            return m;
    s->led = false;
    return beside(s, NEAREST * s->height, 0.0);
}

void label_place(struct label_spot *spot, size_t spots, const struct label_mark *mark, size_t marks,
                 double width, double height)
{
    struct page page = {.width = width, .height = height};

    page.taken = xcalloc(spots + marks ? spots + marks : 1, sizeof *page.taken);
    for (size_t i = 0; i < marks; i++)
        page.taken[page.ntaken++] = mark[i];
    for (size_t i = 0; i < spots; i++) {
        struct label_mark m = find_place(&page, &spot[i]);

        spot[i].at_x = m.x;
        spot[i].at_y = m.y;
        page.taken[page.ntaken++] = m;
    }
    free(page.taken);
}
