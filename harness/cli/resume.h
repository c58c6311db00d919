/* `verify --resume`: what an earlier run's results file already holds. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "problem/test_case.h"
#include "record/store.h"

struct resume {
    struct record_set set;
    const struct verify_record **record; /* per case of the list; NULL: still to be done */
    bool *skip;                          /* the same as flags */
    size_t count;                        /* of records taken over */
};

/*
 * Reads `path`, whose last line may have been cut short by a crash, and takes over the last record
 * of each case of the list that is no ERROR and was made with the same kernel folder. A missing
 * file is an empty one. resume_release() in any case.
 */
int resume_read(const char *path, const struct case_list *cases, const char *kernels_dir,
                struct resume *out, struct err *err);
/* ERR_INPUT when a record taken over is of another device than this one. */
int resume_check_device(const struct resume *r, const char *path, const struct device_stamp *now,
                        struct err *err);
void resume_release(struct resume *r);

#endif
