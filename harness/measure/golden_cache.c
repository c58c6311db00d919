#include "measure/golden_cache.h"

#include <time.h>

#include "base/file.h"
#include "problem/operator.h"

double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a golden's file is read (and checked) at; a plain disk's rate, since a faster one only makes
   the cache smaller than it could be. */
#define READ_BYTES_PER_SECOND 200e6

/* 8 bytes of value, 4 of each bound, 1 of kind (problem/golden.h). */
#define GOLDEN_ELEMENT_BYTES 17.0

static bool worth_storing(const struct golden *g, double seconds)
{
    double bytes = 0.0;
    for (unsigned i = 0; i < g->count; i++)
        bytes += g->of[i].expect != NULL ? GOLDEN_ELEMENT_BYTES * (double)g->of[i].count : 0.0;
    return seconds * READ_BYTES_PER_SECOND > bytes;
}

static void warn_with(const struct golden_source *src, const char *text)
{
    if (src->warn != NULL)
        src->warn(src->ctx, text);
}

bool golden_cache_writable(const char *dir, struct err *why)
{
    return dir_writable(dir, why) == 0;
}

/* True when the cache had it. */
static bool load(const struct problem *p, const struct golden_source *src, struct golden *g)
{
    struct err why = ERR_INIT;
    int rc = golden_load(src->dir, p, g, &why);
    if (rc < 0) {
        err_context(&why, "a damaged golden is computed anew");
        warn_with(src, why.text);
    }
    return rc == 0;
}

int golden_obtain(const struct problem *p, const struct golden_source *src, struct golden *g,
                  bool *cached, double *seconds, struct err *err)
{
    golden_init(g, p);
    *seconds = 0.0;
    *cached = src->dir != NULL && load(p, src, g);
    if (*cached)
        return 0;
    struct reference_env env = {.workers = src->workers};
    double start = wall_seconds();
    if (p->tc.op->reference(p, &env, g, err) < 0) {
        golden_release(g);
        return err_context(err, "reference of %s", p->tc.op->name);
    }
    *seconds = wall_seconds() - start;
    struct err why = ERR_INIT;
    bool store =
        src->dir != NULL && !src->read_only && (!src->only_slow || worth_storing(g, *seconds));
    if (store && golden_store(src->dir, p, g, &why) < 0) {
        err_context(&why, "the golden is used but not kept");
        warn_with(src, why.text);
    }
    return 0;
}
