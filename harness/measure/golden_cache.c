#include "measure/golden_cache.h"

#include <time.h>

#include "problem/operator.h"

double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void warn_with(const struct golden_source *src, const char *text)
{
    if (src->warn != NULL)
        src->warn(text);
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
    if (src->dir != NULL && golden_store(src->dir, p, g, &why) < 0) {
        err_context(&why, "the golden is used but not kept");
        warn_with(src, why.text);
    }
    return 0;
}
