/*
 * Verdicts as JUnit XML, the format that CI servers read.
 */
#ifndef REPORT_JUNIT_H
#define REPORT_JUNIT_H

#include <stddef.h>

#include "base/text.h"
#include "record/record.h"

/*
 * Appends one whole document: a test suite `name` with one test case per record (class: the
 * operator, name: the case text). FAIL and MISTRUST are failures with their type and reason,
 * ERROR is an error, SKIP is skipped; the command that repeats a case that did not pass goes with
 * it. `timestamp` is ISO 8601, "" when not known.
 */
void junit_write(struct text *out, const char *name, const char *timestamp,
                 const struct verify_record *const *record, size_t count);

#endif
