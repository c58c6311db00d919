#include "report/bits_view.h"

#include <stdio.h>

#include "record/codec.h"

static const char *device_name(const struct device_stamp *d)
{
    return d ? d->name : "no device";
}

static void view_device(enum view view, const char *side, const struct device_stamp *d,
                        struct text *out)
{
    char line[200];

    snprintf(line, sizeof line, "%s: %s", side, device_name(d));
    view_line(view, line, out);
}

void bits_view(enum view view, const struct bits_comparison *c, struct text *out)
{
    static const struct column columns[] = {{"operator", 'l'},
                                            {"buffer", 'l'},
                                            {"equal", 'r'},
                                            {"of", 'r'},
                                            {"first case that differs", 'l'}};
    struct table t;
    char line[200];

    view_device(view, "base", c->base, out);
    view_device(view, "new", c->next, out);
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->nrows; i++) {
        const struct bits_row *r = &c->row[i];

        table_cell(&t, "%s", r->op);
        table_cell(&t, "%s", r->buffer);
        table_cell(&t, "%zu", r->equal);
        table_cell(&t, "%zu", r->of);
        table_cell(&t, "%s", r->first_differ ? r->first_differ : "-");
    }
    if (c->nrows > 0) {
        view_heading(view, "Cases with equal output bits", out);
        view_table(view, &t, out);
    }
    snprintf(
        line, sizeof line,
        "%zu case%s compared: %zu of %zu buffers have equal bits; %zu case%s left out (one side "
        "lacks them, or all their elements are kept)",
        c->cases, plural(c->cases), bits_equal(c), bits_compared(c), c->left_out,
        plural(c->left_out));
    view_line(view, line, out);
    table_release(&t);
}

void bits_json(const struct bits_comparison *c, struct text *out)
{
    text_add(out, "{\"base_device\":");
    codec_text(out, device_name(c->base));
    text_add(out, ",\"new_device\":");
    codec_text(out, device_name(c->next));
    text_addf(out, ",\"cases\":%zu,\"left_out\":%zu,\"equal\":%zu,\"of\":%zu,\"buffers\":[",
              c->cases, c->left_out, bits_equal(c), bits_compared(c));
    for (size_t i = 0; i < c->nrows; i++) {
        const struct bits_row *r = &c->row[i];

        text_addf(out, "%s{\"op\":", i ? "," : "");
        codec_text(out, r->op);
        text_add(out, ",\"buffer\":");
        codec_text(out, r->buffer);
        text_addf(out, ",\"equal\":%zu,\"of\":%zu,\"first_differ\":", r->equal, r->of);
        codec_text(out, r->first_differ ? r->first_differ : "");
        text_add(out, "}");
    }
    text_add(out, "]}\n");
}
