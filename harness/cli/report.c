/* deltarig report: tables, figures and a page from records. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "record/changes.h"
#include "report/report_files.h"

struct args {
    const char *out, *base, *history, *title;
    bool quiet;
};

static const struct option_spec specs[] = {
    {"--out", OPTION_TEXT, offsetof(struct args, out), "DIR",
     "the folder to write into; made when absent"},
    {"--base", OPTION_TEXT, offsetof(struct args, base), "FILE",
     "compare with these records and add what changed"},
    {"--history", OPTION_TEXT, offsetof(struct args, history), "DIR",
     "add each case over the runs of all *.jsonl in DIR"},
    {"--title", OPTION_TEXT, offsetof(struct args, title), "TEXT",
     "the title (default deltarig report)"},
    {"--quiet", OPTION_FLAG, offsetof(struct args, quiet), NULL, "do not print the tables"},
    {0},
};

static const struct usage usage = {
    .synopsis = "deltarig report RECORDS.jsonl... --out DIR [options]",
    .about =
        "Writes report.html (one page, figures inside), report.md (for a CI summary), report.txt,\n"
        "junit.xml and each figure as PNG, SVG and gnuplot script. Needs no GPU. Times of the CPU\n"
        "device are shown as emulated wall times and never under a GPU's roofs.\n"
        "Exit codes: 0 written, 2 bad input, 3 the records hold nothing to report.\n",
    .specs = specs,
    .max_words = 10000,
};

/* What a report is made from. */
struct material {
    struct record_set set, base, past;
    struct comparison comparison;
    struct comparison_options options;
    struct history history;
};

static int gather(const struct args *args, const struct words *words, struct material *m,
                  struct report *r, struct err *err)
{
    for (unsigned i = 0; i < words->count; i++)
        if (records_read(words->at[i], &m->set, err) < 0)
            return -1;
    r->set = &m->set;
    r->title = args->title ? args->title : "deltarig report";
    r->regress = &m->options.regress;
    if (args->base) {
        if (records_read(args->base, &m->base, err) < 0 ||
            comparison_make(&m->base, &m->set, &m->options, &m->comparison, err) < 0)
            return -1;
        r->comparison = &m->comparison;
    }
    if (args->history) {
        if (history_read(args->history, &m->past, err) < 0)
            return -1;
        history_make(&m->past, NULL, &m->history);
        r->history = &m->history;
    }
    return 0;
}

static void discard(struct material *m)
{
    history_release(&m->history);
    comparison_release(&m->comparison);
    records_release(&m->set);
    records_release(&m->base);
    records_release(&m->past);
}

static int write_report(const struct args *args, const struct report *r, struct err *err)
{
    char note[200];
    struct text text;

    if (r->set->nverify + r->set->nbench + r->set->nceilings + r->set->nresources == 0) {
        fprintf(stderr, "deltarig: the records hold runs, but no verdict and no measurement\n");
        return EXIT_NOTHING;
    }
    if (report_write(r, args->out, note, sizeof note, err) < 0)
        return -1;
    if (note[0])
        fprintf(stderr, "deltarig: %s\n", note);
    if (!args->quiet) {
        text_init(&text);
        report_text(r, &text);
        fputs(text.data, stdout);
        text_release(&text);
    }
    printf("report: %s/report.html\n", args->out);
    return EXIT_PASS;
}

static int make(const struct args *args, const struct words *words, struct err *err)
{
    struct material m = {.options = {.regress = REGRESS_OPTIONS_INIT}};
    struct report r = {.set = NULL};
    int rc;

    if (words->count == 0 || !args->out)
        return err_set(
            err, ERR_INPUT,
            "report: record files and --out DIR are needed; `deltarig report --help` explains");
    rc = report_check(args->out, err) < 0 ? err_context(err, "--out") : 0;
    if (rc == 0)
        rc = gather(args, words, &m, &r, err);
    if (rc == 0)
        rc = write_report(args, &r, err);
    discard(&m);
    return rc;
}

int cmd_report(int argc, char **argv)
{
    struct args args = {0};
    struct err err = ERR_INIT;
    struct words words = {0};
    enum options_outcome outcome = options_parse(&usage, argc, argv, &args, &words);
    int rc = outcome == OPTIONS_BAD ? EXIT_INPUT : EXIT_PASS;

    if (outcome == OPTIONS_OK) {
        rc = make(&args, &words, &err);
        if (rc < 0)
            rc = cli_error(&err);
    }
    free(words.at);
    return rc;
}
