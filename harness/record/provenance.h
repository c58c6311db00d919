/*
 * Where a run came from.
 */
#ifndef RECORD_PROVENANCE_H
#define RECORD_PROVENANCE_H

#include "record/record.h"

/* `argv` is kept with its program's folder and every machine-local folder taken away
   (provenance.c); runs git in the current folder for the commit, "" outside a checkout. */
int provenance_collect(int argc, char *const argv[], struct provenance *out, struct err *err);
void provenance_release(struct provenance *p);

#endif
