/* deltarig bench: times the kernels that are right. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/bench_view.h"
#include "cli/case_select.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "measure/benchmark.h"
#include "measure/nvtx.h"
#include "measure/stamp.h"
#include "record/provenance.h"
#include "record/store.h"

#define RESULT_LIMIT ((size_t)1 << 30)

struct args {
    const char *tier, *device, *kernels, *against, *out, *against_out, *cases, *case_text, *goldens;
    const char *shard;
    unsigned rounds, jobs, aa;
    double budget;
    bool cold, hot, both, json;
};

static const struct option_spec specs[] = {
    {"--tier", OPTION_TEXT, offsetof(struct args, tier), "TIER",
     "smoke, full, perf, all (default: perf, on the CPU device smoke)"},
    {"--device", OPTION_TEXT, offsetof(struct args, device), "cpu|cuda:N", "where to run"},
    {"--kernels", OPTION_TEXT, offsetof(struct args, kernels), "DIR", "another kernel set"},
    {"--against", OPTION_TEXT, offsetof(struct args, against), "DIR",
     "a second kernel set, its rounds interleaved with the first's"},
    {"--cold", OPTION_FLAG, offsetof(struct args, cold), NULL, "only with an emptied L2"},
    {"--hot", OPTION_FLAG, offsetof(struct args, hot), NULL, "only with a filled L2"},
    {"--both", OPTION_FLAG, offsetof(struct args, both), NULL, "cold and hot (the default)"},
    {"--rounds", OPTION_UNSIGNED, offsetof(struct args, rounds), "R", "interleaved rounds"},
    {"--budget", OPTION_SECONDS, offsetof(struct args, budget), "S",
     "seconds per case and temperature"},
    {"--aa", OPTION_UNSIGNED, offsetof(struct args, aa), "N",
     "compare the set with itself N times: this machine's false alarms"},
    {"--shard", OPTION_TEXT, offsetof(struct args, shard), "I/N", "only the I-th of N parts"},
    {"--case", OPTION_TEXT, offsetof(struct args, case_text), "TEXT", "this case alone"},
    {"--cases", OPTION_TEXT, offsetof(struct args, cases), "DIR", "folder of case files"},
    {"--golden-dir", OPTION_TEXT, offsetof(struct args, goldens), "DIR",
     "cache of goldens (default build/golden)"},
    {"--jobs", OPTION_UNSIGNED, offsetof(struct args, jobs), "N", "CPU threads; 0: all"},
    {"--out", OPTION_TEXT, offsetof(struct args, out), "FILE",
     "records, appended (default build/results/bench.jsonl, anew)"},
    {"--against-out", OPTION_TEXT, offsetof(struct args, against_out), "FILE",
     "records of the second set"},
    {"--json", OPTION_FLAG, offsetof(struct args, json), NULL, "the records instead of a table"},
    {0},
};

static const struct usage usage = {
    .synopsis = "deltarig bench [PATTERN...] [options]",
    .about =
        "Verifies each case, times it, verifies the timed buffers. On the CPU device the times\n"
        "are wall times of an emulation.\n"
        "Exit codes: 0 all rows are valid, 1 one is not, 2 bad input, 3 nothing was timed.\n",
    .specs = specs,
    .max_words = 64,
};

/* --- where results go ------------------------------------------------------------------------- */

struct output {
    const struct args *args;
    const struct provenance *prov;
    const char *path[BENCHMARK_SIDES];
    struct store *store[BENCHMARK_SIDES];
    unsigned sides;
    struct table table[BENCHMARK_SIDES];
    struct aa aa;
    unsigned valid, invalid, bad_input; /* bad_input: of invalid, the user's to mend */
    size_t cases;
    double launch_overhead_us, event_tick_us;
    bool emulated;
    struct progress progress;
    struct golden_place goldens;
};

static void sink_progress(void *ctx, const char *text)
{
    const struct output *o = ctx;

    progress_show(&o->progress, "%s", text);
}

static void sink_warn(void *ctx, const char *text)
{
    struct output *o = ctx;

    progress_warn(&o->progress, text);
}

static int sink_opened(void *ctx, const struct device_info *info, struct err *err)
{
    struct output *o = ctx;
    struct device_stamp stamp;

    progress_clear(&o->progress);
    stamp_device(info, &stamp);
    o->emulated = stamp.emulated;
    if (!o->args->json) {
        printf("%s: %s, %u %s%s%s\n", info->spec, info->name, info->sm_count,
               stamp.emulated ? "threads" : "SMs", info->driver[0] ? ", driver " : "",
               info->driver);
        if (stamp.emulated)
            printf("times are wall times of an EMULATION: they say nothing about a GPU\n");
        else
            printf("ceilings measured now:\n");
    }
    for (unsigned i = 0; i < o->sides; i++)
        if (o->path[i] && store_open(o->path[i], o->prov, &stamp, &o->store[i], err) < 0)
            return -1;
    return 0;
}

static int sink_ceiling(void *ctx, const struct ceiling_record *rec, struct err *err)
{
    struct output *o = ctx;

    if (!o->args->json)
        print_ceiling(rec);
    for (unsigned i = 0; i < o->sides; i++)
        if (o->store[i] && store_ceiling(o->store[i], rec, err) < 0)
            return -1;
    return 0;
}

static int sink_result(void *ctx, unsigned repeat, unsigned side, const struct bench_record *rec,
                       enum err_kind cause, struct err *err)
{
    struct output *o = ctx;

    o->launch_overhead_us = rec->launch_overhead_us;
    o->event_tick_us = rec->event_tick_us;
    if (rec->valid)
        o->valid++;
    else
        o->invalid++;
    o->bad_input += !rec->valid && cause == ERR_INPUT;
    if (o->args->aa)
        aa_add(&o->aa, repeat, side, rec);
    else
        bench_table_add(&o->table[side], rec);
    if (o->store[side] && store_bench(o->store[side], rec, err) < 0)
        return -1;
    return 0;
}

static void sink_note(void *ctx, const char *text)
{
    const struct output *o = ctx;

    progress_note(&o->progress, "bench", text);
}

/* A repeat can be judged once the last of the cases has it. */
static void sink_repeat_done(void *ctx, unsigned repeat, size_t cases)
{
    struct output *o = ctx;

    progress_clear(&o->progress);
    if (o->args->aa && cases == o->cases)
        aa_report(&o->aa, repeat);
}

/* --- cases ------------------------------------------------------------------------------------ */

static int keep_shard(const char *shard, struct case_list *list, struct err *err)
{
    unsigned part = 0, parts = 0;
    size_t kept = 0;
    int used = 0;

    if (!shard)
        return 0;
    if (sscanf(shard, "%6u/%6u%n", &part, &parts, &used) != 2 || shard[used] || part < 1 ||
        part > parts)
        return err_set(err, ERR_INPUT, "--shard %s: expected I/N with 1 <= I <= N", shard);
    for (size_t i = part - 1; i < list->count; i += parts)
        list->items[kept++] = list->items[i];
    list->count = kept;
    return 0;
}

/* Asked of a process of its own: once this one had started the driver, the workers that it
   forks could not use it. */
static bool gpu_is_there(void)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct device_info infos[2];

        _exit(device_enumerate(infos, 2, NULL, 0) > 1 ? 1 : 0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 1;
}

/* The perf cases are made for a GPU: the emulation would take hours. */
static const char *usual_tier(const struct args *a)
{
    const char *spec = a->device ? a->device : CLI_DEFAULT_DEVICE;
    bool gpu = !strncmp(spec, "cuda", 4) || (strcmp(spec, "cpu") && gpu_is_there());

    return gpu ? "perf" : "smoke";
}

/* EXIT_PASS when there are cases; else what to exit with, and it has been said why. */
static int select_cases(const struct args *a, const struct words *words, struct case_list *list)
{
    const struct case_selection sel = {
        .text = a->case_text,
        .dir = a->cases,
        .tiers = a->tier,
        .usual = a->tier || a->case_text ? NULL : usual_tier(a),
        .patterns = words,
    };
    struct err err = ERR_INIT;

    if (cases_select(&sel, list, &err) < 0)
        return cli_error(&err);
    if (!list->count)
        return cases_none(&sel);
    if (keep_shard(a->shard, list, &err) < 0)
        return cli_error(&err);
    if (!list->count) {
        fprintf(stderr, "deltarig: bench: --shard %s: there are fewer cases\n", a->shard);
        return EXIT_NOTHING;
    }
    if (sel.usual && !strcmp(sel.usual, "smoke"))
        fprintf(stderr, "deltarig: bench: tier smoke on the CPU device (--tier chooses another)\n");
    return EXIT_PASS;
}

static int check_args(const struct args *a, struct err *err)
{
    if (a->cold && a->hot)
        return err_set(err, ERR_INPUT, "--cold and --hot exclude each other: use --both");
    if (a->both && (a->cold || a->hot))
        return err_set(err, ERR_INPUT, "--both means cold and hot: leave out the other option");
    if (a->aa && a->against)
        return err_set(err, ERR_INPUT, "--aa compares a set with itself: leave out --against");
    if (a->aa && (a->out || a->json))
        return err_set(err, ERR_INPUT, "--aa keeps no records: leave out --out and --json");
    if (a->against_out && !a->against)
        return err_set(err, ERR_INPUT, "--against-out needs --against");
    return 0;
}

/* Asked before the cases are verified, which may take an hour. */
static int check_outputs(const struct output *o, struct err *err)
{
    static const char *const names[BENCHMARK_SIDES] = {"--out", "--against-out"};

    for (unsigned i = 0; i < o->sides && o->path[i]; i++)
        if (store_check(o->path[i], err) < 0)
            return err_context(err, "%s", names[i]);
    if (o->sides == 2 && o->path[1] && file_same(o->path[0], o->path[1]))
        return err_set(err, ERR_INPUT, "--against-out %s: is the file of --out: name another",
                       o->path[1]);
    return 0;
}

/* --- the run ---------------------------------------------------------------------------------- */

/* The lines that this run appended. */
static int print_new_lines(const char *path, size_t from, struct err *err)
{
    struct text text;
    int rc;

    text_init(&text);
    rc = file_read(path, RESULT_LIMIT, &text, err);
    if (rc == 0 && text.len > from)
        fwrite(text.data + from, 1, text.len - from, stdout);
    text_release(&text);
    return rc;
}

static size_t file_length(const char *path)
{
    FILE *f = fopen(path, "rb");
    long n = 0;

    if (!f)
        return 0;
    if (!fseek(f, 0, SEEK_END))
        n = ftell(f);
    fclose(f);
    return n > 0 ? (size_t)n : 0;
}

static int print_outcome(const struct args *a, struct output *o)
{
    static const char *const titles[] = {"", "the second set"};

    if (!o->valid && !o->invalid) {
        fprintf(stderr, "deltarig: bench: nothing was timed\n");
        return EXIT_NOTHING;
    }
    if (a->aa) {
        aa_total(&o->aa); /* an estimate, not a verdict */
    } else if (!a->json) {
        for (unsigned i = 0; i < o->sides; i++) {
            printf("\n%s%s", titles[i], i ? "\n" : "");
            print_table(&o->table[i]);
        }
        printf("an empty kernel: %.3g us a launch; the timer's tick: %.3g us\n",
               o->launch_overhead_us, o->event_tick_us);
        printf("%u row%s, %u not valid%s; records: %s\n", o->valid + o->invalid,
               plural(o->valid + o->invalid), o->invalid, o->emulated ? " (emulated)" : "",
               o->path[0]);
    }
    return o->invalid > o->bad_input ? EXIT_FAIL : o->bad_input ? EXIT_INPUT : EXIT_PASS;
}

/* The default files hold one run, not to be pooled with earlier ones. */
static int discard_defaults(const struct args *a, const struct output *o, struct err *err)
{
    const char *const chosen[BENCHMARK_SIDES] = {a->out, a->against_out};

    for (unsigned i = 0; i < BENCHMARK_SIDES; i++)
        if (!chosen[i] && o->path[i] && store_discard(o->path[i], err) < 0)
            return -1;
    return 0;
}

static int run(const struct args *a, const struct case_list *cases, struct output *o)
{
    char sheets[PATH_MAX];
    const struct benchmark_sink sink = {
        .ctx = o,
        .opened = sink_opened,
        .ceiling = sink_ceiling,
        .result = sink_result,
        .note = sink_note,
        .repeat_done = sink_repeat_done,
        .progress = sink_progress,
        .warn = sink_warn,
    };
    struct benchmark_options opt = {
        .device = a->device ? a->device : CLI_DEFAULT_DEVICE,
        .sides = o->sides,
        .kernels = {a->kernels, a->aa ? a->kernels : a->against},
        .golden_dir = o->goldens.dir,
        .golden_read_only = o->goldens.read_only,
        .sheet_dir = sheets,
        .suite = a->aa ? "bench A/A" : "bench",
        .cold = !a->hot,
        .hot = !a->cold,
        .rounds = a->rounds,
        .budget_s = a->budget,
        .repeats = a->aa ? a->aa : 1,
        .workers = a->jobs,
        .nvtx = nvtx_open(),
    };
    size_t before = 0;
    struct err err = ERR_INIT;
    int rc;

    o->cases = cases->count;
    if (a->out)
        before = file_length(a->out);
    cli_project_path("cases/devices", sheets, sizeof sheets);
    if (!nvtx_available() && getenv("NVTX_INJECTION64_PATH")) /* by which a profiler attaches */
        fprintf(stderr, "deltarig: built without NVTX's header: no ranges for profilers\n");
    rc = discard_defaults(a, o, &err);
    if (rc == 0)
        rc = benchmark_run(&opt, cases, &sink, &err);
    progress_clear(&o->progress); /* when it had to stop, its last words still stand there */
    for (unsigned i = 0; i < o->sides; i++)
        store_close(o->store[i]);
    nvtx_close(opt.nvtx);
    if (rc == 0 && a->json)
        rc = print_new_lines(o->path[0], before, &err);
    if (rc == 0)
        return print_outcome(a, o);
    if (o->valid + o->invalid && !a->json) /* what was measured before it had to stop */
        print_outcome(a, o);
    return cli_error(&err);
}

/* Records go to --out, else under build/; none for A/A. */
static void choose_paths(const struct args *a, struct output *o, char (*fallback)[PATH_MAX])
{
    if (a->aa)
        return;
    cli_project_path("build/results/bench.jsonl", fallback[0], PATH_MAX);
    cli_project_path("build/results/bench-against.jsonl", fallback[1], PATH_MAX);
    o->path[0] = a->out ? a->out : fallback[0];
    o->path[1] = a->against_out ? a->against_out : fallback[1];
}

/* All that can be refused before the first case is; as select_cases(). */
static int prepare(struct output *o, const struct words *words, struct case_list *cases)
{
    const struct args *a = o->args;
    struct err err = ERR_INIT;
    int code;

    if (check_args(a, &err) < 0)
        return cli_error(&err);
    code = select_cases(a, words, cases);
    if (code != EXIT_PASS)
        return code;
    if (check_outputs(o, &err) < 0 || cli_goldens(a->goldens, false, &o->goldens, &err) < 0)
        return cli_error(&err);
    return EXIT_PASS;
}

static int run_all(struct output *o, const struct case_list *cases)
{
    int code;

    bench_table_init(&o->table[0]);
    bench_table_init(&o->table[1]);
    aa_init(&o->aa, o->args->aa);
    code = run(o->args, cases, o);
    aa_release(&o->aa);
    table_release(&o->table[0]);
    table_release(&o->table[1]);
    return code;
}

int cmd_bench(int argc, char **argv)
{
    char fallback[BENCHMARK_SIDES][PATH_MAX];
    struct provenance prov = {0};
    struct words words = {0};
    struct case_list cases;
    struct err err = ERR_INIT;
    struct args a = {0};
    enum options_outcome parsed = options_parse(&usage, argc, argv, &a, &words);
    struct output o = {.args = &a, .prov = &prov, .sides = a.against || a.aa ? 2 : 1};
    int code = parsed == OPTIONS_BAD ? EXIT_INPUT : EXIT_PASS;

    case_list_init(&cases);
    progress_init(&o.progress);
    if (parsed == OPTIONS_OK) {
        choose_paths(&a, &o, fallback);
        code = prepare(&o, &words, &cases);
        if (code == EXIT_PASS && provenance_collect(argc, argv, &prov, &err) < 0)
            code = cli_error(&err);
        else if (code == EXIT_PASS)
            code = run_all(&o, &cases);
    }
    progress_release(&o.progress);
    provenance_release(&prov);
    case_list_release(&cases);
    free(words.at);
    return code;
}
