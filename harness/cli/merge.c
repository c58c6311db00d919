/* deltarig merge: the records of several shards or machines in one file. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "record/store.h"

struct args {
    const char *out;
};

static const struct option_spec specs[] = {
    {"--out", OPTION_TEXT, offsetof(struct args, out), "FILE",
     "the file to write; replaced when it is there"},
    {0},
};

static const struct usage usage = {
    .synopsis = "deltarig merge A.jsonl B.jsonl... --out FILE",
    .about =
        "Joins record files, such as those of `bench --shard I/N`, into one. Every line is "
        "checked;\n"
        "each run keeps its id and provenance. The same run in two of the files, or the same case\n"
        "twice in a run, is bad input, and FILE is left as it was.\n"
        "Exit codes: 0 written, 2 bad input.\n",
    .specs = specs,
    .max_words = 10000,
};

#define MAX_FILE_BYTES ((size_t)1 << 30) /* as records_read() */

static int merge(const struct args *args, const struct words *words, struct err *err)
{
    struct record_set set = {.nruns = 0};
    struct text all;
    int rc = file_writable(args->out, err) < 0 ? err_context(err, "--out") : 0;

    text_init(&all);
    for (unsigned i = 0; i < words->count && rc == 0; i++) {
        rc = records_read(words->at[i], &set, err);
        if (rc == 0)
            rc = file_read(words->at[i], MAX_FILE_BYTES, &all, err);
    }
    if (rc == 0)
        rc = file_replace(args->out, all.data, all.len, err);
    if (rc == 0)
        printf("%s: %u file%s, %zu run%s, %zu verdict%s, %zu timing%s, %zu ceiling%s, "
               "%zu record%s of resources\n",
               args->out, words->count, plural(words->count), set.nruns, plural(set.nruns),
               set.nverify, plural(set.nverify), set.nbench, plural(set.nbench), set.nceilings,
               plural(set.nceilings), set.nresources, plural(set.nresources));
    records_release(&set);
    text_release(&all);
    return rc;
}

int cmd_merge(int argc, char **argv)
{
    struct args args = {0};
    struct err err = ERR_INIT;
    struct words words = {0};
    enum options_outcome outcome = options_parse(&usage, argc, argv, &args, &words);
    int rc = EXIT_PASS;

    if (outcome == OPTIONS_OK && (words.count == 0 || !args.out)) {
        err_set(&err, ERR_INPUT,
                "merge: record files and --out FILE are needed; `deltarig merge --help` "
                "explains");
        rc = cli_error(&err);
    } else if (outcome == OPTIONS_OK) {
        rc = merge(&args, &words, &err) < 0 ? cli_error(&err) : EXIT_PASS;
    } else if (outcome == OPTIONS_BAD) {
        rc = EXIT_INPUT;
    }
    free(words.at);
    return rc;
}
