/*
 * The plug-in interface: one operator under test. `kernels/ops/<name>.c` exports exactly one
 *
 *     const struct op operator_<name> = { .name = "<name>", ... };
 *
 * and the registry is generated from the file names (scripts/make-registry). The functions of every
 * operator file have the same static names in the same order: shape, reference, launch, identities,
 * cost. An operator may be one kernel or a composition of several; the harness cannot tell.
 */
#ifndef PROBLEM_OPERATOR_H
#define PROBLEM_OPERATOR_H

#include "base/err.h"
#include "base/text.h"
#include "device/device.h"
#include "problem/golden.h"
#include "problem/problem.h"

#define OPERATOR_MAX_ENTRIES 20

/* A kernel the operator launches. Arrays end with { NULL }. */
struct operator_entry {
    const char *module; /* kernels/gb10/<module>.cu; foreign sets may keep it elsewhere */
    const char *entry;
    bool optional; /* absent: kernel[i] is NULL and the launcher takes its other path */
};

/* What the reference may use. */
struct reference_env {
    unsigned workers; /* for parallel_for over heads; the result never depends on it */
};

/* One launch of the operator's kernels on one device. */
struct operator_run {
    const struct problem *problem;
    struct device *device;
    const struct kernel *const *kernel; /* as op->entries; NULL where optional and absent */
    const dev_ptr *ptr;                 /* in the order of problem->buffer */
};

/* Host copies of all buffers after a run, for bitwise contracts. */
struct outcome {
    const struct problem *problem;
    void *const *data; /* in the order of problem->buffer */
};

/* Collects the broken contracts of one run. */
struct identity_report {
    unsigned checked; /* contracts evaluated */
    unsigned broken;
    struct text text; /* the first broken one: which contract, where, both bit patterns */
};

/*
 * Evaluates the contract `name`: elements [a_first, a_first+count) of buffer a (outcome data, or
 * its initial contents when a_initial) equal bit for bit those of b. Buffers have the same element
 * size.
 */
struct identity_side {
    int buffer;
    size_t first;
    bool initial; /* compare the contents before the launch instead of after */
};
void identity_equal(struct identity_report *rep, const struct outcome *out, const char *name,
                    struct identity_side a, struct identity_side b, size_t count);

/* Compulsory work of one run: what no implementation can avoid. Memory counts bytes, not accesses:
   each input once, each output once, however many launches the run has, since what one leaves may
   be in the L2 for the next. More than that would make the floor too high, and a right kernel
   "faster than possible"; tests/test_cost_bytes.c holds it against the bytes that kernels touch. */
struct cost {
    double read_bytes, write_bytes;
    double flops;                           /* multiply and add count one each */
    enum { COST_FP32, COST_BF16_MMA } unit; /* which roof the flops are held against */
};

struct op {
    const char *name;
    const char *summary; /* one line for `deltarig list` */
    const struct operator_entry *entries;
    const struct param *params; /* ends with { NULL } */
    const char *contract;       /* declared numerics, for the record: formats, reduction, fma */
    unsigned reference_version; /* raise when the reference's numbers change: goldens are rebuilt */

    /* Declares the buffers and fills the inputs from the seed. ERR_INPUT for impossible dims. */
    int (*shape)(struct problem *p, struct err *err);
    /* Writes the expectations. `g` is initialised. */
    int (*reference)(const struct problem *p, const struct reference_env *env, struct golden *g,
                     struct err *err);
    /* Enqueues the launches (through device/launch.h); must not wait. */
    int (*launch)(const struct operator_run *run, struct err *err);
    /* Bitwise contracts; NULL when there are none. */
    void (*identities)(const struct outcome *out, struct identity_report *rep);
    /* For compositions, NULL otherwise: judges each stage on the very bits that the stage before it
       left in `out`, so that roundings do not pile up and a failure names the first stage to
       diverge. Called after a run was collected, with an initialised `g`; each buffer it opens
       there replaces what reference() expects of that buffer. Outcomes may be any garbage. A
       verdict names the first diverging buffer in the problem's order, which is the order of the
       stages. */
    int (*stages)(const struct outcome *out, const struct reference_env *env, struct golden *g,
                  struct err *err);
    void (*cost)(const struct problem *p, struct cost *cost);
};

/* The generated table, in byte order of the names. */
extern const struct op *const operator_table[];
extern const size_t operator_count;
/* Hash of the sources of all references and operators, as built: part of a cached golden's key. */
extern const char reference_digest[];
const struct op *operator_find(const char *name); /* NULL when unknown */

#endif
