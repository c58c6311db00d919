/* What of `verify` runs in a worker process: a device, a kernel set, one case after another. */
#ifndef CLI_VERIFY_WORKER_H
#define CLI_VERIFY_WORKER_H

#include "device/kernel_set.h"
#include "measure/nvtx.h"
#include "measure/runner.h"
#include "measure/supervisor.h"

struct verify_worker {
    const struct case_list *cases;
    const char *device_spec;
    const char *kernels_dir; /* NULL: our own */
    const char *require;     /* "all", or entries apart by commas; NULL: nothing is required */
    const char *golden_dir;
    bool golden_read_only;
    unsigned jobs; /* how many workers share this machine's CPUs */

    /* Made by verify_worker_open(). */
    struct device *device;
    struct kernel_set *set;
    struct nvtx *nvtx;
    struct runner_options options;
};

struct verify_result {
    struct verify_record record;
    enum err_kind kind; /* of an ERROR verdict's cause */
};

/* For struct supervisor_job. */
int verify_worker_open(void *worker, struct device_info *info, struct err *err);
bool verify_worker_run(void *worker, size_t index, void *result,
                       const struct supervisor_link *link);
void verify_worker_close(void *worker);

/* True when `require` asks for this entry. */
bool entry_required(const char *require, const struct operator_entry *entry);

#endif
