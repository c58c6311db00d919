/*
 * Figures through gnuplot. A figure is a script with its data inside; it stays beside the PNG and
 * the SVG, so each can be drawn again: `gnuplot <name>.gp`.
 */
#ifndef REPORT_PLOT_H
#define REPORT_PLOT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

struct plot {
    char name[96];     /* of the files, without suffix */
    const char *title; /* above the figure, and its caption in the page */
    const char *note;  /* below: what a reader must know, sample counts; "" for none */
    unsigned width, height;
    struct text script; /* gnuplot: data blocks, settings and one `plot` command */
};

/* The script starts with what all figures share: encoding, fonts, line and point styles that
   differ without colour. */
void plot_init(struct plot *p, const char *name, const char *title, unsigned width,
               unsigned height);
void plot_release(struct plot *p);

/* Writes <folder>/<name>.gp and runs gnuplot on it: <name>.png and <name>.svg. ERR_MISSING
   when gnuplot is not installed, ERR_SYSTEM with its first line of complaint when it fails. */
int plot_draw(const struct plot *p, const char *folder, struct err *err);

/* Appends the drawn SVG for inline use in a page: no prolog, no fixed size, ids made unique
   by `name`. */
int plot_inline(const char *folder, const char *name, struct text *out, struct err *err);

/* Appends the last part of a case text that fits `n` characters, quoted for gnuplot, the
   seed left out. */
void plot_case_label(struct text *out, const char *case_text, size_t n);

#endif
