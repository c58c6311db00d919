#include "record/bits.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/changes.h"

static struct bits_row *find_row(struct bits_comparison *c, const char *op, const char *buffer)
{
    for (size_t i = 0; i < c->nrows; i++)
        if (strcmp(c->row[i].op, op) == 0 && strcmp(c->row[i].buffer, buffer) == 0)
            return &c->row[i];
    c->row = xrealloc(c->row, c->nrows + 1, sizeof *c->row);
    c->row[c->nrows] = (struct bits_row){.op = op, .buffer = buffer};
    return &c->row[c->nrows++];
}

static bool holds_bits(const struct output_stat *o)
{
    return o && o->compared > 0 && o->bits[0] != '\0';
}

/* False when no buffer of the two could be compared. */
static bool compare_case(const struct verify_record *base, const struct verify_record *next,
                         struct bits_comparison *out)
{
    bool any = false;

    for (unsigned i = 0; i < base->noutputs; i++) {
        const struct output_stat *a = &base->output[i];
        const struct output_stat *b = find_output(next, a->buffer);
        struct bits_row *row;

        if (!holds_bits(a) || !holds_bits(b))
            continue;
        any = true;
        row = find_row(out, base->op, a->buffer);
        row->of++;
        if (strcmp(a->bits, b->bits) == 0)
            row->equal++;
        else if (!row->first_differ || strcmp(base->case_text, row->first_differ) < 0)
            row->first_differ = base->case_text;
    }
    return any;
}

static int by_name(const void *a, const void *b)
{
    const struct bits_row *x = a;
    const struct bits_row *y = b;
    int order = strcmp(x->op, y->op);

    return order ? order : strcmp(x->buffer, y->buffer);
}

int bits_compare(const struct record_set *base, const struct record_set *next,
                 struct bits_comparison *out, struct err *err)
{
    memset(out, 0, sizeof *out);
    if (records_device(base, "base", &out->base, err) < 0 ||
        records_device(next, "new", &out->next, err) < 0)
        return -1;
    for (size_t i = 0; i < base->nverify; i++) {
        const struct verify_record *a = &base->verify[i];
        const struct verify_record *b = last_verify(next, a->case_text);

        if (last_verify(base, a->case_text) != a)
            continue;
        if (b && compare_case(a, b, out))
            out->cases++;
        else
            out->left_out++;
    }
    for (size_t i = 0; i < next->nverify; i++) {
        const struct verify_record *b = &next->verify[i];

        if (last_verify(next, b->case_text) == b && !last_verify(base, b->case_text))
            out->left_out++;
    }
    if (out->nrows > 1)
        qsort(out->row, out->nrows, sizeof *out->row, by_name);
    return 0;
}

void bits_release(struct bits_comparison *c)
{
    free(c->row);
    memset(c, 0, sizeof *c);
}

size_t bits_equal(const struct bits_comparison *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->nrows; i++)
        n += c->row[i].equal;
    return n;
}

size_t bits_compared(const struct bits_comparison *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->nrows; i++)
        n += c->row[i].of;
    return n;
}
