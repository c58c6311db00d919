/*
 * Structs to JSON and back by tables: a struct field { key, type, offset } is written and read by
 * the same line of one table, so neither side can forget it.
 *
 * Numbers: the shortest decimal that reads back to the same double. JSON has no NaN and no
 * infinity: NaN ("not measured") is null, infinities are the texts "inf" and "-inf". Texts:
 * control characters are escaped, bytes that are no UTF-8 become U+FFFD.
 */
#ifndef RECORD_CODEC_H
#define RECORD_CODEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

enum field_type {
    FIELD_TEXT,   /* char[size] */
    FIELD_STRING, /* char *, owned by the object */
    FIELD_BOOL,
    FIELD_INT,
    FIELD_UINT, /* unsigned or uint32_t */
    FIELD_U64,  /* below 2^63 */
    FIELD_F64,
    FIELD_EXTENT,      /* uint32_t[3] */
    FIELD_VERDICT,     /* enum verdict, by name */
    FIELD_TEMPERATURE, /* enum temperature, "cold" or "hot" */
    FIELD_CHECKS,      /* uint32_t of enum check bits, an array of names */
};

struct field {
    const char *key;
    enum field_type type;
    size_t offset, size;
    bool optional; /* records of before it was there lack it: it stays as it is, empty */
};

#define FIELD(owner, member, json_key, kind)                                                       \
    {                                                                                              \
        .key = json_key, .type = kind, .offset = offsetof(struct owner, member),                   \
        .size = sizeof(((struct owner *)NULL)->member)                                             \
    }

#define LATER_FIELD(owner, member, json_key, kind)                                                 \
    {                                                                                              \
        .key = json_key, .type = kind, .offset = offsetof(struct owner, member),                   \
        .size = sizeof(((struct owner *)NULL)->member), .optional = true                           \
    }

/* Tables end with a NULL key. Appends `"key":value` for each, separated by commas, no braces. */
void codec_write(struct text *out, const struct field *table, const void *object);
/* Every key of the table must be there with the right type and within range; ERR_INPUT names
   the key. */
int codec_read(const json_t *json, const struct field *table, void *object, struct err *err);

/* Columns: for `count` objects of `stride` bytes, `"key":[v,v,...]` for each field; a column
   of numbers that are all NaN is null. Only the numeric types and FIELD_BOOL. */
void codec_write_columns(struct text *out, const struct field *table, const void *objects,
                         size_t stride, size_t count);
int codec_read_columns(const json_t *json, const struct field *table, void *objects, size_t stride,
                       size_t count, struct err *err);

void codec_text(struct text *out, const char *value); /* a quoted, escaped JSON string */
void codec_number(struct text *out, double value);

#endif
