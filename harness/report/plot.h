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
    char name[96];   /* of the files, without suffix */
    char title[160]; /* above the figure, and its caption in the page */
    char note[400];  /* below: what a reader must know, sample counts; "" for none */
    unsigned width, height;
    struct text script; /* gnuplot: data blocks, settings and one `plot` command */
};

/* The script starts with what all figures share: encoding, fonts, line and point styles that
   differ without colour. */
void plot_init(struct plot *p, const char *name, const char *title, unsigned width,
               unsigned height);
void plot_release(struct plot *p);

/* Says in title and name that this is part `part` (from 0) of `parts`; of a single one nothing. */
void plot_part(struct plot *p, unsigned part, unsigned parts);

/* Writes <folder>/<name>.gp and runs gnuplot on it: <name>.png and <name>.svg. ERR_MISSING
   when gnuplot is not installed, ERR_SYSTEM with its first line of complaint when it fails. */
int plot_draw(const struct plot *p, const char *folder, struct err *err);

/* Appends the drawn SVG for inline use in a page: no prolog, no fixed size, ids made unique
   by `name`. */
int plot_inline(const char *folder, const char *name, struct text *out, struct err *err);

#endif
