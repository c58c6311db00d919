/*
 * The schema: one table per object of a record line. results/README.md documents every key; a
 * test holds the two together.
 */
#ifndef RECORD_SCHEMA_H
#define RECORD_SCHEMA_H

#include "record/codec.h"

extern const struct field schema_provenance[];
extern const struct field schema_device[];
extern const struct field schema_kernel[];
extern const struct field schema_output[];
extern const struct field schema_verify[];
extern const struct field schema_sample[]; /* the columns of "samples" */
extern const struct field schema_bench[];
extern const struct field schema_ceiling[];
extern const struct field schema_resources[];

#endif
