#include "report/junit.h"

#include <math.h>

#include "report/escape.h"

struct totals {
    size_t failures, errors, skipped;
    double seconds;
};

/* Seconds as CI servers expect them: a plain decimal; what was not measured counts 0. */
static double seconds_of(const struct verify_record *r)
{
    double s = r->device_s + r->reference_s;

    return isfinite(s) && s > 0.0 ? s : 0.0;
}

static struct totals count_totals(const struct verify_record *const *record, size_t count)
{
    struct totals t = {0};

    for (size_t i = 0; i < count; i++) {
        t.failures += record[i]->verdict == VERDICT_FAIL || record[i]->verdict == VERDICT_MISTRUST;
        t.errors += record[i]->verdict == VERDICT_ERROR;
        t.skipped += record[i]->verdict == VERDICT_SKIP;
        t.seconds += seconds_of(record[i]);
    }
    return t;
}

static void attribute(struct text *out, const char *name, const char *value)
{
    text_addf(out, " %s=\"", name);
    escape_xml(out, value);
    text_add(out, "\"");
}

static const char *element_of(enum verdict v)
{
    switch (v) {
    case VERDICT_FAIL:
    case VERDICT_MISTRUST:
        return "failure";
    case VERDICT_ERROR:
        return "error";
    case VERDICT_SKIP:
        return "skipped";
    case VERDICT_PASS:
        break;
    }
    return NULL;
}

static void add_case(struct text *out, const struct verify_record *r)
{
    const char *element = element_of(r->verdict);

    text_add(out, "  <testcase");
    attribute(out, "classname", r->op);
    attribute(out, "name", r->case_text);
    text_addf(out, " time=\"%.6f\"", seconds_of(r));
    if (!element) {
        text_add(out, "/>\n");
        return;
    }
    text_addf(out, ">\n    <%s", element);
    attribute(out, "message", r->reason);
    if (r->verdict != VERDICT_SKIP)
        attribute(out, "type", verdict_name(r->verdict));
    text_add(out, ">");
    if (r->failed_check[0]) {
        text_add(out, "check: ");
        escape_xml(out, r->failed_check);
        text_add(out, "\n");
    }
    text_add(out, "again: ");
    escape_xml(out, r->repro);
    text_addf(out, "</%s>\n  </testcase>\n", element);
}

void junit_write(struct text *out, const char *name, const char *timestamp,
                 const struct verify_record *const *record, size_t count)
{
    struct totals t = count_totals(record, count);

    text_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
    attribute(out, "name", name);
    if (timestamp[0])
        attribute(out, "timestamp", timestamp);
    text_addf(out,
              " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.6f\">\n",
              count, t.failures, t.errors, t.skipped, t.seconds);
    for (size_t i = 0; i < count; i++)
        add_case(out, record[i]);
    text_add(out, "</testsuite>\n");
}
