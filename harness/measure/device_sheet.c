#include "measure/device_sheet.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define SHEET_MAX_BYTES 65536

enum section { SECTION_NONE, SECTION_DEVICE, SECTION_DATASHEET, SECTION_PUBLISHED, SECTION_SM };

static const char *const section_names[] = {
    [SECTION_NONE] = "",
    [SECTION_DEVICE] = "device",
    [SECTION_DATASHEET] = "datasheet",
    [SECTION_PUBLISHED] = "published",
    [SECTION_SM] = "sm",
};

/* The reader's place in a file. */
struct reader {
    const char *path;
    unsigned line;
    enum section section;
    char source[256];
    struct device_sheet *sheet;
};

/* Sets the error with file and line in front of `what`. */
static int complain(const struct reader *r, const char *what, const char *text, struct err *err)
{
    return err_set(err, ERR_INPUT, "%s:%u: %s: \"%s\"", r->path, r->line, what, text);
}

static char *trim(char *s)
{
    char *end;

    while (isspace((unsigned char)*s))
        s++;
    end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return s;
}

static int read_count(const struct reader *r, const char *value, uint32_t *out, struct err *err)
{
    char *end;
    unsigned long n = strtoul(value, &end, 10);

    if (!isdigit((unsigned char)*value) || *end || n < 1 || n > UINT32_MAX)
        return complain(r, "expected a whole number above 0", value, err);
    *out = (uint32_t)n;
    return 0;
}

static int read_device_key(struct reader *r, const char *key, const char *value, struct err *err)
{
    struct device_sheet *s = r->sheet;
    int used = 0;

    if (!strcmp(key, "name")) {
        snprintf(s->name, sizeof s->name, "%s", value);
    } else if (!strcmp(key, "match")) {
        snprintf(s->match, sizeof s->match, "%s", value);
    } else if (!strcmp(key, "compute_capability")) {
        if (sscanf(value, "%2d.%1d%n", &s->cc_major, &s->cc_minor, &used) != 2 || value[used])
            return complain(r, "expected a compute capability such as 12.1", value, err);
    } else if (!strcmp(key, "sm_count")) {
        return read_count(r, value, &s->sm_count, err);
    } else {
        return complain(r, "unknown key (name, match, compute_capability, sm_count)", key, err);
    }
    return 0;
}

static int read_sm_key(struct reader *r, const char *key, const char *value, struct err *err)
{
    struct sm_limits *sm = &r->sheet->sm;
    const struct {
        const char *key;
        uint32_t *out;
    } keys[] = {
        {"registers", &sm->registers},
        {"register_unit", &sm->register_unit},
        {"shared_bytes", &sm->shared_bytes},
        {"shared_reserved", &sm->shared_reserved},
        {"shared_unit", &sm->shared_unit},
        {"threads", &sm->threads},
        {"blocks", &sm->blocks},
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strcmp(key, keys[i].key))
            return read_count(r, value, keys[i].out, err);
    return complain(r, "unknown key of [sm]", key, err);
}

static int read_figure(struct reader *r, const char *key, const char *value, struct err *err)
{
    struct device_sheet *s = r->sheet;
    struct figure *f = &s->figure[s->nfigures];
    int used = 0;

    if (s->nfigures == SHEET_MAX_FIGURES)
        return complain(r, "too many figures at", key, err);
    if (!r->source[0])
        return complain(r, "a figure needs a \"source = ...\" line above it", key, err);
    if (sscanf(value, "%lf %15s%n", &f->value, f->unit, &used) != 2 || value[used] ||
        !isfinite(f->value) || f->value <= 0)
        return complain(r, "expected a number and its unit, such as \"249 GB/s\"", value, err);
    if (strcmp(f->unit, "GB/s") && strcmp(f->unit, "TFLOP/s") && strcmp(f->unit, "us"))
        return complain(r, "unknown unit (GB/s, TFLOP/s, us)", f->unit, err);
    snprintf(f->name, sizeof f->name, "%s", key);
    snprintf(f->source, sizeof f->source, "%s", r->source);
    f->published = r->section == SECTION_PUBLISHED;
    s->nfigures++;
    return 0;
}

static int read_section(struct reader *r, char *line, struct err *err)
{
    char *end = strchr(line, ']');

    if (end && !end[1]) {
        *end = '\0';
        for (size_t i = 1; i < sizeof section_names / sizeof section_names[0]; i++)
            if (!strcmp(line + 1, section_names[i])) {
                r->section = (enum section)i;
                r->source[0] = '\0';
                return 0;
            }
    }
    return complain(r, "unknown section ([device], [datasheet], [published], [sm])", line, err);
}

static int read_line(struct reader *r, char *line, struct err *err)
{
    char *equals, *key, *value;

    line = trim(line);
    if (!*line || *line == ';')
        return 0;
    if (*line == '[')
        return read_section(r, line, err);
    equals = strchr(line, '=');
    if (!equals || r->section == SECTION_NONE)
        return complain(r, "expected \"key = value\" within a section", line, err);
    *equals = '\0';
    key = trim(line);
    value = trim(equals + 1);
    if (!*key || !*value)
        return complain(r, "expected \"key = value\", one side is empty at", key, err);
    if (!strcmp(key, "source")) {
        snprintf(r->source, sizeof r->source, "%s", value);
        return 0;
    }
    if (r->section == SECTION_DEVICE)
        return read_device_key(r, key, value, err);
    if (r->section == SECTION_SM)
        return read_sm_key(r, key, value, err);
    return read_figure(r, key, value, err);
}

static int check_complete(const struct reader *r, struct err *err)
{
    const struct device_sheet *s = r->sheet;

    if (!s->name[0] || !s->match[0] || !s->cc_major || !s->sm_count)
        return err_set(err, ERR_INPUT,
                       "%s: [device] needs name, match, compute_capability and sm_count", r->path);
    if (!s->sm.registers || !s->sm.register_unit || !s->sm.shared_bytes || !s->sm.shared_unit ||
        !s->sm.threads || !s->sm.blocks)
        return err_set(err, ERR_INPUT,
                       "%s: [sm] needs registers, register_unit, shared_bytes, shared_unit, "
                       "threads and blocks",
                       r->path);
    return 0;
}

int device_sheet_read(const char *path, struct device_sheet *out, struct err *err)
{
    struct reader r = {.path = path, .section = SECTION_NONE, .sheet = out};
    struct text text;
    char *line, *next;
    int rc;

    memset(out, 0, sizeof *out);
    text_init(&text);
    rc = file_read(path, SHEET_MAX_BYTES, &text, err);
    if (rc == 0 && memchr(text.data, '\0', text.len))
        rc = err_set(err, ERR_INPUT, "%s: a NUL byte in a text file", path);
    for (line = text.data; rc == 0 && line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        r.line++;
        rc = read_line(&r, line, err);
    }
    text_release(&text);
    return rc < 0 ? -1 : check_complete(&r, err);
}

struct search {
    const char *dir, *device_name;
    struct device_sheet *out;
    bool *found;
};

static int visit_sheet(const char *name, void *ctx, struct err *err)
{
    struct search *s = ctx;
    struct device_sheet sheet;
    struct text path;
    size_t n = strlen(name);
    int rc;

    if (*s->found || n < 4 || strcmp(name + n - 4, ".ini"))
        return 0;
    text_init(&path);
    text_addf(&path, "%s/%s", s->dir, name);
    rc = device_sheet_read(path.data, &sheet, err);
    text_release(&path);
    if (rc == 0 && strstr(s->device_name, sheet.match)) {
        *s->out = sheet;
        *s->found = true;
    }
    return rc;
}

int device_sheet_find(const char *dir, const char *device_name, struct device_sheet *out,
                      bool *found, struct err *err)
{
    struct search s = {.dir = dir, .device_name = device_name, .out = out, .found = found};

    memset(out, 0, sizeof *out);
    *found = false;
    return dir_each(dir, visit_sheet, &s, err);
}

const struct figure *device_sheet_figure(const struct device_sheet *sheet, const char *name)
{
    const struct figure *stated = NULL;

    for (unsigned i = 0; i < sheet->nfigures; i++) {
        const struct figure *f = &sheet->figure[i];

        if (strcmp(f->name, name))
            continue;
        if (f->published)
            return f;
        stated = f;
    }
    return stated;
}
