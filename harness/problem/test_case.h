/*
 * A case: an operator, its parameters, a seed. The canonical text
 *
 *     gdn_woa nk=16 nv=48 batch=4 gate=model seed=1
 *
 * is its identity everywhere: command-line argument, label, JSON key, reproducer. Parameters appear
 * in the operator's declared order, all of them, defaults included, so equal cases have equal
 * texts.
 */
#ifndef PROBLEM_TEST_CASE_H
#define PROBLEM_TEST_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

struct op;

#define CASE_MAX_PARAMS 24
#define CASE_MAX_TEXT   512

/* One parameter an operator accepts. `seed` is implied for every operator and comes last. */
struct param {
    const char *key;
    uint32_t fallback; /* the value when the text does not give one */
    uint32_t min, max; /* inclusive; for choices 0 and count-1 */
    const char *const
        *choices; /* NULL-terminated names of the values 0,1,2...; NULL for a number */
};

enum tier { TIER_SMOKE, TIER_FULL, TIER_PERF };

struct test_case {
    const struct op *op;
    uint32_t value[CASE_MAX_PARAMS]; /* in the order of op->params */
    uint64_t seed;
    enum tier tier;           /* TIER_FULL unless a case file says otherwise */
    char text[CASE_MAX_TEXT]; /* canonical */
    char origin[160];         /* "cases/x.case:12", or "" when typed */
};

const char *tier_name(enum tier tier); /* "smoke" "full" "perf" */
bool tier_parse(const char *name, enum tier *out);

/* Parses one case text: words apart by blanks, the operator's name first, then key=value in any
   order. ERR_INPUT names the key, the value and what is allowed. */
int case_parse(const char *text, struct test_case *out, struct err *err);
/* The same for an operator that need not be in the table; the text must start with its name. */
int case_parse_for(const struct op *op, const char *text, struct test_case *out, struct err *err);

/* The value of a declared parameter; BUG for a key that the operator does not declare. */
uint32_t case_u32(const struct test_case *tc, const char *key);
/* The chosen name of a parameter with choices. */
const char *case_choice(const struct test_case *tc, const char *key);
/* True when some parameter's chosen name is "zero", or "one", the gate regime whose log decays are
   zero: the case then means its zeros, and an output that is zero throughout is no reason to
   mistrust it (measure/judge.h). Name choices accordingly. */
bool case_declares_zero(const struct test_case *tc);

/*
 * Case files: one case a line, '#' starts a comment, [smoke] [full] [perf] open a tier, and
 * `key={a,b,c}` stands for each value in turn (the product over all braces of a line, leftmost
 * slowest). Each line's operator must be the file's. The same case twice in one tier is an error
 * (in two tiers it is not). Errors read "cases/x.case:12: ...".
 */
#define CASE_FILE_MAX_BYTES ((size_t)1 << 20)
#define CASE_LINE_MAX       4096
#define CASE_LIST_MAX       20000 /* cases in one list: a product typed by mistake ends here */

struct case_list {
    struct test_case *items;
    size_t count, cap;
};

void case_list_init(struct case_list *list);
void case_list_release(struct case_list *list);
int case_file_read(const char *path, struct case_list *list, struct err *err); /* appends */
int case_line_expand(const char *line, enum tier tier, struct case_list *list, struct err *err);

/* Shell-like pattern (fnmatch) or substring of the canonical text. */
bool case_matches(const struct test_case *tc, const char *pattern);

struct hash case_hash(const struct test_case *tc); /* of the canonical text */

#endif
