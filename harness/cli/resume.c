#include "cli/resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "measure/runner_state.h"

#define RESULTS_MAX_BYTES ((size_t)1 << 30)

/* Cuts off what comes after the last newline: a record that never was finished. */
static int drop_unfinished_line(const char *path, struct err *err)
{
    struct text t;
    text_init(&t);
    int rc = file_read(path, RESULTS_MAX_BYTES, &t, err);
    size_t keep = t.len;
    while (rc == 0 && keep > 0 && t.data[keep - 1] != '\n')
        keep--;
    if (rc == 0 && keep < t.len && truncate(path, (off_t)keep) < 0)
        rc = err_set(err, ERR_SYSTEM, "%s: cannot cut off its unfinished line: %s", path,
                     strerror(errno));
    if (rc == 0 && keep == 0)
        rc = 1;
    text_release(&t);
    return rc;
}

static bool usable(const struct resume *r, size_t i, const struct test_case *tc,
                   const char *kernels_dir)
{
    const struct verify_record *rec = &r->set.verify[i];
    if (rec->verdict == VERDICT_ERROR || strcmp(rec->case_text, tc->text) != 0)
        return false;
    struct verify_record *now = xcalloc(1, sizeof(*now));
    runner_record_init(now, tc, r->set.run[r->set.verify_run[i]].device.spec, kernels_dir);
    bool same = strcmp(now->repro, rec->repro) == 0;
    free(now);
    return same;
}

int resume_read(const char *path, const struct case_list *cases, const char *kernels_dir,
                struct resume *out, struct err *err)
{
    memset(out, 0, sizeof(*out));
    size_t n = cases->count > 0 ? cases->count : 1;
    out->record = xcalloc(n, sizeof(const struct verify_record *));
    out->skip = xcalloc(n, sizeof(*out->skip));
    if (!file_exists(path))
        return 0;
    int rc = drop_unfinished_line(path, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (records_read(path, &out->set, err) < 0)
        return err_context(err, "--resume");
    for (size_t c = 0; c < cases->count; c++) {
        for (size_t i = 0; i < out->set.nverify; i++)
            if (usable(out, i, &cases->items[c], kernels_dir))
                out->record[c] = &out->set.verify[i];
        out->skip[c] = out->record[c] != NULL;
        out->count += out->skip[c];
    }
    return 0;
}

int resume_check_device(const struct resume *r, const char *path, const struct device_stamp *now,
                        struct err *err)
{
    for (size_t i = 0; i < r->set.nruns; i++) {
        const struct device_stamp *then = &r->set.run[i].device;
        if (strcmp(then->spec, now->spec) != 0 || strcmp(then->name, now->name) != 0 ||
            strcmp(then->uuid, now->uuid) != 0)
            return err_set(
                err, ERR_INPUT,
                "--resume: %s is of %s (%s), this run is on %s (%s); choose another --out", path,
                then->spec, then->name, now->spec, now->name);
    }
    return 0;
}

void resume_release(struct resume *r)
{
    records_release(&r->set);
    free(r->record);
    free(r->skip);
    memset(r, 0, sizeof(*r));
}
