/* The command line as its users meet it: exit codes, one-line errors, results, resuming. Runs
 * build/deltarig. */
#include <stdlib.h>

#include <jansson.h>

#include "tests/cli_run.h"

static int run(const char *command)
{
    return cli_run(&cli, command);
}

static int set_up(void **state)
{
    (void)state;
    if (cli_open(&cli, "build/tmp/cli") != 0)
        return -1;
    return run("mkdir -p $D/bad $D/none $D/foreign; cp build/kernels/cpu/norm.so $D/foreign/");
}

static int tear_down(void **state)
{
    (void)state;
    return cli_close(&cli);
}

static void help_is_everywhere(void **state)
{
    (void)state;
    expect(0, "deltarig --help", "Exit codes: 0 pass, 1 fail, 2 bad input, 3 nothing");
    expect(0, "deltarig help", "verify");
    static const char *const commands[] = {"verify", "bench", "compare",   "report", "merge",
                                           "golden", "list",  "resources", "devices"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        char line[64];
        snprintf(line, sizeof(line), "deltarig %s --help", commands[i]);
        expect(0, line, "usage: deltarig");
        assert_non_null(strstr(cli.out.data, "Exit code"));
    }
}

static void bad_options_are_one_line_and_exit_2(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"deltarig", "usage"},
        {"deltarig verfy", "unknown command 'verfy'"},
        {"deltarig verify --devise cpu", "--devise: no such option"},
        {"deltarig verify -x", "-x: no such option"},
        {"deltarig verify --jobs", "--jobs: its value is missing"},
        {"deltarig verify --jobs two", "--jobs: the value must be a whole number"},
        {"deltarig verify --jobs -1", "--jobs: the value must be a whole number"},
        {"deltarig verify --timeout 0", "--timeout: the value must be a number"},
        {"deltarig verify --timeout nan", "--timeout: the value must be a number"},
        {"deltarig verify --json --json", "--json: given twice"},
        {"deltarig verify --json=1", "--json: takes no value"},
        {"deltarig verify --out=", "--out: the value is empty"},
        {"deltarig verify --tier quick", "--tier quick: use smoke"},
        {"deltarig verify --device tpu --case " PAIR, "unknown device \"tpu\""},
        {"deltarig verify --require nothing_like_it", "no operator has an entry of that name"},
        {"deltarig verify --resume", "--resume needs --out FILE"},
        {"deltarig verify --case gdn_woa gdn_fold", "--case and patterns exclude each other"},
        {"deltarig golden --export $D/npy --case " PAIR, "--export takes one case"},
        {"deltarig bench --aa 2 --out $D/aa.jsonl", "--aa keeps no records"},
        {"deltarig golden --check --export $D/npy --case gdn_flag_clear",
         "--export and --check exclude each other"},
        {"deltarig list --operators --tier smoke", "--operators shows no cases"},
        {"deltarig resources --no-cases 'gdn_*'", "--no-cases excludes --case, --cases, --tier"},
        {"TMPDIR=$D/nowhere deltarig verify --json --case gdn_flag_clear",
         "set TMPDIR to another folder"},
        {"deltarig compare --history $D/none --json", "--history alone takes no option"},
        {"deltarig compare $D/a.jsonl $D/b.jsonl --history $D/none --json", "leave out --json"},
        {"deltarig compare $D/a.jsonl $D/b.jsonl --case gdn_fold", "--case needs --history"},
        {"deltarig compare --bits $D/a.jsonl", "two record files are needed"},
        {"deltarig compare --bits --common $D/a.jsonl $D/b.jsonl", "--bits only counts"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect(2, rows[i][0], rows[i][1]);
        if (i > 0)
            assert_int_equal(cli_lines(&cli), 1);
    }
}

static void each_repeat_against_itself_is_told(void **state)
{
    (void)state;
    expect(0, "deltarig bench --device cpu --aa 2 --rounds 3 --budget 0.01 --case " PAIR,
           "A/A 1 of 2: 2 rows");
    assert_non_null(strstr(cli.out.data, "A/A 2 of 2: 2 rows"));
    assert_non_null(strstr(cli.out.data, "A/A: 2 comparisons of 2 rows"));
    assert_null(strchr(cli.out.data, '\r')); /* progress is for terminals */
}

static void bad_cases_say_where_and_how_to_mend(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"deltarig verify --case 'no_operator n=1'", "unknown operator 'no_operator'; there are:"},
        {"deltarig verify --case 'gdn_flag_clear wrds=1'",
         "unknown key 'wrds'; gdn_flag_clear takes:"},
        {"deltarig verify --case 'gdn_flag_clear words=0'", "from 1 to"},
        {"deltarig verify --case 'gdn_flag_clear words=99999999999999'", "from 1 to"},
        {"printf '[smoke]\\ngdn_fold nk={1\\n' >$D/bad/gdn_fold.case; deltarig verify --cases "
         "$D/bad",
         "bad/gdn_fold.case:2: '{' without its '}'"},
        {"printf '[smoke]\\ngdn_fold bach=1\\n' >$D/bad/gdn_fold.case; deltarig list --cases "
         "$D/bad",
         "bad/gdn_fold.case:2: gdn_fold: unknown key 'bach'"},
        {"printf '[smoke]\\n# gdn_fold\\n' >$D/bad/gdn_fold.case; deltarig list --cases $D/bad",
         "bad/gdn_fold.case: holds no case; write one, or remove the file"},
        {"ln -sf nowhere $D/bad/gdn_fold.case; deltarig list --cases $D/bad",
         "bad/gdn_fold.case: cannot open: No such file"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect(2, rows[i][0], rows[i][1]);
        assert_int_equal(cli_lines(&cli), 1);
    }
}

/* The operator itself refuses: one ERROR among the verdicts, the others are not lost, exit 2. */
static void impossible_dims_are_the_users_to_mend(void **state)
{
    (void)state;
    expect(2,
           "printf '[smoke]\\ngdn_flag_clear words=2 at={5,1}\\n' >$D/bad/gdn_flag_clear.case; "
           "rm -f $D/bad/gdn_fold.case; deltarig verify --device cpu --cases $D/bad --out "
           "$D/dims.jsonl",
           "bad/gdn_flag_clear.case:2: ");
    assert_non_null(strstr(cli.out.data, "2 cases: 1 PASS 1 ERROR"));
    /* What the launcher refuses of any kernel does not say that this one is wrong... */
    expect(2, "deltarig verify --device cpu --case 'kda_chunk_scan D=6'",
           "kda_chunk_scan: D = 6 is not a multiple of 32");
    assert_non_null(strstr(cli.out.data, "1 case: 1 ERROR"));
    /* ...what GB10 would refuse does. */
    expect(1, "deltarig verify --device cpu --case 'kda_chunk_scan C=64 D=128'",
           "kda_chunk_scan: needs 81920 bytes of shared memory, more than 49152");
    assert_non_null(strstr(cli.out.data, "1 case: 1 FAIL"));
    expect(1, "deltarig resources --case 'kda_chunk_scan C=64 D=128' --out $D/resources.jsonl",
           "1 launch, 1 that GB10 would refuse");
    expect(0, "deltarig resources --case 'kda_chunk_scan C=32 D=128' --out $D/resources.jsonl",
           "1 launch, 0 that GB10 would refuse");
}

static void nothing_executed_is_exit_3(void **state)
{
    (void)state;
    expect_line(3, "deltarig verify none_such", "no case matches");
    expect(3, "deltarig verify --device cpu --kernels $D/foreign --case " PAIR, "2 SKIP");
    assert_non_null(strstr(cli.out.data, "nothing was executed"));
    expect(1, "deltarig verify --device cpu --kernels $D/foreign --require all --case " PAIR,
           "a required entry is missing");
    expect(1,
           "deltarig verify --device cpu --kernels $D/foreign --require "
           "gated_delta_rule_wy4_flag_clear --case " PAIR,
           "2 FAIL");
    expect(2, "deltarig verify --device cpu --kernels $D/none --case " PAIR, "none");
}

static void a_file_that_is_no_module_is_bad_input(void **state)
{
    (void)state;
    assert_int_equal(run("mkdir -p $D/short && head -c 5000 $D/foreign/norm.so >$D/short/norm.so"),
                     0);
    expect(2, "deltarig verify --device cpu --kernels $D/short 'kda_l2*'",
           "short/norm.so: cut short");
    assert_int_equal(cli_lines(&cli), 1);
}

static void a_missing_gpu_is_named(void **state)
{
    (void)state;
    expect(2, "deltarig verify --device cuda:77 --case " PAIR, "cuda:77");
    assert_int_equal(cli_lines(&cli), 1);
}

/* --- results ---------------------------------------------------------------------------------- */

static void results_are_kept_and_shown(void **state)
{
    (void)state;
    expect(0, "deltarig verify --device cpu --case " PAIR " --out $D/a.jsonl --junit $D/a.xml",
           "2 cases: 2 PASS");
    assert_non_null(strstr(cli.out.data, "device cpu: "));
    expect(0, "grep -c '\"type\": *\"verify\"' $D/a.jsonl", "2");
    expect(0, "cat $D/a.xml", "<testsuite");
    expect(0, "deltarig verify --device cpu --json --case " PAIR, "\"verdict\"");
    size_t records = 0;
    char *save = NULL;
    for (char *line = strtok_r(cli.out.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *json = json_loads(line, 0, NULL);
        assert_non_null(json);
        const char *type = json_string_value(json_object_get(json, "type"));
        records += type != NULL && strcmp(type, "verify") == 0;
        json_decref(json);
    }
    assert_int_equal(records, 2);
    expect(2,
           "echo mine >$D/mine; deltarig verify --device cpu --case " PAIR " --out $D/mine; "
           "code=$?; grep -q mine $D/mine && exit $code",
           "holds something else than results");
    expect(2, "deltarig verify --device cpu --case " PAIR " --out /proc/none/a.jsonl",
           "/proc/none");
    expect(2,
           "mkfifo $D/pipe; deltarig verify --device cpu --case " PAIR " --out $D/pipe; "
           "code=$?; test -p $D/pipe && exit $code",
           "is not a regular file");
}

/* The program's own files must not take the number of a stream that is closed. */
static void closed_and_full_streams_cost_no_results(void **state)
{
    (void)state;
#define THREE "--device cpu --case 'gdn_flag_clear words={2,3,4}' --out $D/s.jsonl"
    expect(0, "deltarig verify " THREE " >&-; wc -l <$D/s.jsonl", "4");
    expect(0, "deltarig verify " THREE " >&- 2>&- <&-; wc -l <$D/s.jsonl", "4");
    expect(0, "deltarig compare $D/s.jsonl $D/s.jsonl", "3 verified");
    expect(1, "deltarig verify " THREE " >/dev/full", "standard output: cannot write");
    expect(1, "deltarig list >/dev/full", "standard output: cannot write");
    expect(0, "deltarig compare $D/s.jsonl $D/s.jsonl", "3 verified");
#undef THREE
}

static void two_runs_do_not_share_a_file(void **state)
{
    (void)state;
    expect(0, "deltarig verify --device cpu --case " PAIR " --out $D/w.jsonl", "2 PASS");
    expect(2,
           "flock $D/w.jsonl build/deltarig verify --device cpu --case " PAIR " --out $D/w.jsonl",
           "w.jsonl: another run is writing it");
    expect(0, "deltarig compare $D/w.jsonl $D/w.jsonl", "2 verified");
}

static void equal_bits_are_counted(void **state)
{
    (void)state;
    expect(0,
           "deltarig verify --device cpu --case 'gdn_flag_clear words={2,3}' --out $D/b.jsonl; "
           "deltarig verify --device cpu --case 'gdn_flag_clear words={3,4}' --out $D/c.jsonl; "
           "deltarig compare --bits $D/b.jsonl $D/c.jsonl",
           "1 case compared: 1 of 1 buffers have equal bits; 2 cases left out");
    expect(0, "deltarig compare --bits --json $D/b.jsonl $D/c.jsonl", "\"left_out\":2");
    expect(3,
           "deltarig verify --device cpu --case 'gdn_flag_clear words=9' --out $D/d.jsonl; "
           "deltarig compare --bits $D/b.jsonl $D/d.jsonl",
           "0 cases compared");
    expect(2, "deltarig compare --bits $D/b.jsonl $D/none.jsonl", "none.jsonl");
}

static void the_table_does_not_depend_on_the_workers(void **state)
{
    (void)state;
    expect(0,
           "for j in 1 2 3; do deltarig verify gdn_flag_clear kda_fill --device cpu --jobs $j "
           "--out $D/j.jsonl | awk '/^PASS/ { $3 = \"\"; print }' >$D/j$j; done; "
           "test -s $D/j1 && cmp $D/j1 $D/j2 && cmp $D/j1 $D/j3 && echo same",
           "same");
    expect(0,
           "deltarig verify gdn_flag_clear kda_fill --device cpu --in-process --out $D/j.jsonl | "
           "awk '/^PASS/ { $3 = \"\"; print }' | cmp - $D/j1 && echo same",
           "same");
}

/* A run that died in the middle of a record: the rest is done, the torn record again. */
static void resuming_finishes_what_was_cut_short(void **state)
{
    (void)state;
    expect(0, "deltarig verify --device cpu --case 'gdn_flag_clear words={2,3,4}' --out $D/r.jsonl",
           "3 PASS");
    expect(0, "head -c -100 $D/r.jsonl >$D/cut && mv $D/cut $D/r.jsonl", "");
    expect(0,
           "deltarig verify --device cpu --case 'gdn_flag_clear words={2,3,4,5}' --out $D/r.jsonl "
           "--resume",
           "4 PASS (2 from the earlier run)");
    expect(0, "grep -c '\"type\": *\"verify\"' $D/r.jsonl", "4");
    expect(0,
           "deltarig verify --device cpu --case 'gdn_flag_clear words={2,3,4,5}' --out $D/r.jsonl "
           "--resume",
           "4 PASS (4 from the earlier run)");
    expect(
        0,
        "deltarig verify --device cpu --case 'gdn_flag_clear words=9' --out $D/new.jsonl --resume",
        "1 PASS");
    expect(2,
           "echo nonsense >$D/junk; deltarig verify --device cpu --case " PAIR
           " --out $D/junk --resume",
           "junk: holds something else than results");
    expect(0, "grep -c nonsense $D/junk", "1");
}

static void goldens_are_checked(void **state)
{
    (void)state;
#define GOLDEN " --golden-dir $D/golden --case 'gdn_flag_clear words=2 at=1'"
    expect(3, "deltarig golden --check" GOLDEN, "absent");
    expect(0, "deltarig golden" GOLDEN, "1 exact, 1 kept");
    expect(0, "deltarig golden --check" GOLDEN, "same");
    expect(0, "deltarig golden" GOLDEN " --export $D/npy && ls $D/npy", "flags.value.npy");
    expect(2, "truncate -s -3 $D/golden/*.golden; deltarig golden --check" GOLDEN,
           "truncated golden");
    assert_int_equal(cli_lines(&cli), 1);
    expect(0, "deltarig verify --device cpu" GOLDEN, "warning: a damaged golden is computed anew");
    expect(0, "deltarig golden --check" GOLDEN, "same");
#undef GOLDEN
}

static void lists_are_complete(void **state)
{
    (void)state;
    expect(0, "deltarig list --tier smoke", "smoke  gdn_flag_clear");
    expect(0, "deltarig list --json gdn_flag_clear", "\"tier\":\"smoke\"");
    expect(0, "deltarig list --operators gdn_flag_clear",
           "launches gated_delta_rule_wy4_flag_clear");
    expect(0, "deltarig list --operators --json | wc -l", "");
    assert_true(atoi(cli.out.data) >= 4);
    expect(0, "cd $D && $OLDPWD/build/deltarig list --tier smoke",
           "gdn_flag_clear"); /* from anywhere */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_everywhere),
        cmocka_unit_test(bad_options_are_one_line_and_exit_2),
        cmocka_unit_test(each_repeat_against_itself_is_told),
        cmocka_unit_test(bad_cases_say_where_and_how_to_mend),
        cmocka_unit_test(impossible_dims_are_the_users_to_mend),
        cmocka_unit_test(nothing_executed_is_exit_3),
        cmocka_unit_test(a_file_that_is_no_module_is_bad_input),
        cmocka_unit_test(a_missing_gpu_is_named),
        cmocka_unit_test(results_are_kept_and_shown),
        cmocka_unit_test(closed_and_full_streams_cost_no_results),
        cmocka_unit_test(two_runs_do_not_share_a_file),
        cmocka_unit_test(equal_bits_are_counted),
        cmocka_unit_test(the_table_does_not_depend_on_the_workers),
        cmocka_unit_test(resuming_finishes_what_was_cut_short),
        cmocka_unit_test(goldens_are_checked),
        cmocka_unit_test(lists_are_complete),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
