/*
 * Records by device: of each case the last record, which is what a report shows. Borrows from the
 * record set.
 */
#ifndef REPORT_GROUPS_H
#define REPORT_GROUPS_H

#include "record/store.h"

struct device_group {
    const struct device_stamp *device;
    char slug[64];                /* the name for files: "nvidia-h200", "cpu" */
    const struct run_stamp **run; /* in order of the file */
    size_t nruns;
    const struct verify_record **verify;
    size_t nverify;
    const struct bench_record **bench; /* sorted by case text, cold before hot */
    size_t nbench;
    const struct ceiling_record **ceiling;
    size_t nceilings;
};

struct groups {
    struct device_group *group; /* in order of appearance */
    size_t count;
};

/* Runs on devices of the same name form a group. */
void groups_make(const struct record_set *set, struct groups *out);
void groups_release(struct groups *g);

/* The measured ceiling of that name, NULL when there is none. */
const struct ceiling_record *group_ceiling(const struct device_group *g, const char *name);

#endif
