/*
 * Barriers and warp operations: called from kernel code, on a fiber.
 *
 * A lane deposits its operands and waits; the last lane of the mask to arrive computes every lane's
 * result. Lanes that have exited count as arrived (CUDA C++ Programming Guide, "Warp Shuffle
 * Functions": the non-exited threads named in the mask). What a lane reads from one outside the
 * mask is undefined on the GPU; here it is a NaN.
 */
#include <string.h>

#include "device/cpu/cpu_worker.h"
#include "device/cpu/cpu_yield.h"

#define POISON 0xffffffdeffffffdeu /* NaNs as double, float, bf16 and fp16 */

/* --- barriers --------------------------------------------------------------------------------- */

/* A barrier's place is its file and line and, behind the NUL, a number of its own: CPU_SITE. */
static bool same_site(const char *a, const char *b)
{
    return a == b || (strcmp(a, b) == 0 && strcmp(a + strlen(a) + 1, b + strlen(b) + 1) == 0);
}

/* The first thread at a barrier, or one at another place than the first. */
static void check_place(struct cpu_worker *w, const char *where)
{
    if (!w->barrier_where)
        w->barrier_where = where;
    else if (!same_site(w->barrier_where, where))
        cpu_fail("__syncthreads at %s while other threads of the block wait at %s%s", where,
                 strcmp(w->barrier_where, where) ? "" : "another one, at ", w->barrier_where);
}

static inline void arrive(struct cpu_worker *w, struct cpu_fiber *f, const char *where)
{
    f->state = FIBER_BARRIER;
    f->barrier = w->barrier;
    f->where = where;
    w->waiting[w->nwaiting++] = f;
}

static __attribute__((noinline)) void wait_at_barrier(const char *where)
{
    struct cpu_fiber *f = cpu_running();
    struct cpu_worker *w = f->worker;

    check_place(w, where);
    arrive(w, f, where);
    if (w->nwaiting == w->live)
        cpu_release_barrier(w);
    cpu_yield(w, f);
}

/* The common case keeps nothing over the switch, so it saves no registers twice: neither the first
   nor the last to arrive, and somebody is ready. */
void cpu_barrier(const char *where)
{
    struct cpu_fiber *f = cpu_running();
    struct cpu_worker *w = f->worker;

    if (w->barrier_where != where || w->nwaiting + 1 == w->live) {
        wait_at_barrier(where);
        return;
    }
    arrive(w, f, where);
    cpu_yield(w, f);
}

int cpu_barrier_vote(enum cpu_vote op, int predicate, const char *where)
{
    struct cpu_worker *w = cpu_running()->worker;

    w->vote_count += op == CPU_VOTE_AND ? !predicate : predicate;
    wait_at_barrier(where);
    if (op == CPU_VOTE_AND)
        return w->vote_result == 0; /* nobody said no */
    return op == CPU_VOTE_OR ? w->vote_result != 0 : w->vote_result;
}

/* --- warp operations -------------------------------------------------------------------------- */

static struct cpu_fiber *lane_of(struct cpu_fiber *f, unsigned lane)
{
    return f - f->thread.lane + lane;
}

/* The lane that lane `l` reads in a shuffle; its own where the source leaves the segment. */
static unsigned shuffle_source(const struct cpu_fiber *g, unsigned l)
{
    int width = g->width, segment = (int)l & ~(width - 1), source = 0;

    switch (g->op) {
    case CPU_WARP_SHUFFLE:
        return (unsigned)(segment + (g->arg & (width - 1)));
    case CPU_WARP_SHUFFLE_UP:
        source = (int)l - g->arg;
        return (unsigned)(source < segment ? (int)l : source);
    case CPU_WARP_SHUFFLE_DOWN:
        source = (int)l + g->arg;
        return (unsigned)(source >= segment + width ? (int)l : source);
    default:
        source = (int)l ^ g->arg; /* into a later segment: its own value; an earlier one is read */
        return (unsigned)(source >= segment + width ? (int)l : source);
    }
}

static void shuffle(struct cpu_fiber *f, uint32_t lanes)
{
    for (unsigned l = 0; l < CPU_WARP; l++) {
        struct cpu_fiber *g = lane_of(f, l);

        if (!(lanes >> l & 1))
            continue;
        unsigned source = shuffle_source(g, l);

        g->result = source < CPU_WARP && lanes >> source & 1 ? lane_of(f, source)->value : POISON;
    }
}

static uint32_t combine(enum cpu_warp_op op, uint32_t a, uint32_t b)
{
    switch (op) {
    case CPU_WARP_ADD:
        return a + b;
    case CPU_WARP_MIN:
        return b < a ? b : a;
    case CPU_WARP_MAX:
        return b > a ? b : a;
    case CPU_WARP_MIN_SIGNED:
        return (int32_t)b < (int32_t)a ? b : a;
    case CPU_WARP_MAX_SIGNED:
        return (int32_t)b > (int32_t)a ? b : a;
    case CPU_WARP_AND:
        return a & b;
    case CPU_WARP_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* One result for all lanes. */
static uint64_t reduce(struct cpu_fiber *f, uint32_t lanes)
{
    uint32_t result = 0, ballot = 0;
    bool first = true, same = true;
    uint64_t value = 0;

    for (unsigned l = 0; l < CPU_WARP; l++) {
        if (!(lanes >> l & 1))
            continue;
        uint64_t v = lane_of(f, l)->value;

        result = first ? (uint32_t)v : combine(f->op, result, (uint32_t)v);
        ballot |= (uint32_t)(v != 0) << l;
        same = same && (first || v == value);
        value = v;
        first = false;
    }
    if (f->op == CPU_WARP_BALLOT)
        return ballot;
    if (f->op == CPU_WARP_MATCH_ALL)
        return same ? lanes : 0;
    return result;
}

static void match_any(struct cpu_fiber *f, uint32_t lanes)
{
    for (unsigned l = 0; l < CPU_WARP; l++) {
        struct cpu_fiber *g = lane_of(f, l);

        if (!(lanes >> l & 1))
            continue;
        g->result = 0;
        for (unsigned m = 0; m < CPU_WARP; m++)
            if (lanes >> m & 1 && lane_of(f, m)->value == g->value)
                g->result |= 1u << m;
    }
}

static void together(struct cpu_fiber *f, uint32_t lanes)
{
    void *mine[CPU_WARP];

    if (lanes != UINT32_MAX)
        cpu_fail("%s by an incomplete warp: lanes 0x%08x", f->where, lanes);
    for (unsigned l = 0; l < CPU_WARP; l++)
        mine[l] = (void *)(uintptr_t)lane_of(f, l)->value;
    f->compute(mine);
}

static void meet(struct cpu_fiber *f, uint32_t lanes)
{
    struct cpu_fiber *there[CPU_WARP];
    unsigned n = 0;

    for (unsigned l = 0; l < CPU_WARP; l++)
        if (lanes >> l & 1)
            there[n++] = lane_of(f, l);
    cpu_sanitizer_meet(f->worker, there, n);
}

static void compute(struct cpu_fiber *f, uint32_t lanes)
{
    uint64_t result;

    switch (f->op) {
    case CPU_WARP_SYNC:
        meet(f, lanes);
        return;
    case CPU_WARP_SHUFFLE:
    case CPU_WARP_SHUFFLE_UP:
    case CPU_WARP_SHUFFLE_DOWN:
    case CPU_WARP_SHUFFLE_XOR:
        shuffle(f, lanes);
        return;
    case CPU_WARP_MATCH_ANY:
        match_any(f, lanes);
        return;
    case CPU_WARP_TOGETHER:
        together(f, lanes);
        return;
    case CPU_WARP_ACTIVE:
        result = lanes;
        break;
    default:
        result = reduce(f, lanes);
        break;
    }
    for (unsigned l = 0; l < CPU_WARP; l++)
        if (lanes >> l & 1)
            lane_of(f, l)->result = result;
}

/* The lanes that take part in the operation f waits in, 0 while somebody is missing. */
static uint32_t complete_lanes(struct cpu_worker *w, struct cpu_fiber *f)
{
    const struct cpu_warp_state *warp = &w->warp[f->linear / CPU_WARP];
    uint32_t lanes = f->mask & warp->alive;

    if (lanes & ~warp->waiting)
        return 0;
    for (unsigned l = 0; l < CPU_WARP; l++) {
        const struct cpu_fiber *g = lane_of(f, l);

        if (lanes >> l & 1 && (g->op != f->op || g->mask != f->mask ||
                               (f->op == CPU_WARP_TOGETHER && g->compute != f->compute)))
            return 0;
    }
    return lanes;
}

/* __activemask(): whoever waits at the same place once no lane of the warp can run. */
static uint32_t active_lanes(struct cpu_worker *w, struct cpu_fiber *f)
{
    const struct cpu_warp_state *warp = &w->warp[f->linear / CPU_WARP];
    uint32_t lanes = 0;

    for (unsigned l = 0; l < CPU_WARP; l++) {
        const struct cpu_fiber *g = lane_of(f, l);

        if (!(warp->alive >> l & 1))
            continue;
        if (g->state == FIBER_NEW || g->state == FIBER_READY ||
            (g->state == FIBER_BARRIER && g->barrier != w->barrier)) /* released, not resumed yet */
            return 0;
        if (g->state == FIBER_WARP && g->op == CPU_WARP_ACTIVE && g->where == f->where)
            lanes |= 1u << l;
    }
    return lanes;
}

static bool try_complete(struct cpu_worker *w, struct cpu_fiber *f)
{
    uint32_t lanes = f->op == CPU_WARP_ACTIVE ? active_lanes(w, f) : complete_lanes(w, f);

    if (!lanes)
        return false;
    w->warp[f->linear / CPU_WARP].waiting &= ~lanes;
    compute(f, lanes);
    for (unsigned i = 0; i < CPU_WARP; i++) {
        unsigned l = w->job->schedule.order == ORDER_REVERSE ? CPU_WARP - 1 - i : i;

        if (lanes >> l & 1)
            cpu_make_ready(w, lane_of(f, l));
    }
    return true;
}

void cpu_settle(struct cpu_worker *w, struct cpu_fiber *f)
{
    if (w->nwaiting && w->nwaiting == w->live)
        cpu_release_barrier(w);
    for (unsigned l = 0; l < CPU_WARP && w->warp[f->linear / CPU_WARP].waiting; l++)
        if (w->warp[f->linear / CPU_WARP].waiting >> l & 1)
            try_complete(w, lane_of(f, l));
}

bool cpu_settle_idle(struct cpu_worker *w)
{
    for (uint32_t i = 0; i < w->threads; i++) {
        struct cpu_fiber *f = &w->fiber[i];

        if (f->state == FIBER_WARP && f->op == CPU_WARP_ACTIVE && try_complete(w, f))
            return true;
    }
    return false;
}

static uint64_t wait_in_warp(struct cpu_fiber *f, enum cpu_warp_op op, uint32_t mask,
                             const char *where)
{
    struct cpu_worker *w = f->worker;

    f->op = op;
    f->mask = mask;
    f->where = where;
    if (op != CPU_WARP_ACTIVE && !(mask >> f->thread.lane & 1))
        cpu_fail("%s: lane %u is not in its own mask 0x%08x", where, f->thread.lane, mask);
    f->state = FIBER_WARP;
    w->warp[f->linear / CPU_WARP].waiting |= 1u << f->thread.lane;
    try_complete(w, f);
    cpu_yield(w, f);
    return f->result;
}

uint64_t cpu_warp(enum cpu_warp_op op, uint32_t mask, uint64_t value, int32_t arg, int32_t width,
                  const char *where)
{
    struct cpu_fiber *f = cpu_running();

    if (width < 1 || width > CPU_WARP || (width & (width - 1)))
        cpu_fail("%s: a shuffle width of %d is not a power of two up to 32", where, width);
    f->value = value;
    f->arg = arg;
    f->width = width;
    return wait_in_warp(f, op, mask, where);
}

void cpu_warp_together(void (*together_fn)(void *const mine[32]), void *mine, const char *where)
{
    struct cpu_fiber *f = cpu_running();

    f->value = (uintptr_t)mine;
    f->compute = together_fn;
    (void)wait_in_warp(f, CPU_WARP_TOGETHER, UINT32_MAX, where);
}
