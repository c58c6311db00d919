/*
 * A report: text, Markdown, JUnit XML, figures and a page, from records alone.
 */
#ifndef REPORT_REPORT_FILES_H
#define REPORT_REPORT_FILES_H

#include "record/changes.h"
#include "record/store.h"
#include "report/history.h"

struct report {
    const struct record_set *set;
    const struct comparison *comparison; /* NULL: none */
    const struct regress_options *regress;
    const struct history *history; /* NULL: none */
    const char *title;
};

/*
 * Writes report.txt, report.md, junit.xml, report.html and the figures (<name>.gp .png .svg) into
 * the folder, which exists. Without gnuplot the figures are left out, and `note` (of `n` bytes,
 * "" otherwise) says so.
 */
int report_write(const struct report *r, const char *folder, char *note, size_t n, struct err *err);

/* Whether report_write() could write there now: makes the folder, and makes and removes files in
   it. ERR_INPUT naming what is in the way. */
int report_check(const char *folder, struct err *err);

/* The text of report.txt. */
void report_text(const struct report *r, struct text *out);

#endif
