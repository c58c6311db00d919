/* deltarig compare: what changed between two sets of records. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "record/changes.h"
#include "report/bits_view.h"
#include "report/compare_view.h"
#include "report/history.h"

struct args {
    const char *threshold, *fdr, *markdown, *history, *pattern;
    bool json, common, bits, same_bits;
};

static const struct option_spec specs[] = {
    {"--threshold", OPTION_TEXT, offsetof(struct args, threshold), "PCT",
     "changes of less than this many percent are never called (default 1)"},
    {"--fdr", OPTION_TEXT, offsetof(struct args, fdr), "PCT",
     "false discovery rate over all timed cases in percent (default 5)"},
    {"--common", OPTION_FLAG, offsetof(struct args, common), NULL,
     "compare what both sides have; a case that only one has is no finding"},
    {"--same-bits", OPTION_FLAG, offsetof(struct args, same_bits), NULL,
     "a changed output bit is worse: for a change that must leave the arithmetic alone"},
    {"--bits", OPTION_FLAG, offsetof(struct args, bits), NULL,
     "only count equal output bits; the two devices may differ"},
    {"--json", OPTION_FLAG, offsetof(struct args, json), NULL, "one JSON object instead of tables"},
    {"--markdown", OPTION_TEXT, offsetof(struct args, markdown), "FILE",
     "write the comparison as Markdown, too"},
    {"--history", OPTION_TEXT, offsetof(struct args, history), "DIR",
     "show each case over the runs of all *.jsonl in DIR"},
    {"--case", OPTION_TEXT, offsetof(struct args, pattern), "PATTERN",
     "the cases that --history shows (default all)"},
    {0},
};

static const struct usage usage = {
    .synopsis = "deltarig compare BASE.jsonl NEW.jsonl [options]\n"
                "       deltarig compare --bits BASE.jsonl NEW.jsonl [--json] [--markdown FILE]\n"
                "       deltarig compare --history DIR [--case PATTERN]",
    .about =
        "Compares two sets of records of one device. Times are compared by rounds, best recorded\n"
        "interleaved (base, new, base, new, ...): SLOWER, FASTER, SAME, UNSURE or INVALID. "
        "Verdicts,\n"
        "error ratios, output bits and kernel resources that differ are listed; records of the "
        "CPU\n"
        "device are deterministic, so this finds changed numerics without a GPU.\n"
        "--bits counts, per operator and buffer, the cases whose output bits are equal on two\n"
        "devices: the CPU device against a GPU whose kernels were compiled without fused\n"
        "multiply-add (`make nofma`, then verify --kernels build/kernels/cuda-nofma). It judges\n"
        "nothing: exit code 0 whenever something was compared.\n"
        "Exit codes: 0 nothing is worse, 1 a case is slower, worse or gone or its PASS proves "
        "less\n"
        "than before (fewer checks, buffers or elements), 2 bad input, 3 nothing could be "
        "compared.\n",
    .specs = specs,
    .max_words = 2,
};

/* A percentage above `low` and below 100 as a share. */
static int parse_percent(const char *text, const char *option, double low, double *share,
                         struct err *err)
{
    char *end;
    double value;

    if (!text)
        return 0;
    value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= low && value < 100.0))
        return err_set(err, ERR_INPUT,
                       "compare %s: \"%s\" is not a percentage from %g to below 100", option, text,
                       low);
    *share = value / 100.0;
    return 0;
}

static int print(const struct text *t, struct err *err)
{
    if (fwrite(t->data, 1, t->len, stdout) != t->len || fflush(stdout) != 0)
        return err_set(err, ERR_SYSTEM, "cannot write to standard output");
    return 0;
}

/* Prints `shown`; `markdown` goes into a file when that is asked for. */
static int put(const struct args *args, const struct text *markdown, const struct text *shown,
               struct err *err)
{
    if (args->markdown && file_replace(args->markdown, markdown->data, markdown->len, err) < 0)
        return -1;
    return print(shown, err);
}

static int show(const struct args *args, const struct comparison *c,
                const struct regress_options *opt, struct err *err)
{
    struct text markdown, shown;
    int rc;

    text_init(&markdown);
    text_init(&shown);
    text_add(&markdown, "## deltarig compare\n\n");
    comparison_view(VIEW_MARKDOWN, c, opt, &markdown);
    if (args->json)
        comparison_json(c, &shown);
    else
        comparison_view(VIEW_TEXT, c, opt, &shown);
    rc = put(args, &markdown, &shown, err);
    text_release(&markdown);
    text_release(&shown);
    return rc;
}

static int show_bits(const struct args *args, const struct bits_comparison *c, struct err *err)
{
    struct text markdown, shown;
    int rc;

    text_init(&markdown);
    text_init(&shown);
    text_add(&markdown, "## deltarig compare --bits\n\n");
    bits_view(VIEW_MARKDOWN, c, &markdown);
    if (args->json)
        bits_json(c, &shown);
    else
        bits_view(VIEW_TEXT, c, &shown);
    rc = put(args, &markdown, &shown, err);
    text_release(&markdown);
    text_release(&shown);
    return rc;
}

static int count_bits(const struct args *args, const struct record_set *base,
                      const struct record_set *next, struct err *err)
{
    struct bits_comparison c;
    int rc = bits_compare(base, next, &c, err);

    if (rc == 0)
        rc = show_bits(args, &c, err);
    if (rc == 0)
        rc = c.cases ? EXIT_PASS : EXIT_NOTHING;
    bits_release(&c);
    return rc;
}

static int find_changes(const struct args *args, const struct record_set *base,
                        const struct record_set *next, struct err *err)
{
    struct comparison_options opt = {
        .regress = REGRESS_OPTIONS_INIT, .common = args->common, .same_bits = args->same_bits};
    struct comparison c;
    int rc;

    if (parse_percent(args->threshold, "--threshold", 0.0, &opt.regress.threshold, err) < 0 ||
        parse_percent(args->fdr, "--fdr", 1e-6, &opt.regress.fdr, err) < 0)
        return -1;
    rc = comparison_make(base, next, &opt, &c, err);
    if (rc == 0)
        rc = show(args, &c, &opt.regress, err);
    if (rc == 0)
        rc = comparison_worse(&c) ? EXIT_FAIL : comparison_empty(&c) ? EXIT_NOTHING : EXIT_PASS;
    comparison_release(&c);
    return rc;
}

static int compare_files(const struct args *args, const struct words *words, struct err *err)
{
    struct record_set base = {.nruns = 0};
    struct record_set next = {.nruns = 0};
    int rc = -1;

    if (records_read(words->at[0], &base, err) == 0 && records_read(words->at[1], &next, err) == 0)
        rc = args->bits ? count_bits(args, &base, &next, err)
                        : find_changes(args, &base, &next, err);
    records_release(&base);
    records_release(&next);
    return rc;
}

static int check_args(const struct args *args, const struct words *words, struct err *err)
{
    if (words->count != 2 && (words->count != 0 || !args->history || args->bits))
        return err_set(err, ERR_INPUT,
                       "compare: two record files are needed, BASE.jsonl and NEW.jsonl; `deltarig "
                       "compare --help` explains");
    if (words->count == 0 && (args->threshold || args->fdr || args->common || args->same_bits ||
                              args->markdown || args->json))
        return err_set(err, ERR_INPUT, "compare --history alone takes no option but --case");
    if (args->pattern && !args->history)
        return err_set(err, ERR_INPUT, "compare --case needs --history DIR");
    if (args->json && args->history)
        return err_set(err, ERR_INPUT, "compare --history has no JSON: leave out --json");
    if (args->bits &&
        (args->threshold || args->fdr || args->common || args->same_bits || args->history))
        return err_set(
            err, ERR_INPUT,
            "compare --bits only counts: leave out --threshold, --fdr, --common, --same-bits "
            "and --history");
    return 0;
}

/* Asked before anything is read: the Markdown is written last. */
static int check_markdown(const char *path, const struct words *words, struct err *err)
{
    if (!path)
        return 0;
    for (unsigned i = 0; i < words->count; i++)
        if (file_same(path, words->at[i]))
            return err_set(err, ERR_INPUT, "--markdown %s: is a file to compare: name another",
                           path);
    return file_writable(path, err) < 0 ? err_context(err, "--markdown") : 0;
}

static int show_history(const struct args *args, struct err *err)
{
    struct record_set set = {.nruns = 0};
    struct history h = {.count = 0};
    struct text out;
    int rc;

    text_init(&out);
    rc = history_read(args->history, &set, err);
    if (rc == 0) {
        history_make(&set, args->pattern, &h);
        history_view(VIEW_TEXT, &h, &out);
        rc = print(&out, err);
    }
    if (rc == 0 && h.count == 0) {
        fprintf(stderr, "deltarig: %s: no timed case%s%s\n", args->history,
                args->pattern ? " matches " : "", args->pattern ? args->pattern : "");
        rc = EXIT_NOTHING;
    }
    history_release(&h);
    records_release(&set);
    text_release(&out);
    return rc;
}

int cmd_compare(int argc, char **argv)
{
    struct args args = {0};
    struct err err = ERR_INIT;
    struct words words = {0};
    int rc;

    switch (options_parse(&usage, argc, argv, &args, &words)) {
    case OPTIONS_HELP:
        free(words.at);
        return EXIT_PASS;
    case OPTIONS_BAD:
        free(words.at);
        return EXIT_INPUT;
    case OPTIONS_OK:
        break;
    }
    rc = check_args(&args, &words, &err);
    if (rc == 0)
        rc = check_markdown(args.markdown, &words, &err);
    if (rc == 0 && words.count == 2)
        rc = compare_files(&args, &words, &err);
    if (rc >= 0 && args.history) {
        int shown = show_history(&args, &err);

        rc = shown < 0 ? -1 : rc > shown ? rc : shown;
    }
    free(words.at);
    return rc < 0 ? cli_error(&err) : rc;
}
