/* deltarig resources: what the kernels ask of GB10, on a machine without a GPU. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/case_select.h"
#include "cli/cli.h"
#include "measure/dry_run.h"
#include "record/provenance.h"
#include "record/store.h"
#include "report/table.h"

struct args {
    const char *tier, *kernels, *cases, *case_text, *out;
    bool no_cases;
};

static const struct option_spec specs[] = {
    {"--tier", OPTION_TEXT, offsetof(struct args, tier), "TIER",
     "smoke, full (smoke too), perf (the default), all"},
    {"--kernels", OPTION_TEXT, offsetof(struct args, kernels), "DIR", "another kernel set"},
    {"--case", OPTION_TEXT, offsetof(struct args, case_text), "TEXT", "this case alone"},
    {"--cases", OPTION_TEXT, offsetof(struct args, cases), "DIR", "folder of case files"},
    {"--no-cases", OPTION_FLAG, offsetof(struct args, no_cases), NULL, "only the kernels"},
    {"--out", OPTION_TEXT, offsetof(struct args, out), "FILE",
     "records, appended (default build/results/resources.jsonl, anew)"},
    {0},
};

static const struct usage usage = {
    .synopsis = "deltarig resources [PATTERN...] [options]",
    .about =
        "Registers, spills, stack and shared memory of every kernel for sm_90 and sm_121, from "
        "the\n"
        "assembler's log; occupancy and waves on GB10 of every launch of every case. Nothing is\n"
        "executed.\n"
        "Exit codes: 0 GB10 would take every launch, 1 it would refuse one, 2 bad input, 3 there\n"
        "was nothing to tell.\n",
    .specs = specs,
    .max_words = 64,
};

struct output {
    struct store *store;
    struct table kernels, launches;
    unsigned nlaunches, refused, bad_input;
};

static const struct column kernel_columns[] = {
    {"module", 'l'}, {"entry", 'l'}, {"arch", 'l'},   {"registers", 'r'},
    {"spills", 'r'}, {"stack", 'r'}, {"shared", 'r'},
};

static const struct column launch_columns[] = {
    {"case", 'l'},      {"entry", 'l'},     {"grid", 'r'},  {"block", 'r'},      {"shared", 'r'},
    {"blocks/SM", 'r'}, {"occupancy", 'r'}, {"waves", 'r'}, {"limited by", 'l'},
};

static void add_kernel(struct output *o, const struct resources_record *r)
{
    table_cell(&o->kernels, "%s", r->module);
    table_cell(&o->kernels, "%s", r->entry);
    table_cell(&o->kernels, "%s", r->arch);
    table_cell(&o->kernels, "%u", r->registers);
    table_cell(&o->kernels, "%u", r->spill_store_bytes + r->spill_load_bytes);
    table_cell(&o->kernels, "%u", r->stack_bytes);
    table_cell(&o->kernels, "%u", r->static_shared);
}

static void add_launch(struct output *o, const struct resources_record *r)
{
    table_cell(&o->launches, "%s", r->case_text);
    table_cell(&o->launches, "%s", r->entry);
    table_cell(&o->launches, "%ux%ux%u", r->grid[0], r->grid[1], r->grid[2]);
    table_cell(&o->launches, "%ux%ux%u", r->block[0], r->block[1], r->block[2]);
    table_cell(&o->launches, "%llu", (unsigned long long)(r->static_shared + r->dynamic_shared));
    table_cell(&o->launches, "%u", r->blocks_per_sm);
    table_cell(&o->launches, "%.0f%%", 100 * r->occupancy);
    table_cell(&o->launches, "%.2f", r->waves);
    table_cell(&o->launches, "%s%s", r->refused[0] ? "FAIL: " : r->limiter, r->refused);
}

static int seen(void *ctx, const struct resources_record *r, struct err *err)
{
    struct output *o = ctx;

    o->nlaunches++;
    o->refused += r->refused[0] != '\0';
    add_launch(o, r);
    return store_resources(o->store, r, err);
}

static int collect(const struct args *a, struct resources *res, struct output *o, struct err *err)
{
    struct err why = ERR_INIT;

    if (resources_collect(res, a->kernels, &why) < 0) {
        if (why.kind != ERR_MISSING || a->no_cases) { /* without them there is nothing to tell */
            *err = why;
            return -1;
        }
        fprintf(stderr, "deltarig: resources: registers are not known: %s\n", why.text);
    }
    for (size_t i = 0; i < res->count; i++) {
        add_kernel(o, &res->items[i]);
        if (store_resources(o->store, &res->items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int run_cases(const struct args *a, const struct case_list *cases, const struct dry_run *d,
                     struct output *o, struct err *err)
{
    for (size_t i = 0; i < cases->count; i++) {
        const struct test_case *tc = &cases->items[i];
        struct err why = ERR_INIT;

        if (!dry_run_case(d, tc, seen, o, &why))
            continue;
        if (why.kind == ERR_MISSING && a->kernels) /* a foreign set need not have them all */
            continue;
        if (tc->origin[0])
            err_context(&why, "%s", tc->origin);
        if (why.kind != ERR_INPUT) {
            *err = why;
            return -1;
        }
        o->bad_input++; /* the other cases are not lost */
        cli_error(&why);
    }
    return 0;
}

/* Records need a device: the one that the numbers are for, marked as not executed on. */
static void stamp_gb10(const struct device_sheet *gb10, struct device_stamp *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->spec, sizeof out->spec, "static");
    snprintf(out->name, sizeof out->name, "NVIDIA %s (machine code, not executed)", gb10->name);
    out->cc_major = gb10->cc_major;
    out->cc_minor = gb10->cc_minor;
    out->sm_count = gb10->sm_count;
    out->emulated = true;
}

static int find_gb10(struct device_sheet *gb10, struct err *err)
{
    char dir[PATH_MAX];
    bool found = false;

    cli_project_path("cases/devices", dir, sizeof dir);
    if (device_sheet_find(dir, "GB10", gb10, &found, err) < 0)
        return -1;
    return found ? 0 : err_set(err, ERR_INPUT, "%s: no sheet of GB10", dir);
}

static void print_tables(const struct output *o)
{
    struct text text;

    text_init(&text);
    table_text(&o->kernels, &text);
    if (o->nlaunches) {
        text_add(&text, "\nlaunches on GB10 (computed):\n");
        table_text(&o->launches, &text);
        text_addf(&text, "%u launch%s, %u that GB10 would refuse\n", o->nlaunches,
                  o->nlaunches == 1 ? "" : "es", o->refused);
    }
    fputs(text.data, stdout);
    text_release(&text);
}

static int open_store(const struct args *a, const struct provenance *prov,
                      const struct device_sheet *gb10, struct store **store, struct err *err)
{
    char fallback[PATH_MAX];
    struct device_stamp stamp;

    stamp_gb10(gb10, &stamp);
    cli_project_path("build/results/resources.jsonl", fallback, sizeof fallback);
    if (!a->out && store_discard(fallback, err) < 0)
        return -1;
    return store_open(a->out ? a->out : fallback, prov, &stamp, store, err);
}

static int run(const struct args *a, const struct case_list *cases, const struct provenance *prov,
               struct output *o, struct err *err)
{
    struct device_sheet gb10;
    struct resources res;
    struct dry_run d = {.resources = &res, .sheet = &gb10};
    struct device *cpu = NULL; /* its modules tell the kernels' signatures */
    int rc = -1;

    resources_init(&res);
    if (find_gb10(&gb10, err) < 0)
        goto done;
    if (!a->no_cases &&
        (device_open("cpu", &cpu, err) < 0 || kernel_set_open(cpu, a->kernels, &d.set, err) < 0))
        goto done;
    if (open_store(a, prov, &gb10, &o->store, err) < 0 || collect(a, &res, o, err) < 0)
        goto done;
    rc = a->no_cases ? 0 : run_cases(a, cases, &d, o, err);
done:
    store_close(o->store);
    kernel_set_close(d.set);
    device_close(cpu);
    resources_release(&res);
    return rc;
}

/* All that can be refused before the first kernel is looked at; EXIT_PASS when nothing is. */
static int prepare(const struct args *a, const struct words *words, struct case_list *cases)
{
    const struct case_selection sel = {
        .text = a->case_text,
        .dir = a->cases,
        .tiers = a->tier,
        .usual = "perf",
        .patterns = words,
    };
    struct err err = ERR_INIT;

    if (a->no_cases && (sel.text || sel.dir || sel.tiers || words->count)) {
        err_set(&err, ERR_INPUT, "--no-cases excludes --case, --cases, --tier and patterns");
        return cli_error(&err);
    }
    if (!a->no_cases && cases_select(&sel, cases, &err) < 0)
        return cli_error(&err);
    if (!a->no_cases && !cases->count)
        return cases_none(&sel);
    if (a->out && store_check(a->out, &err) < 0) {
        err_context(&err, "--out");
        return cli_error(&err);
    }
    return EXIT_PASS;
}

static int outcome(const struct output *o)
{
    if (o->refused)
        return EXIT_FAIL;
    if (o->bad_input)
        return EXIT_INPUT;
    if (table_rows(&o->kernels) || o->nlaunches)
        return EXIT_PASS;
    fprintf(stderr, "deltarig: resources: the set has no kernel that the cases launch\n");
    return EXIT_NOTHING;
}

int cmd_resources(int argc, char **argv)
{
    struct provenance prov = {0};
    struct words words = {0};
    struct case_list cases;
    struct output o = {0};
    struct err err = ERR_INIT;
    struct args a = {0};
    enum options_outcome parsed = options_parse(&usage, argc, argv, &a, &words);
    int code = parsed == OPTIONS_BAD ? EXIT_INPUT : EXIT_PASS;

    case_list_init(&cases);
    table_init(&o.kernels, kernel_columns, sizeof kernel_columns / sizeof kernel_columns[0]);
    table_init(&o.launches, launch_columns, sizeof launch_columns / sizeof launch_columns[0]);
    if (parsed == OPTIONS_OK)
        code = prepare(&a, &words, &cases);
    if (parsed == OPTIONS_OK && code == EXIT_PASS) {
        if (provenance_collect(argc, argv, &prov, &err) < 0 || run(&a, &cases, &prov, &o, &err) < 0)
            code = cli_error(&err);
        else
            code = outcome(&o);
    }
    if (table_rows(&o.kernels) || o.nlaunches)
        print_tables(&o);
    table_release(&o.kernels);
    table_release(&o.launches);
    provenance_release(&prov);
    case_list_release(&cases);
    free(words.at);
    return code;
}
