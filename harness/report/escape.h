/*
 * Texts made safe for the formats that reports are written in.
 */
#ifndef REPORT_ESCAPE_H
#define REPORT_ESCAPE_H

#include "base/text.h"

/* For XML and HTML, in content and in quoted attributes. What XML 1.0 forbids even as a
   reference (control characters, U+FFFE, U+FFFF) and what is no UTF-8 becomes U+FFFD. */
void escape_xml(struct text *out, const char *s);

/* For a cell of a Markdown table: one line, no pipe, nothing that starts markup. */
void escape_markdown(struct text *out, const char *s);

/* For one line on a terminal: control characters, which could also move its cursor or rewrite what
   stands there, become blanks. As many characters as `s` has. */
void escape_line(struct text *out, const char *s);

/* A double-quoted gnuplot string with its quotes; enhanced-text markup is switched off by
   the scripts. */
void escape_gnuplot(struct text *out, const char *s);

#endif
