/*
 * Command line options by table.
 *
 *     static const struct option_spec specs[] = {
 *         {"--device", OPTION_TEXT, offsetof(struct args, device), "cpu|cuda:N", "where to run"},
 *         {"--json", OPTION_FLAG, offsetof(struct args, json), NULL, "JSON lines, no table"},
 *         {NULL, OPTION_FLAG, 0, NULL, NULL},
 *     };
 *
 * Values are given as `--key value` or `--key=value`, each option once; `--` ends the options;
 * `--help` is always there. What is no option is a word (a pattern, a file).
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_type {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char * */
    OPTION_UNSIGNED, /* unsigned, decimal digits only */
    OPTION_SECONDS,  /* double, > 0 and finite */
};

struct option_spec {
    const char *name; /* with its dashes */
    enum option_type type;
    size_t offset;     /* of its member in the command's struct */
    const char *value; /* how --help shows its value; NULL for flags */
    const char *help;
};

struct usage {
    const char *synopsis; /* "deltarig verify [PATTERN...] [options]" */
    const char *about;    /* a few lines, each ended by a newline */
    const struct option_spec *specs;
    unsigned max_words; /* more are refused */
};

/* The words, in their order; point into argv. */
struct words {
    const char **at; /* free() it */
    unsigned count;
};

enum options_outcome { OPTIONS_OK, OPTIONS_HELP, OPTIONS_BAD };

/*
 * Parses argv[2..]. OPTIONS_HELP: the help was printed, exit with 0. OPTIONS_BAD: one line was
 * printed to standard error, exit with EXIT_INPUT. `words` is to be freed in any case.
 */
enum options_outcome options_parse(const struct usage *usage, int argc, char **argv, void *args,
                                   struct words *words);

#endif
