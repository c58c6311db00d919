/* `deltarig verify`: see struct usage below. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "cli/case_select.h"
#include "cli/cli.h"
#include "cli/resume.h"
#include "cli/verify_table.h"
#include "measure/golden_cache.h"
#include "measure/runner_state.h"
#include "measure/stamp.h"
#include "measure/supervisor.h"
#include "record/provenance.h"
#include "record/store.h"
#include "report/junit.h"

/* The longest case of the suites takes a minute on a slow machine, its golden included. */
#define DEFAULT_WATCHDOG_S 600.0

struct args {
    const char *case_text, *tier, *device, *kernels, *require, *junit, *out, *golden_dir,
        *cases_dir;
    bool json, resume, in_process;
    unsigned jobs;
    double watchdog;
};

#define AT(member) offsetof(struct args, member)

static const struct option_spec specs[] = {
    {"--case", OPTION_TEXT, AT(case_text), "TEXT", "this case alone (key={a,b} makes several)"},
    {"--tier", OPTION_TEXT, AT(tier), "TIER", TIER_HELP},
    {"--device", OPTION_TEXT, AT(device), "cpu|cuda:N", "default: the first GPU, else cpu"},
    {"--kernels", OPTION_TEXT, AT(kernels), "DIR", "your own kernels instead of ours"},
    {"--require", OPTION_TEXT, AT(require), "ENTRY,..|all", "a missing entry is FAIL, not SKIP"},
    {"--json", OPTION_FLAG, AT(json), NULL, "the records as JSON lines instead of a table"},
    {"--junit", OPTION_TEXT, AT(junit), "FILE", "also write a JUnit report"},
    {"--out", OPTION_TEXT, AT(out), "FILE",
     "results, anew (default build/results/<device>.jsonl, with --case none)"},
    {"--resume", OPTION_FLAG, AT(resume), NULL, "keep --out, go on where it ends"},
    {"--jobs", OPTION_UNSIGNED, AT(jobs), "N",
     "worker processes on the CPU device (default: CPUs)"},
    {"--timeout", OPTION_SECONDS, AT(watchdog), "SECONDS", "for one case (default 600)"},
    {"--golden-dir", OPTION_TEXT, AT(golden_dir), "DIR", "cache of goldens (default build/golden)"},
    {"--cases", OPTION_TEXT, AT(cases_dir), "DIR", "the case files (default cases)"},
    {"--in-process", OPTION_FLAG, AT(in_process), NULL, "no worker processes: for debuggers"},
    {NULL, OPTION_FLAG, 0, NULL, NULL},
};

static const struct usage usage = {
    .synopsis = "deltarig verify [PATTERN...] [options]",
    .about =
        "Runs each case whose text matches a PATTERN (shell-like, or a part of the text; none:\n"
        "all) and compares with the reference, within derived bounds.\n"
        "PASS; FAIL, with the check that failed; MISTRUST, a proof too weak to count; SKIP, an\n"
        "entry is missing; ERROR, the harness or the worker process failed.\n"
        "Exit code: 0 pass, 1 fail, mistrust or error, 2 bad input, 3 nothing was executed.\n",
    .specs = specs,
    .max_words = 1000,
};

/* The parent's side of a run. */
struct session {
    const struct args *args;
    struct case_selection selection;
    struct case_list cases;
    struct words patterns;
    struct provenance prov;
    struct resume resume;
    struct verify_table table;
    struct progress progress;
    struct golden_place goldens;
    struct store *store;
    char device_spec[32]; /* as opened: "cpu", "cuda:0" */
    char out[4096];       /* the results file; "" when none is kept */
    bool temporary;       /* it is for --json only */
};

/* --- results file ----------------------------------------------------------------------------- */

static int open_store(struct session *s, const struct device_stamp *dev, struct err *err)
{
    const struct args *a = s->args;
    if (s->out[0] == '\0' && a->case_text == NULL) {
        char name[64];
        snprintf(name, sizeof(name), "build/results/%s.jsonl", dev->spec);
        for (char *c = name; *c != '\0'; c++)
            *c = *c == ':' ? '-' : *c;
        cli_project_path(name, s->out, sizeof(s->out));
    }
    if (s->out[0] == '\0')
        return 0;
    if (a->resume && resume_check_device(&s->resume, s->out, dev, err) < 0)
        return -1;
    if (!a->resume && store_discard(s->out, err) < 0)
        return -1;
    return store_open(s->out, &s->prov, dev, &s->store, err);
}

static int opened(void *parent, const struct device_info *info, struct err *err)
{
    struct session *s = parent;
    struct device_stamp dev;
    stamp_device(info, &dev);
    snprintf(s->device_spec, sizeof(s->device_spec), "%s", info->spec);
    verify_table_head(&s->table, info, s->args->kernels);
    return open_store(s, &dev, err);
}

static int done(void *parent, size_t index, const void *result, struct err *err)
{
    struct session *s = parent;
    const struct verify_result *res = result;
    if (s->store != NULL && store_verify(s->store, &res->record, err) < 0)
        return -1;
    verify_table_add(&s->table, index, res, false);
    return 0;
}

static void lost(void *parent, size_t index, const char *why, void *result)
{
    struct session *s = parent;
    struct verify_result *res = result;
    runner_record_init(&res->record, &s->cases.items[index], s->device_spec, s->args->kernels);
    snprintf(res->record.reason, sizeof(res->record.reason), "%s", why);
    res->kind = ERR_SYSTEM;
}

static void warned(void *parent, const char *text)
{
    struct session *s = parent;
    progress_warn(&s->progress, text);
}

/* --- the command ------------------------------------------------------------------------------ */

static int check_require(const struct args *a, struct err *err)
{
    if (a->require == NULL || strcmp(a->require, "all") == 0)
        return 0;
    char names[4096];
    snprintf(names, sizeof(names), "%s", a->require);
    for (char *save, *name = strtok_r(names, ",", &save); name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        bool known = false;
        for (size_t i = 0; i < operator_count && !known; i++)
            for (const struct operator_entry *e = operator_table[i]->entries; e->entry != NULL; e++)
                known = known || strcmp(e->entry, name) == 0;
        if (!known)
            return err_set(
                err, ERR_INPUT,
                "--require %s: no operator has an entry of that name; see `deltarig list "
                "--operators`",
                name);
    }
    return 0;
}

static int prepare_out(struct session *s, struct err *err)
{
    const struct args *a = s->args;
    if (a->out != NULL)
        snprintf(s->out, sizeof(s->out), "%s", a->out);
    if (a->resume && a->out == NULL)
        return err_set(err, ERR_INPUT, "--resume needs --out FILE: the results to go on with");
    if (a->out != NULL && store_check(a->out, err) < 0)
        return err_context(err, "--out");
    if (a->junit != NULL && a->out != NULL && file_same(a->junit, a->out))
        return err_set(err, ERR_INPUT, "--junit %s: is the file of --out: name another", a->junit);
    if (a->junit != NULL && file_writable(a->junit, err) < 0)
        return err_context(err, "--junit");
    if (!a->json || a->out != NULL)
        return 0;
    const char *tmp = getenv("TMPDIR");
    snprintf(s->out, sizeof(s->out), "%s/deltarig-%ld.jsonl", tmp != NULL ? tmp : "/tmp",
             (long)getpid());
    int fd = open(s->out, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot create: %s; set TMPDIR to another folder",
                       s->out, strerror(errno));
    close(fd);
    s->temporary = true;
    return 0;
}

static int prepare(struct session *s, int argc, char **argv, struct err *err)
{
    const struct args *a = s->args;
    if (check_require(a, err) < 0 || cases_select(&s->selection, &s->cases, err) < 0 ||
        prepare_out(s, err) < 0 || provenance_collect(argc, argv, &s->prov, err) < 0)
        return -1;
    if (s->cases.count > 0 && cli_goldens(a->golden_dir, false, &s->goldens, err) < 0)
        return -1;
    if (a->resume && resume_read(s->out, &s->cases, a->kernels, &s->resume, err) < 0)
        return -1;
    verify_table_init(&s->table, s->cases.count, a->json, &s->progress);
    s->table.keep_all = a->junit != NULL;
    for (size_t i = 0; a->resume && i < s->cases.count; i++) {
        if (s->resume.record[i] == NULL)
            continue;
        struct verify_result *res = xcalloc(1, sizeof(*res));
        res->record = *s->resume.record[i];
        verify_table_add(&s->table, i, res, true);
        free(res);
    }
    return 0;
}

static int supervise(struct session *s, struct err *err)
{
    const struct args *a = s->args;
    size_t work = s->cases.count - s->resume.count;
    unsigned jobs = a->jobs > 0 ? a->jobs : parallel_cpus();
    struct verify_worker worker = {.cases = &s->cases,
                                   .device_spec =
                                       a->device != NULL ? a->device : CLI_DEFAULT_DEVICE,
                                   .kernels_dir = a->kernels,
                                   .require = a->require,
                                   .golden_dir = s->goldens.dir,
                                   .golden_read_only = s->goldens.read_only,
                                   .jobs = jobs < work ? jobs : (unsigned)work};
    if (a->kernels == NULL && a->require == NULL)
        worker.require = "all"; /* our own set has no right to be incomplete */
    struct supervisor_job job = {.count = s->cases.count,
                                 .skip = s->resume.skip,
                                 .result_size = sizeof(struct verify_result),
                                 .jobs = worker.jobs,
                                 .in_process = a->in_process,
                                 .watchdog_s = a->watchdog > 0.0 ? a->watchdog : DEFAULT_WATCHDOG_S,
                                 .worker = &worker,
                                 .open = verify_worker_open,
                                 .run = verify_worker_run,
                                 .close = verify_worker_close,
                                 .parent = s,
                                 .opened = opened,
                                 .done = done,
                                 .lost = lost,
                                 .warned = warned};
    int rc = supervisor_run(&job, err);
    progress_clear(&s->progress); /* when it had to stop, its last words still stand there */
    return rc;
}

static int copy_to_stdout(const char *path, struct err *err)
{
    struct text t;
    text_init(&t);
    int rc = file_read(path, (size_t)1 << 30, &t, err);
    if (rc == 0)
        fwrite(t.data, 1, t.len, stdout);
    text_release(&t);
    return rc;
}

static int write_junit(const struct session *s, struct err *err)
{
    struct text xml;
    size_t n = s->table.count;
    const struct verify_record **record = xcalloc(n, sizeof(const struct verify_record *));
    for (size_t i = 0; i < n; i++)
        record[i] = &s->table.row[i]->record;
    text_init(&xml);
    junit_write(&xml, "deltarig verify", s->prov.started, record, n);
    int rc = file_replace(s->args->junit, xml.data, xml.len, err);
    text_release(&xml);
    free(record);
    return rc < 0 ? err_context(err, "--junit") : 0;
}

static int run(struct session *s, int argc, char **argv)
{
    struct err err = ERR_INIT;
    double start = wall_seconds();
    s->selection = (struct case_selection){.text = s->args->case_text,
                                           .dir = s->args->cases_dir,
                                           .tiers = s->args->tier,
                                           .usual = "full",
                                           .patterns = &s->patterns};
    if (prepare(s, argc, argv, &err) < 0)
        return cli_error(&err);
    if (s->cases.count == 0)
        return cases_none(&s->selection);
    if (supervise(s, &err) < 0)
        return cli_error(&err);
    store_close(s->store);
    s->store = NULL;
    bool kept = s->out[0] != '\0' && !s->temporary;
    int code = verify_table_finish(&s->table, wall_seconds() - start, kept ? s->out : NULL);
    if (s->args->junit != NULL && write_junit(s, &err) < 0)
        return cli_error(&err);
    if (s->args->json && copy_to_stdout(s->out, &err) < 0)
        return cli_error(&err);
    return code;
}

int cmd_verify(int argc, char **argv)
{
    struct args args = {.jobs = 0};
    struct session *s = xcalloc(1, sizeof(*s));
    s->args = &args;
    case_list_init(&s->cases);
    progress_init(&s->progress);
    int code = EXIT_INPUT;
    switch (options_parse(&usage, argc, argv, &args, &s->patterns)) {
    case OPTIONS_OK:
        code = run(s, argc, argv);
        break;
    case OPTIONS_HELP:
        code = EXIT_PASS;
        break;
    case OPTIONS_BAD:
        break;
    }
    store_close(s->store);
    if (s->temporary)
        unlink(s->out);
    verify_table_release(&s->table);
    progress_release(&s->progress);
    resume_release(&s->resume);
    provenance_release(&s->prov);
    case_list_release(&s->cases);
    free(s->patterns.at);
    free(s);
    return code;
}
