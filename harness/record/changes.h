/*
 * What changed between two sets of records: times, verdicts, error ratios and output bits, kernel
 * resources. Pure, and without a GPU: the CPU device is deterministic, so a change of its error
 * ratios or bits is a change of the arithmetic.
 */
#ifndef RECORD_CHANGES_H
#define RECORD_CHANGES_H

#include "base/text.h"
#include "record/regress.h"
#include "record/store.h"

/* One case at one temperature that both sides timed. */
struct timing_change {
    const struct bench_record *base, *next; /* the first record of either side */
    struct rounds base_rounds, next_rounds;
    struct regress_result result;
    bool same_kernels; /* both timed the same module files */
};

/* One case whose verdict differs, that only one side has, or whose new verdict proves less. */
struct verdict_change {
    const struct verify_record *base, *next; /* NULL on the side that lacks it */
    bool worse;
    char less[200]; /* what a PASS on both sides no longer proves, "" otherwise */
};

/* One case and temperature that only one side timed. */
struct timing_presence {
    const struct bench_record *record;
    bool vanished; /* only the base has it */
    bool worse;    /* it vanished, or it is new and not valid */
};

/* One buffer of a case, PASS or not on both sides, whose numbers differ. */
struct output_change {
    const char *case_text;
    const struct output_stat *base, *next;
    bool ratio, bits;
    bool worse; /* other bits, where they were to stay */
};

/* One resource of a kernel that differs. */
struct resource_change {
    const char *module, *entry;
    char arch[16];         /* "" when the driver of the device said so */
    const char *case_text; /* "": the kernel alone */
    const char *what;      /* "registers", "spill_store_bytes", ... */
    double base, next;     /* NAN: not a number, the texts hold it */
    char base_text[256], next_text[256];
    unsigned cases; /* how many cases show the same change */
    bool worse;     /* GB10 would refuse what it did not refuse before */
};

struct comparison {
    struct timing_change *timing;
    size_t ntimings;
    struct timing_presence *presence;
    size_t npresences;
    struct verdict_change *verdict;
    size_t nverdicts;
    struct output_change *output;
    size_t noutputs;
    struct resource_change *resource;
    size_t nresources;
    struct text warnings;  /* a line each */
    size_t cases_compared; /* verify cases that both sides have */
    size_t resources_compared;
    bool timings_apart; /* some timings were not interleaved */
};

struct comparison_options {
    struct regress_options regress;
    bool common;    /* cases that only one side has are no findings */
    bool same_bits; /* changed output bits are worse: nothing was to change the arithmetic */
};

/*
 * Compares; `out` borrows from both sets, which must outlive it. ERR_INPUT for records of
 * different devices, on either side or between them. Two processors are the same device for
 * verdicts and bits of the CPU device, not for its times.
 */
int comparison_make(const struct record_set *base, const struct record_set *next,
                    const struct comparison_options *opt, struct comparison *out, struct err *err);
void comparison_release(struct comparison *c);

size_t comparison_count(const struct comparison *c, enum change change); /* among the timings */
size_t comparison_worse(const struct comparison *c); /* findings that make the comparison fail */
bool comparison_empty(const struct comparison *c);   /* nothing could be compared: rows that are
                                                        INVALID on a side say nothing */

/* Parts of comparison_make, one file each. */
void changes_of_timings(const struct record_set *base, const struct record_set *next,
                        const struct comparison_options *opt, bool comparable,
                        struct comparison *out);
void changes_of_verdicts(const struct record_set *base, const struct record_set *next,
                         const struct comparison_options *opt, struct comparison *out);
void changes_of_resources(const struct record_set *base, const struct record_set *next,
                          struct comparison *out);

/* The last verify record of a case, NULL when there is none. */
const struct verify_record *last_verify(const struct record_set *set, const char *case_text);
/* NULL when the case has no such buffer. */
const struct output_stat *find_output(const struct verify_record *r, const char *buffer);

/* The device that a set's verdicts and timings come from, NULL when it has none of either.
   ERR_INPUT when they come from two; `side` names the set in that error. */
int records_device(const struct record_set *set, const char *side, const struct device_stamp **out,
                   struct err *err);

#endif
