#include "problem/test_case.h"

#include <fnmatch.h>
#include <string.h>

#include "base/text.h"
#include "problem/fill.h"
#include "problem/operator.h"

static const char *const tier_names[] = {"smoke", "full", "perf"};

const char *tier_name(enum tier tier)
{
    return tier_names[tier];
}

bool tier_parse(const char *name, enum tier *out)
{
    for (int t = TIER_SMOKE; t <= TIER_PERF; t++) {
        if (strcmp(tier_names[t], name) == 0) {
            *out = (enum tier)t;
            return true;
        }
    }
    return false;
}

/* A word of the text, not terminated. */
struct word {
    const char *at;
    size_t len;
};

static struct word next_word(const char **cursor)
{
    const char *s = *cursor;
    while (*s == ' ' || *s == '\t')
        s++;
    struct word w = {.at = s};
    while (*s != '\0' && *s != ' ' && *s != '\t')
        s++;
    w.len = (size_t)(s - w.at);
    *cursor = s;
    return w;
}

static bool word_is(struct word w, const char *s)
{
    return strlen(s) == w.len && memcmp(w.at, s, w.len) == 0;
}

/* Case texts become file keys, JSON strings and shell arguments: plain printable ASCII only. */
static int check_bytes(const char *text, struct err *err)
{
    size_t n = strlen(text);
    if (n >= CASE_MAX_TEXT)
        return err_set(err, ERR_INPUT, "a case text of %zu characters; at most %d are allowed", n,
                       CASE_MAX_TEXT - 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c != '\t' && (c < 0x20 || c > 0x7e))
            return err_set(err, ERR_INPUT,
                           "a case text with the byte 0x%02x at column %zu; use plain ASCII", c,
                           i + 1);
    }
    return 0;
}

static unsigned param_count(const struct op *op)
{
    unsigned n = 0;
    while (op->params[n].key != NULL)
        n++;
    if (n > CASE_MAX_PARAMS)
        BUG("operator %s declares %u parameters; the limit is %d", op->name, n, CASE_MAX_PARAMS);
    return n;
}

static int unknown_operator(struct word name, struct err *err)
{
    struct text known;
    text_init(&known);
    for (size_t i = 0; i < operator_count; i++)
        text_addf(&known, " %s", operator_table[i]->name);
    err_set(err, ERR_INPUT, "unknown operator '%.*s'; there are:%s", (int)name.len, name.at,
            known.len > 0 ? known.data : " none");
    text_release(&known);
    return -1;
}

static int unknown_key(const struct op *op, struct word key, struct err *err)
{
    struct text known;
    text_init(&known);
    for (const struct param *p = op->params; p->key != NULL; p++)
        text_addf(&known, " %s", p->key);
    err_set(err, ERR_INPUT, "unknown key '%.*s'; %s takes:%s seed", (int)key.len, key.at, op->name,
            known.data);
    text_release(&known);
    return -1;
}

/* Decimal digits only: no sign, no blank, no other base. */
static bool parse_number(struct word w, uint64_t *out)
{
    uint64_t n = 0;
    for (size_t i = 0; i < w.len; i++) {
        unsigned digit = (unsigned)((unsigned char)w.at[i] - '0');
        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    *out = n;
    return w.len > 0;
}

static int parse_choice(const struct param *p, struct word value, uint32_t *out, struct err *err)
{
    struct text known;
    text_init(&known);
    for (uint32_t i = 0; p->choices[i] != NULL; i++) {
        if (i >= p->min && i <= p->max && word_is(value, p->choices[i])) {
            *out = i;
            text_release(&known);
            return 0;
        }
        if (i >= p->min && i <= p->max)
            text_addf(&known, " %s", p->choices[i]);
    }
    err_set(err, ERR_INPUT, "%s=%.*s: the choices are:%s", p->key, (int)value.len, value.at,
            known.data);
    text_release(&known);
    return -1;
}

static int parse_value(const struct param *p, struct word value, uint32_t *out, struct err *err)
{
    if (p->choices != NULL)
        return parse_choice(p, value, out, err);
    uint64_t n;
    if (!parse_number(value, &n) || n < p->min || n > p->max)
        return err_set(err, ERR_INPUT, "%s=%.*s: must be a whole number from %u to %u", p->key,
                       (int)value.len, value.at, p->min, p->max);
    *out = (uint32_t)n;
    return 0;
}

/* One key=value. `seen` has a bit per parameter; the bit after the last is the seed's. */
static int parse_pair(struct test_case *tc, unsigned nparams, struct word w, uint32_t *seen,
                      struct err *err)
{
    const char *eq = memchr(w.at, '=', w.len);
    if (eq == NULL)
        return err_set(err, ERR_INPUT, "'%.*s' is not of the form key=value", (int)w.len, w.at);
    struct word key = {.at = w.at, .len = (size_t)(eq - w.at)};
    struct word value = {.at = eq + 1, .len = w.len - key.len - 1};
    unsigned i = 0;
    while (i < nparams && !word_is(key, tc->op->params[i].key))
        i++;
    if (i == nparams && !word_is(key, "seed"))
        return unknown_key(tc->op, key, err);
    if (*seen >> i & 1u)
        return err_set(err, ERR_INPUT, "key '%.*s' is given twice", (int)key.len, key.at);
    *seen |= UINT32_C(1) << i;
    if (i < nparams)
        return parse_value(&tc->op->params[i], value, &tc->value[i], err);
    if (!parse_number(value, &tc->seed))
        return err_set(err, ERR_INPUT, "seed=%.*s: must be a whole number from 0 to %llu",
                       (int)value.len, value.at, (unsigned long long)UINT64_MAX);
    return 0;
}

static int write_canonical(struct test_case *tc, struct err *err)
{
    struct text t;
    text_init(&t);
    text_add(&t, tc->op->name);
    for (unsigned i = 0; tc->op->params[i].key != NULL; i++) {
        const struct param *p = &tc->op->params[i];
        if (p->choices != NULL)
            text_addf(&t, " %s=%s", p->key, p->choices[tc->value[i]]);
        else
            text_addf(&t, " %s=%u", p->key, tc->value[i]);
    }
    text_addf(&t, " seed=%llu", (unsigned long long)tc->seed);
    int rc = 0;
    if (t.len >= sizeof(tc->text))
        rc = err_set(err, ERR_INPUT,
                     "with its defaults the case is %zu characters long; %d are allowed", t.len,
                     CASE_MAX_TEXT - 1);
    else
        memcpy(tc->text, t.data, t.len + 1);
    text_release(&t);
    return rc;
}

static int parse_body(const struct op *op, const char *cursor, struct test_case *out,
                      struct err *err)
{
    unsigned nparams = param_count(op);
    *out = (struct test_case){.op = op, .seed = 1, .tier = TIER_FULL};
    for (unsigned i = 0; i < nparams; i++)
        out->value[i] = op->params[i].fallback;
    uint32_t seen = 0;
    for (struct word w = next_word(&cursor); w.len > 0; w = next_word(&cursor))
        if (parse_pair(out, nparams, w, &seen, err) < 0)
            return err_context(err, "%s", op->name);
    return write_canonical(out, err);
}

int case_parse(const char *text, struct test_case *out, struct err *err)
{
    if (check_bytes(text, err) < 0)
        return -1;
    const char *cursor = text;
    struct word name = next_word(&cursor);
    if (name.len == 0)
        return err_set(err, ERR_INPUT, "an empty case text; start with the name of an operator");
    for (size_t i = 0; i < operator_count; i++)
        if (word_is(name, operator_table[i]->name))
            return parse_body(operator_table[i], cursor, out, err);
    return unknown_operator(name, err);
}

int case_parse_for(const struct op *op, const char *text, struct test_case *out, struct err *err)
{
    if (check_bytes(text, err) < 0)
        return -1;
    const char *cursor = text;
    struct word name = next_word(&cursor);
    if (!word_is(name, op->name))
        return err_set(err, ERR_INPUT, "the case must start with '%s', not '%.*s'", op->name,
                       (int)name.len, name.at);
    return parse_body(op, cursor, out, err);
}

static unsigned param_index(const struct test_case *tc, const char *key)
{
    for (unsigned i = 0; tc->op->params[i].key != NULL; i++)
        if (strcmp(tc->op->params[i].key, key) == 0)
            return i;
    BUG("operator %s declares no parameter '%s'", tc->op->name, key);
}

uint32_t case_u32(const struct test_case *tc, const char *key)
{
    return tc->value[param_index(tc, key)];
}

const char *case_choice(const struct test_case *tc, const char *key)
{
    unsigned i = param_index(tc, key);
    if (tc->op->params[i].choices == NULL)
        BUG("parameter '%s' of %s is a number", key, tc->op->name);
    return tc->op->params[i].choices[tc->value[i]];
}

bool case_declares_zero(const struct test_case *tc)
{
    for (unsigned i = 0; tc->op->params[i].key != NULL; i++) {
        const struct param *p = &tc->op->params[i];
        const char *choice = p->choices != NULL ? p->choices[tc->value[i]] : "";
        if (strcmp(choice, "zero") == 0 || strcmp(choice, gate_regimes[GATE_ONE]) == 0)
            return true;
    }
    return false;
}

bool case_matches(const struct test_case *tc, const char *pattern)
{
    return strstr(tc->text, pattern) != NULL || fnmatch(pattern, tc->text, 0) == 0;
}

struct hash case_hash(const struct test_case *tc)
{
    return hash_bytes(tc->text, strlen(tc->text));
}
