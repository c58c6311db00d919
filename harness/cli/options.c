#include "cli/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_OPTIONS 64

struct parse {
    const struct usage *usage;
    const char *command;
    int argc;
    char **argv;
    int next;
    char *args;
    bool seen[MAX_OPTIONS];
};

static void print_help(const struct usage *u)
{
    printf("usage: %s\n\n%s\noptions:\n", u->synopsis, u->about);
    for (const struct option_spec *o = u->specs; o->name != NULL; o++) {
        char left[64];
        snprintf(left, sizeof(left), "%s %s", o->name, o->value != NULL ? o->value : "");
        printf("  %-26s %s\n", left, o->help);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static enum options_outcome bad(const struct parse *p, const char *option, const char *what)
{
    fprintf(stderr, "deltarig: %s %s: %s; `deltarig %s --help` lists the options\n", p->command,
            option, what, p->command);
    return OPTIONS_BAD;
}

static bool set_unsigned(const char *text, unsigned *out)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || text[digits] != '\0')
        return false;
    *out = (unsigned)strtoul(text, NULL, 10);
    return true;
}

static bool set_seconds(const char *text, double *out)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out) && *out > 0.0;
}

static enum options_outcome set_value(struct parse *p, const struct option_spec *o,
                                      const char *value)
{
    void *at = p->args + o->offset;
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)at = true;
        return OPTIONS_OK;
    case OPTION_TEXT:
        *(const char **)at = value;
        return value[0] != '\0' ? OPTIONS_OK : bad(p, o->name, "the value is empty");
    case OPTION_UNSIGNED:
        if (!set_unsigned(value, at))
            return bad(p, o->name, "the value must be a whole number below 1000000000");
        return OPTIONS_OK;
    case OPTION_SECONDS:
        if (!set_seconds(value, at))
            return bad(p, o->name, "the value must be a number of seconds above 0");
        return OPTIONS_OK;
    }
    return OPTIONS_BAD;
}

static enum options_outcome parse_option(struct parse *p, const char *arg)
{
    const struct option_spec *specs = p->usage->specs;
    size_t len = strcspn(arg, "=");
    unsigned i = 0;
    while (specs[i].name != NULL &&
           (strlen(specs[i].name) != len || strncmp(specs[i].name, arg, len) != 0))
        i++;
    if (specs[i].name == NULL)
        return bad(p, arg, "no such option");
    if (p->seen[i])
        return bad(p, specs[i].name, "given twice");
    p->seen[i] = true;
    const char *value = arg[len] == '=' ? arg + len + 1 : NULL;
    if (specs[i].type == OPTION_FLAG)
        return value == NULL ? set_value(p, &specs[i], "")
                             : bad(p, specs[i].name, "takes no value");
    if (value == NULL && p->next < p->argc)
        value = p->argv[p->next++];
    if (value == NULL)
        return bad(p, specs[i].name, "its value is missing");
    return set_value(p, &specs[i], value);
}

enum options_outcome options_parse(const struct usage *usage, int argc, char **argv, void *args,
                                   struct words *words)
{
    struct parse p = {.usage = usage, .argc = argc, .argv = argv, .next = 2, .args = args};
    bool ended = false;
    p.command = argv[1];
    *words = (struct words){.at = xcalloc((size_t)argc, sizeof(*words->at))};
    while (p.next < argc) {
        const char *arg = argv[p.next++];
        enum options_outcome rc = OPTIONS_OK;
        if (ended || arg[0] != '-' || arg[1] == '\0') {
            if (words->count == usage->max_words)
                return bad(&p, arg, "one word too many");
            words->at[words->count++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            ended = true;
        } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            print_help(usage);
            return OPTIONS_HELP;
        } else {
            rc = parse_option(&p, arg);
        }
        if (rc != OPTIONS_OK)
            return rc;
    }
    return OPTIONS_OK;
}
