/*
 * Records on disk: writing them as they come, reading them back strictly.
 */
#ifndef RECORD_STORE_H
#define RECORD_STORE_H

#include "record/record.h"

/*
 * A JSON-lines file: each call writes one line and fsyncs it. The first line of a run carries
 * schema, provenance and device (type "run") and an id that the following ones refer to. An
 * existing file is appended to; a last line that a crash left unfinished is cut off first
 * (ERR_INPUT when it does not look like one of ours). The file is created with its folder. It is
 * locked until store_close(): a second writer is ERR_INPUT, as is all that is no regular file.
 */
struct store;
int store_open(const char *path, const struct provenance *prov, const struct device_stamp *dev,
               struct store **out, struct err *err);
int store_verify(struct store *s, const struct verify_record *r, struct err *err);
int store_bench(struct store *s, const struct bench_record *r, struct err *err);
int store_ceiling(struct store *s, const struct ceiling_record *r, struct err *err);
int store_resources(struct store *s, const struct resources_record *r, struct err *err);
void store_close(struct store *s); /* NULL allowed */

/* Whether store_open() would succeed now: asked before long work whose records go there. Makes the
   folder; leaves no file where there was none. Errors as store_open(). */
int store_check(const char *path, struct err *err);

/* Removes an earlier run's records, so that store_open() begins anew; nothing there is success.
   ERR_INPUT, and the file stays, when it is not ours, not a regular file, or being written. */
int store_discard(const char *path, struct err *err);

struct run_stamp {
    char id[40];
    struct provenance prov;
    struct device_stamp device;
};

/* Each record with the index of its run in record_set.run. */
struct record_set {
    struct run_stamp *run;
    size_t nruns;
    struct verify_record *verify;
    size_t *verify_run;
    size_t nverify;
    struct bench_record *bench;
    size_t *bench_run;
    size_t nbench;
    struct ceiling_record *ceiling;
    size_t *ceiling_run;
    size_t nceilings;
    struct resources_record *resources;
    size_t *resources_run;
    size_t nresources;
};

/*
 * Appends the file's records to `set`, which the caller zeroed before the first call. Every line
 * is parsed and checked: an empty file, a malformed or unfinished line, a record whose run is not
 * there, the same case (with the same temperature) twice in one run, the same run twice, and a
 * schema that is not RECORD_SCHEMA are ERR_INPUT with "file:line". Keys that are not known are
 * passed over. On failure `set` holds what came before and is still to be released.
 */
int records_read(const char *path, struct record_set *set, struct err *err);
void records_release(struct record_set *set);

#endif
