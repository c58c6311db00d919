/* Where results go: what cannot be written is refused in one line before any work, and what can be
 * is written, new folders and links included. */
#include "base/file.h"
#include "tests/cli_run.h"

#define BOTH  "--case " PAIR " "
#define ONE   "--case 'gdn_flag_clear words=2 at=1' "
#define BENCH "deltarig bench --device cpu --rounds 2 --budget 0.01 " BOTH

static int set_up(void **state)
{
    (void)state;
    if (cli_open(&cli, "build/tmp/outputs") != 0)
        return -1;
    return cli_run(&cli, "echo mine >$D/mine; mkdir $D/folder; mkfifo $D/pipe; "
                         "deltarig verify --device cpu " BOTH "--out $D/a.jsonl");
}

static int tear_down(void **state)
{
    (void)state;
    return cli_close(&cli);
}

/* Commands that want a file, and what they call it; a records file must be ours or absent. */
static const struct {
    const char *command, *option;
    bool records;
} writers[] = {
    {"deltarig verify --device cpu " BOTH, "--out", true},
    {"deltarig verify --device cpu --resume " BOTH, "--out", true},
    {"deltarig verify --device cpu --out $D/v.jsonl " BOTH, "--junit", false},
    {BENCH, "--out", true},
    {BENCH "--out $D/b.jsonl --against build/kernels/cpu", "--against-out", true},
    {"deltarig resources " ONE, "--out", true},
    {"deltarig compare $D/a.jsonl $D/a.jsonl", "--markdown", false},
    {"deltarig compare --bits $D/a.jsonl $D/a.jsonl", "--markdown", false},
    {"deltarig merge $D/a.jsonl", "--out", false},
};

#define WRITERS (sizeof(writers) / sizeof(writers[0]))

static void refuse(size_t writer, const char *path, const char *says)
{
    char line[300], all[100];
    snprintf(line, sizeof(line), "%s %s %s", writers[writer].command, writers[writer].option, path);
    snprintf(all, sizeof(all), "deltarig: %s", writers[writer].option);
    cli_expect_line(&cli, 2, line, says);
    assert_memory_equal(cli.out.data, all, strlen(all));
}

static void unusable_files_are_refused_at_once(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"/dev/null", "/dev/null: is not a regular file: name another"},
        {"/dev/full", "/dev/full: is not a regular file: name another"},
        {"$D/pipe", "/pipe: is not a regular file: name another"},
        {"$D/folder", "/folder: is a directory: name a file"},
        {"$D/folder/", "/folder/: is a directory: name a file"},
        {"/proc/x.jsonl", "/proc/x.jsonl: cannot "},
        {"/proc/none/x.jsonl", "/proc/none: cannot make the directory"},
        {"$D/mine/x.jsonl", "/mine: cannot make the directory: a file of that name exists"},
    };
    for (size_t w = 0; w < WRITERS; w++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            refuse(w, rows[i][0], rows[i][1]);
    cli_expect(&cli, 0, "test -p $D/pipe && test -c /dev/null && ls $D/folder | wc -l", "0");
}

/* To replace it would replace the link, for all processes. */
static void the_name_of_a_stream_is_no_file(void **state)
{
    (void)state;
    for (size_t w = 0; w < WRITERS; w++) {
        char line[300];
        snprintf(line, sizeof(line), "ln -sf /proc/self/fd/1 $D/stream; %s %s $D/stream >$D/said",
                 writers[w].command, writers[w].option);
        cli_expect_line(&cli, 2, line, "/stream: is not a regular file: name another");
        cli_expect(&cli, 0, "readlink $D/stream; wc -c <$D/said", "/proc/self/fd/1\n0\n");
    }
}

static void files_of_others_and_of_other_runs_are_left_alone(void **state)
{
    (void)state;
    for (size_t w = 0; w < WRITERS; w++) {
        if (!writers[w].records)
            continue;
        refuse(w, "$D/mine", "/mine: holds something else than results; choose another --out");
        cli_expect(&cli, 0, "cat $D/mine", "mine\n");
        char line[300];
        snprintf(line, sizeof(line),
                 "cp $D/a.jsonl $D/busy; exec 9<$D/busy; flock 9; %s %s $D/busy 9<&-",
                 writers[w].command, writers[w].option);
        cli_expect_line(&cli, 2, line, "/busy: another run is writing it");
        cli_expect(&cli, 0, "cmp $D/a.jsonl $D/busy && echo same", "same");
    }
}

static void one_file_is_not_written_twice(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"deltarig verify --device cpu " BOTH "--out $D/n --junit $D/../outputs/n",
         "--junit build/tmp/outputs/../outputs/n: is the file of --out"},
        {BENCH "--against build/kernels/cpu --out $D/n --against-out $D/n",
         "--against-out build/tmp/outputs/n: is the file of --out"},
        {"deltarig compare $D/a.jsonl $D/a.jsonl --markdown $D/folder/../a.jsonl",
         "--markdown build/tmp/outputs/folder/../a.jsonl: is a file to compare"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cli_expect_line(&cli, 2, rows[i][0], rows[i][1]);
    assert_false(file_exists("build/tmp/outputs/n"));
    cli_expect(&cli, 0, "deltarig compare $D/a.jsonl $D/a.jsonl", "2 verified");
}

static void write_to(size_t writer, const char *path)
{
    char line[300];
    snprintf(line, sizeof(line), "%s %s %s && test -s %s && rm -rf %s", writers[writer].command,
             writers[writer].option, path, path, path);
    cli_expect(&cli, 0, line, "");
}

static void usable_files_are_written(void **state)
{
    (void)state;
    for (size_t w = 0; w < WRITERS; w++) {
        write_to(w, "$D/plain");
        write_to(w, "$D/new/folder/file");
        cli_run(&cli, "rm -rf $D/new; rm -f $D/target; ln -sf target $D/link");
        write_to(w, "$D/link");
        cli_run(&cli, "cp $D/a.jsonl $D/old");
        write_to(w, "$D/old");
    }
}

static void unusable_folders_are_refused_at_once(void **state)
{
    (void)state;
    static const char *const commands[][2] = {
        {"deltarig report $D/a.jsonl --quiet --out", "--out: "},
        {"deltarig golden " ONE "--export", "--export: "},
    };
    static const char *const rows[][2] = {
        {"/dev/null", "/dev/null: cannot make the directory: a file of that name exists"},
        {"$D/mine", "/mine: cannot make the directory: a file of that name exists"},
        {"/proc/none", "/proc/none: cannot make the directory"},
        {"/proc", "/proc/: cannot create"},
    };
    for (size_t c = 0; c < sizeof(commands) / sizeof(commands[0]); c++) {
        char line[200];
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            snprintf(line, sizeof(line), "%s %s", commands[c][0], rows[i][0]);
            cli_expect_line(&cli, 2, line, rows[i][1]);
            assert_non_null(strstr(cli.out.data, commands[c][1]));
        }
        snprintf(line, sizeof(line), "%s $D/some/new/folder && ls $D/some/new/folder",
                 commands[c][0]);
        cli_expect(&cli, 0, line, c == 0 ? "report.html" : "flags.value.npy");
        cli_run(&cli, "rm -rf $D/some");
    }
    cli_expect_line(&cli, 2,
                    "mkdir -p $D/half/report.html; deltarig report $D/a.jsonl --out $D/half",
                    "half/report.html: is a directory: name a file");
    cli_expect(&cli, 0, "ls $D/half", "report.html\n");
    assert_int_equal(cli_lines(&cli), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unusable_files_are_refused_at_once),
        cmocka_unit_test(the_name_of_a_stream_is_no_file),
        cmocka_unit_test(files_of_others_and_of_other_runs_are_left_alone),
        cmocka_unit_test(one_file_is_not_written_twice),
        cmocka_unit_test(usable_files_are_written),
        cmocka_unit_test(unusable_folders_are_refused_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
