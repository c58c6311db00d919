#include "record/codec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/utf8.h"
#include "record/record.h"

/* --- writing ---------------------------------------------------------------------------------- */

void codec_text(struct text *out, const char *value)
{
    const char *s = value;

    text_add(out, "\"");
    while (*s) {
        unsigned char c = (unsigned char)*s;
        size_t n = utf8_length(s);

        if (n == 0)
            text_add(out, "\\ufffd");
        else if (*s == '"' || *s == '\\')
            text_addf(out, "\\%c", *s);
        else if (c < 0x20 || c == 0x7f)
            text_addf(out, "\\u%04x", c);
        else
            text_add_bytes(out, s, n);
        s += n ? n : 1;
    }
    text_add(out, "\"");
}

void codec_number(struct text *out, double value)
{
    char digits[40];

    if (isnan(value)) {
        text_add(out, "null");
        return;
    }
    if (isinf(value)) {
        text_add(out, value > 0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    text_add(out, digits);
}

static void write_checks(struct text *out, uint32_t bits)
{
    const char *separator = "";

    text_add(out, "[");
    for (int c = 0; c < CHECK_COUNT; c++) {
        if (!(bits >> c & 1))
            continue;
        text_addf(out, "%s\"%s\"", separator, check_name((enum check)c));
        separator = ",";
    }
    text_add(out, "]");
}

static void write_value(struct text *out, enum field_type type, const void *at)
{
    const uint32_t *u = at;

    switch (type) {
    case FIELD_TEXT:
        codec_text(out, at);
        break;
    case FIELD_STRING:
        codec_text(out, *(char *const *)at);
        break;
    case FIELD_BOOL:
        text_add(out, *(const bool *)at ? "true" : "false");
        break;
    case FIELD_INT:
        text_addf(out, "%d", *(const int *)at);
        break;
    case FIELD_UINT:
        text_addf(out, "%" PRIu32, *u);
        break;
    case FIELD_U64:
        text_addf(out, "%" PRIu64, *(const uint64_t *)at);
        break;
    case FIELD_F64:
        codec_number(out, *(const double *)at);
        break;
    case FIELD_EXTENT:
        text_addf(out, "[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", u[0], u[1], u[2]);
        break;
    case FIELD_VERDICT:
        codec_text(out, verdict_name(*(const enum verdict *)at));
        break;
    case FIELD_TEMPERATURE:
        codec_text(out, temperature_name(*(const enum temperature *)at));
        break;
    case FIELD_CHECKS:
        write_checks(out, *u);
        break;
    }
}

void codec_write(struct text *out, const struct field *table, const void *object)
{
    for (const struct field *f = table; f->key; f++) {
        text_addf(out, "%s\"%s\":", f == table ? "" : ",", f->key);
        write_value(out, f->type, (const char *)object + f->offset);
    }
}

static bool all_absent(const struct field *f, const char *objects, size_t stride, size_t count)
{
    if (f->type != FIELD_F64)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!isnan(*(const double *)(const void *)(objects + i * stride + f->offset)))
            return false;
    return true;
}

void codec_write_columns(struct text *out, const struct field *table, const void *objects,
                         size_t stride, size_t count)
{
    for (const struct field *f = table; f->key; f++) {
        text_addf(out, "%s\"%s\":", f == table ? "" : ",", f->key);
        if (all_absent(f, objects, stride, count)) {
            text_add(out, "null");
            continue;
        }
        text_add(out, "[");
        for (size_t i = 0; i < count; i++) {
            text_add(out, i ? "," : "");
            write_value(out, f->type, (const char *)objects + i * stride + f->offset);
        }
        text_add(out, "]");
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static int wrong(const char *key, const char *want, struct err *err)
{
    return err_set(err, ERR_INPUT, "key \"%s\": %s is needed", key, want);
}

static int read_text(const json_t *v, const struct field *f, void *at, struct err *err)
{
    const char *s = json_string_value(v);

    if (!s)
        return wrong(f->key, "a text", err);
    if (f->type == FIELD_STRING) {
        *(char **)at = xstrdup(s);
        return 0;
    }
    if (strlen(s) >= f->size)
        return err_set(err, ERR_INPUT, "key \"%s\": longer than %zu bytes", f->key, f->size - 1);
    memcpy(at, s, strlen(s) + 1);
    return 0;
}

static int read_integer(const json_t *v, const char *key, json_int_t low, json_int_t high,
                        json_int_t *out, struct err *err)
{
    if (!json_is_integer(v) || json_integer_value(v) < low || json_integer_value(v) > high)
        return err_set(err, ERR_INPUT, "key \"%s\": a whole number from %lld to %lld is needed",
                       key, (long long)low, (long long)high);
    *out = json_integer_value(v);
    return 0;
}

static int read_number(const json_t *v, const char *key, double *out, struct err *err)
{
    const char *s = json_string_value(v);

    if (json_is_null(v))
        *out = NAN64;
    else if (json_is_number(v))
        *out = json_number_value(v);
    else if (s && strcmp(s, "inf") == 0)
        *out = INF64;
    else if (s && strcmp(s, "-inf") == 0)
        *out = -INF64;
    else
        return wrong(key, "a number, null, \"inf\" or \"-inf\"", err);
    return 0;
}

static int read_extent(const json_t *v, const char *key, uint32_t *out, struct err *err)
{
    if (!json_is_array(v) || json_array_size(v) != 3)
        return wrong(key, "an array of three whole numbers", err);
    for (size_t i = 0; i < 3; i++) {
        json_int_t n = 0;

        if (read_integer(json_array_get(v, i), key, 0, UINT32_MAX, &n, err) < 0)
            return -1;
        out[i] = (uint32_t)n;
    }
    return 0;
}

static int read_checks(const json_t *v, const char *key, uint32_t *out, struct err *err)
{
    if (!json_is_array(v))
        return wrong(key, "an array of check names", err);
    *out = 0;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_array_get(v, i));
        int c = 0;

        while (c < CHECK_COUNT && !(name && strcmp(name, check_name((enum check)c)) == 0))
            c++;
        if (c == CHECK_COUNT)
            return wrong(key, "an array of known check names", err);
        *out |= (uint32_t)1 << c;
    }
    return 0;
}

static int read_whole(const json_t *v, const struct field *f, void *at, struct err *err)
{
    json_int_t n = 0;

    if (f->type == FIELD_INT) {
        if (read_integer(v, f->key, INT32_MIN, INT32_MAX, &n, err) < 0)
            return -1;
        *(int *)at = (int)n;
    } else if (f->type == FIELD_UINT) {
        if (read_integer(v, f->key, 0, UINT32_MAX, &n, err) < 0)
            return -1;
        *(uint32_t *)at = (uint32_t)n;
    } else {
        if (read_integer(v, f->key, 0, INT64_MAX, &n, err) < 0)
            return -1;
        *(uint64_t *)at = (uint64_t)n;
    }
    return 0;
}

static int read_value(const json_t *v, const struct field *f, void *at, struct err *err)
{
    switch (f->type) {
    case FIELD_TEXT:
    case FIELD_STRING:
        return read_text(v, f, at, err);
    case FIELD_BOOL:
        if (!json_is_boolean(v))
            return wrong(f->key, "true or false", err);
        *(bool *)at = json_is_true(v);
        return 0;
    case FIELD_INT:
    case FIELD_UINT:
    case FIELD_U64:
        return read_whole(v, f, at, err);
    case FIELD_F64:
        return read_number(v, f->key, at, err);
    case FIELD_EXTENT:
        return read_extent(v, f->key, at, err);
    case FIELD_VERDICT:
        if (!json_is_string(v) || !verdict_parse(json_string_value(v), at))
            return wrong(f->key, "PASS, FAIL, SKIP, MISTRUST or ERROR", err);
        return 0;
    case FIELD_TEMPERATURE:
        if (!json_is_string(v) || !temperature_parse(json_string_value(v), at))
            return wrong(f->key, "\"cold\" or \"hot\"", err);
        return 0;
    case FIELD_CHECKS:
        return read_checks(v, f->key, at, err);
    }
    BUG("field type %d", (int)f->type);
}

int codec_read(const json_t *json, const struct field *table, void *object, struct err *err)
{
    if (!json_is_object(json))
        return err_set(err, ERR_INPUT, "a JSON object is needed");
    for (const struct field *f = table; f->key; f++) {
        const json_t *v = json_object_get(json, f->key);

        if (!v && f->optional)
            continue;
        if (!v)
            return err_set(err, ERR_INPUT, "key \"%s\" is missing", f->key);
        if (read_value(v, f, (char *)object + f->offset, err) < 0)
            return -1;
    }
    return 0;
}

static int read_column(const json_t *column, const struct field *f, char *objects, size_t stride,
                       size_t count, struct err *err)
{
    bool absent = json_is_null(column) && f->type == FIELD_F64;

    if (!absent && (!json_is_array(column) || json_array_size(column) != count))
        return err_set(err, ERR_INPUT, "key \"%s\": an array of %zu values is needed", f->key,
                       count);
    for (size_t i = 0; i < count; i++) {
        const json_t *v = absent ? column : json_array_get(column, i);

        if (read_value(v, f, objects + i * stride + f->offset, err) < 0)
            return err_context(err, "element %zu", i);
    }
    return 0;
}

int codec_read_columns(const json_t *json, const struct field *table, void *objects, size_t stride,
                       size_t count, struct err *err)
{
    if (!json_is_object(json))
        return err_set(err, ERR_INPUT, "an object of columns is needed");
    for (const struct field *f = table; f->key; f++) {
        const json_t *column = json_object_get(json, f->key);

        if (!column)
            return err_set(err, ERR_INPUT, "column \"%s\" is missing", f->key);
        if (read_column(column, f, objects, stride, count, err) < 0)
            return -1;
    }
    return 0;
}
