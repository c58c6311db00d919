#include "record/record.h"

#include <string.h>

static const char *const verdict_names[] = {
    [VERDICT_PASS] = "PASS",         [VERDICT_FAIL] = "FAIL",   [VERDICT_SKIP] = "SKIP",
    [VERDICT_MISTRUST] = "MISTRUST", [VERDICT_ERROR] = "ERROR",
};

static const char *const check_names[CHECK_COUNT] = {
    [CHECK_LAUNCH] = "launch", [CHECK_GOLDEN] = "golden",     [CHECK_COVERAGE] = "coverage",
    [CHECK_KEEP] = "keep",     [CHECK_INPUTS] = "inputs",     [CHECK_FENCE] = "fence",
    [CHECK_REPEAT] = "repeat", [CHECK_SCHEDULE] = "schedule", [CHECK_IDENTITY] = "identity",
};

static const char *const temperature_names[] = {[BENCH_COLD] = "cold", [BENCH_HOT] = "hot"};

/* The index of `name` in a table of names, or -1. */
static int name_index(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

const char *verdict_name(enum verdict v)
{
    return verdict_names[v];
}

bool verdict_parse(const char *name, enum verdict *out)
{
    int i = name_index(verdict_names, sizeof verdict_names / sizeof *verdict_names, name);

    if (i < 0)
        return false;
    *out = (enum verdict)i;
    return true;
}

const char *check_name(enum check c)
{
    return check_names[c];
}

const char *temperature_name(enum temperature t)
{
    return temperature_names[t];
}

bool temperature_parse(const char *name, enum temperature *out)
{
    int i =
        name_index(temperature_names, sizeof temperature_names / sizeof *temperature_names, name);

    if (i < 0)
        return false;
    *out = (enum temperature)i;
    return true;
}
