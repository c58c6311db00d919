/*
 * Where a run came from.
 */
#ifndef RECORD_PROVENANCE_H
#define RECORD_PROVENANCE_H

#include "base/text.h"
#include "record/record.h"

#define DELTARIG_VERSION "0.1.0"

/*
 * Collects what the machine says. `argv` is kept as one shell-quoted line, the program without
 * its folder and every absolute path reduced as provenance_word() does. The git commit is that of
 * the checkout which the running program lies in; "" when it lies in none or git is absent.
 */
int provenance_collect(int argc, char *const argv[], struct provenance *out, struct err *err);
void provenance_release(struct provenance *p);

/* Appends one argument, shell-quoted. Absolute paths in it (at its start or behind '=', ','
   or ':') become relative to the current folder when they lie below it, else ".../<last
   part>": records are committed, so they carry no machine-local folder. Also for commands
   that are put into records (repro). */
void provenance_word(struct text *out, const char *word);

#endif
