/* `deltarig list`: operators and cases. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/case_select.h"
#include "cli/cli.h"
#include "problem/operator.h"
#include "record/codec.h"

struct args {
    const char *tier, *cases_dir;
    bool operators, json;
};

#define AT(member) offsetof(struct args, member)

static const struct option_spec specs[] = {
    {"--operators", OPTION_FLAG, AT(operators), NULL,
     "operators with their keys and entries, no cases"},
    {"--tier", OPTION_TEXT, AT(tier), "TIER", "smoke, full (smoke too), perf, all (the default)"},
    {"--cases", OPTION_TEXT, AT(cases_dir), "DIR", "the case files (default cases)"},
    {"--json", OPTION_FLAG, AT(json), NULL, "one JSON object a line"},
    {NULL, OPTION_FLAG, 0, NULL, NULL},
};

static const struct usage usage = {
    .synopsis = "deltarig list [PATTERN...] [options]",
    .about = "Shows the cases whose text matches a PATTERN (none: all) with their tier, or the\n"
             "operators that cases are made of.\n"
             "Exit codes: 0 some were shown, 2 bad input, 3 none.\n",
    .specs = specs,
    .max_words = 1000,
};

static void print_param(const struct param *p)
{
    if (p->choices == NULL) {
        printf("    %-12s %u..%u, default %u\n", p->key, p->min, p->max, p->fallback);
        return;
    }
    printf("    %-12s", p->key);
    for (uint32_t i = p->min; i <= p->max && p->choices[i] != NULL; i++)
        printf(" %s", p->choices[i]);
    printf(", default %s\n", p->choices[p->fallback]);
}

static void print_operator(const struct op *op)
{
    printf("%s: %s\n", op->name, op->summary);
    for (const struct operator_entry *e = op->entries; e->entry != NULL; e++)
        printf("    launches %s of module %s%s\n", e->entry, e->module,
               e->optional ? " (optional)" : "");
    for (const struct param *p = op->params; p->key != NULL; p++)
        print_param(p);
    printf("    contract: %s\n\n", op->contract);
}

static void json_pair(struct text *out, const char *key, const char *value)
{
    text_addf(out, "%s\"%s\":", out->data[out->len - 1] == '{' ? "" : ",", key);
    codec_text(out, value);
}

static void json_operator(struct text *out, const struct op *op)
{
    text_add(out, "{");
    json_pair(out, "operator", op->name);
    json_pair(out, "summary", op->summary);
    json_pair(out, "contract", op->contract);
    text_add(out, ",\"entries\":[");
    for (const struct operator_entry *e = op->entries; e->entry != NULL; e++) {
        text_add(out, e == op->entries ? "{" : ",{");
        json_pair(out, "module", e->module);
        json_pair(out, "entry", e->entry);
        text_addf(out, ",\"optional\":%s}", e->optional ? "true" : "false");
    }
    text_add(out, "],\"keys\":[");
    for (const struct param *p = op->params; p->key != NULL; p++) {
        text_add(out, p == op->params ? "" : ",");
        codec_text(out, p->key);
    }
    text_add(out, "]}\n");
}

static int list_operators(const struct args *a, const struct words *patterns)
{
    struct err err = ERR_INIT;
    unsigned shown = 0;
    if (a->tier != NULL || a->cases_dir != NULL) {
        err_set(&err, ERR_INPUT, "--operators shows no cases: leave out --tier and --cases");
        return cli_error(&err);
    }
    for (size_t i = 0; i < operator_count; i++) {
        struct test_case tc = {.op = operator_table[i]};
        bool match = patterns->count == 0;
        snprintf(tc.text, sizeof(tc.text), "%s", operator_table[i]->name);
        for (unsigned w = 0; w < patterns->count; w++)
            match = match || case_matches(&tc, patterns->at[w]);
        if (!match)
            continue;
        shown++;
        if (!a->json) {
            print_operator(operator_table[i]);
            continue;
        }
        struct text line;
        text_init(&line);
        json_operator(&line, operator_table[i]);
        fputs(line.data, stdout);
        text_release(&line);
    }
    if (shown == 0)
        fprintf(stderr, "deltarig: no operator matches; `deltarig list --operators` shows all\n");
    return shown > 0 ? EXIT_PASS : EXIT_NOTHING;
}

static void print_case(const struct test_case *tc, bool json)
{
    struct text line;
    if (!json) {
        printf("%-6s %s\n", tier_name(tc->tier), tc->text);
        return;
    }
    text_init(&line);
    text_add(&line, "{");
    json_pair(&line, "case", tc->text);
    json_pair(&line, "operator", tc->op->name);
    json_pair(&line, "tier", tier_name(tc->tier));
    json_pair(&line, "origin", tc->origin);
    printf("%s}\n", line.data);
    text_release(&line);
}

static int list_cases(const struct args *a, const struct words *patterns)
{
    struct case_list cases;
    struct err err = ERR_INIT;
    struct case_selection sel = {
        .dir = a->cases_dir, .tiers = a->tier, .usual = "all", .patterns = patterns};
    case_list_init(&cases);
    int code = EXIT_PASS;
    if (cases_select(&sel, &cases, &err) < 0) {
        code = cli_error(&err);
    } else if (cases.count == 0) {
        code = cases_none(&sel);
    }
    for (size_t i = 0; code == EXIT_PASS && i < cases.count; i++)
        print_case(&cases.items[i], a->json);
    case_list_release(&cases);
    return code;
}

int cmd_list(int argc, char **argv)
{
    struct args args = {.json = false};
    struct words patterns;
    int code = EXIT_INPUT;
    switch (options_parse(&usage, argc, argv, &args, &patterns)) {
    case OPTIONS_OK:
        code = args.operators ? list_operators(&args, &patterns) : list_cases(&args, &patterns);
        break;
    case OPTIONS_HELP:
        code = EXIT_PASS;
        break;
    case OPTIONS_BAD:
        break;
    }
    free(patterns.at);
    return code;
}
