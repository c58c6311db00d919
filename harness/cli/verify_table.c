#include "cli/verify_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"

void verify_table_init(struct verify_table *t, size_t count, bool quiet, struct progress *p)
{
    memset(t, 0, sizeof(*t));
    t->count = count;
    t->quiet = quiet;
    t->progress = p;
    t->row = xcalloc(count > 0 ? count : 1, sizeof(struct verify_result *));
    t->arrived = xcalloc(count > 0 ? count : 1, sizeof(*t->arrived));
}

void verify_table_release(struct verify_table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->row[i]);
    free(t->row);
    free(t->arrived);
    memset(t, 0, sizeof(*t));
}

void verify_table_head(const struct verify_table *t, const struct device_info *device,
                       const char *kernels_dir)
{
    if (t->quiet || t->printed > 0)
        return;
    printf("device %s: %s; kernels: %s; %zu case%s\n", device->spec, device->name,
           kernels_dir != NULL ? kernels_dir : "our own", t->count, plural(t->count));
    fflush(stdout);
}

static double worst_ratio(const struct verify_record *rec)
{
    double worst = 0.0;
    for (unsigned i = 0; i < rec->noutputs; i++)
        if (!(rec->output[i].ratio_likely <= worst))
            worst = rec->output[i].ratio_likely;
    return worst;
}

static size_t compared(const struct verify_record *rec)
{
    size_t n = 0;
    for (unsigned i = 0; i < rec->noutputs; i++)
        n += rec->output[i].compared;
    return n;
}

static void print_row(const struct verify_table *t, const struct verify_record *rec)
{
    char ratio[32] = "-";
    if (t->quiet)
        return;
    if (t->printed == 0)
        printf("%-8s %11s %8s  %s\n", "verdict", "error/bound", "seconds", "case");
    if (compared(rec) > 0)
        snprintf(ratio, sizeof(ratio), "%.5g", worst_ratio(rec));
    printf("%-8s %11s %8.2f  %s\n", verdict_name(rec->verdict), ratio,
           rec->reference_s + rec->device_s, rec->case_text);
}

static void show_progress(const struct verify_table *t, const char *last)
{
    size_t bad = t->done - t->verdicts[VERDICT_PASS] - t->verdicts[VERDICT_SKIP];
    progress_show(t->progress, "%zu/%zu cases, %zu not passed; last: %s", t->done, t->count, bad,
                  last);
}

/* Prints what is next in order, and forgets what passed. */
static void flush_rows(struct verify_table *t)
{
    while (t->printed < t->count && t->arrived[t->printed]) {
        struct verify_result *r = t->row[t->printed];
        print_row(t, &r->record);
        if (r->record.verdict == VERDICT_PASS && !t->keep_all) {
            free(r);
            t->row[t->printed] = NULL;
        }
        t->printed++;
    }
    fflush(stdout);
}

void verify_table_add(struct verify_table *t, size_t index, const struct verify_result *result,
                      bool resumed)
{
    const struct verify_record *rec = &result->record;
    t->arrived[index] = true;
    t->row[index] = xcalloc(1, sizeof(*result));
    *t->row[index] = *result;
    t->done++;
    t->resumed += resumed;
    t->verdicts[rec->verdict]++;
    t->bad_input += rec->verdict == VERDICT_ERROR && result->kind == ERR_INPUT;
    if (rec->verdict == VERDICT_PASS && worst_ratio(rec) > t->worst_ratio) {
        t->worst_ratio = worst_ratio(rec);
        snprintf(t->worst_case, sizeof(t->worst_case), "%s", rec->case_text);
    }
    progress_clear(t->progress);
    flush_rows(t);
    if (t->done < t->count)
        show_progress(t, rec->case_text);
}

static bool is_verdict(const struct verify_table *t, size_t i, enum verdict v)
{
    return t->row[i] != NULL && t->row[i]->record.verdict == v;
}

static void print_reason(const struct verify_record *rec)
{
    const char *check = rec->failed_check;
    printf("\n%s  %s\n", verdict_name(rec->verdict), rec->case_text);
    printf("  %s%s%s\n", check, check[0] != '\0' ? ": " : "", rec->reason);
    printf("  repeat: %s\n", rec->repro);
}

/* Skips come by the dozen, with few reasons: each reason once. */
static void print_skips(const struct verify_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        size_t same = 0;
        bool first = true;
        if (!is_verdict(t, i, VERDICT_SKIP))
            continue;
        const char *reason = t->row[i]->record.reason;
        for (size_t j = 0; j < t->count; j++) {
            if (!is_verdict(t, j, VERDICT_SKIP) || strcmp(t->row[j]->record.reason, reason) != 0)
                continue;
            first = first && j >= i;
            same++;
        }
        if (first)
            printf("\nSKIP  %zu case%s: %s\n", same, plural(same), reason);
    }
}

static int exit_code(const struct verify_table *t)
{
    size_t executed = t->done - t->verdicts[VERDICT_SKIP];
    if (t->verdicts[VERDICT_FAIL] + t->verdicts[VERDICT_MISTRUST] > 0 ||
        t->verdicts[VERDICT_ERROR] > t->bad_input)
        return EXIT_FAIL;
    if (t->bad_input > 0)
        return EXIT_INPUT;
    return executed > 0 ? EXIT_PASS : EXIT_NOTHING;
}

static void print_summary(const struct verify_table *t, double seconds, const char *results_path)
{
    printf("\n%zu case%s:", t->done, plural(t->done));
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (t->verdicts[v] > 0)
            printf(" %zu %s", t->verdicts[v], verdict_name((enum verdict)v));
    if (t->resumed > 0)
        printf(" (%zu from the earlier run)", t->resumed);
    printf("; %.1f s\n", seconds);
    if (t->worst_case[0] != '\0')
        printf("largest error/bound that passed: %.5g (%s)\n", t->worst_ratio, t->worst_case);
    if (exit_code(t) == EXIT_NOTHING)
        printf("nothing was executed, so nothing is proven\n");
    if (results_path != NULL)
        printf("results: %s\n", results_path);
}

int verify_table_finish(struct verify_table *t, double seconds, const char *results_path)
{
    progress_clear(t->progress);
    if (!t->quiet) {
        for (size_t i = 0; i < t->count; i++)
            if (t->row[i] != NULL && !is_verdict(t, i, VERDICT_PASS) &&
                !is_verdict(t, i, VERDICT_SKIP))
                print_reason(&t->row[i]->record);
        print_skips(t);
        print_summary(t, seconds, results_path);
    }
    return exit_code(t);
}
