/* The commands agree: on what they say of cases, folders and kernels that will not do, with which
 * exit code, and how often. */
#include "measure/nvtx.h"
#include "tests/cli_run.h"

static int set_up(void **state)
{
    (void)state;
    if (cli_open(&cli, "build/tmp/agree") != 0)
        return -1;
    return cli_run(&cli, "mkdir -p $D/bad $D/none $D/foreign; echo >$D/a.so; "
                         "cp build/kernels/cpu/norm.so $D/foreign/");
}

static int tear_down(void **state)
{
    (void)state;
    return cli_close(&cli);
}

#define BENCH "deltarig bench --device cpu --rounds 2 --budget 0.01 --out $D/b.jsonl "

/* What each of the commands says of a folder that is not there, is empty or is a file, and of
   options that would be passed over. */
static void folders_that_will_not_do_are_named(void **state)
{
    (void)state;
    static const char *const commands[] = {"verify", "bench --device cpu", "resources", "golden",
                                           "list"};
    static const struct {
        size_t take; /* that many of the commands have it */
        const char *option, *says;
    } rows[] = {
        {5, "--cases $D/missing",
         "--cases: build/tmp/agree/missing: cannot read the directory: No "},
        {5, "--cases $D/none", "--cases: build/tmp/agree/none: holds no .case file"},
        {5, "--cases $D/a.so", "--cases: build/tmp/agree/a.so: cannot read the directory: Not a "},
        {5, "--tier quick", "--tier quick: use smoke"},
        {4, "--case gdn_fold --tier smoke", "--case and --tier exclude each other"},
        {4, "--case gdn_fold --cases cases", "--case and --cases exclude each other"},
        {3, "--case gdn_fold --kernels $D/missing",
         "agree/missing: cannot read the directory: No "},
        {3, "--case gdn_fold --kernels $D/none", "agree/none: no kernel file for device cpu"},
        {3, "--case gdn_fold --kernels $D/a.so", "agree/a.so: cannot read the directory: Not a "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t c = 0; c < rows[i].take; c++) {
            char line[200];
            snprintf(line, sizeof(line), "deltarig %s %s", commands[c], rows[i].option);
            expect_line(2, line, rows[i].says);
        }
    expect_line(2, BENCH "--against $D/missing --case " PAIR, "agree/missing: cannot read");
    expect_line(2, "deltarig resources --kernels $D/none --no-cases", "none: no .cu or .fatbin");
    expect_line(2, "deltarig report $D/no.jsonl --out $D/report", "no.jsonl: cannot open");
    expect_line(2, "deltarig merge $D/no.jsonl --out $D/m.jsonl", "no.jsonl: cannot open");
    expect_line(2, "deltarig compare $D/no.jsonl $D/no.jsonl", "no.jsonl: cannot open");
    expect_line(2, "deltarig compare --history $D/missing", "missing: cannot read the directory");
    expect_line(2, "deltarig compare --history $D/none", "none: holds no *.jsonl file");
}

static void goldens_need_a_folder(void **state)
{
    (void)state;
    static const char says[] = "--golden-dir: build/tmp/agree/a.so: is a file: name a folder";
#define THERE " --golden-dir $D/a.so --case " PAIR
    expect_line(2, "deltarig verify --device cpu" THERE, says);
    expect_line(2, BENCH THERE, says);
    expect_line(2, "deltarig golden" THERE, says);
    expect_line(2, "deltarig golden --check" THERE, says);
#undef THERE
}

static void no_case_is_exit_3(void **state)
{
    (void)state;
    expect_line(3, "deltarig verify none_such", "tier full of cases has none like 'none_such'");
    expect_line(3, "deltarig golden none_such", "tier full of cases has none like 'none_such'");
    expect_line(3, "deltarig list none_such", "tier all of cases has none like 'none_such'");
    expect_line(3, "deltarig resources none_such", "tier perf of cases has none like 'none_such'");
    expect_line(3, "deltarig bench --device cpu no_a no_b",
                "none like 'no_a' or the other patterns");
    expect_line(
        3,
        "mkdir $D/few; echo '[smoke]\nkda_l2' >$D/few/kda_l2.case; deltarig bench --device cpu "
        "--cases $D/few --tier perf",
        "no case matches: tier perf of build/tmp/agree/few has none; ");
    expect_line(3, "deltarig list --operators nothing_like_it", "no operator matches");
    expect(3, "deltarig resources --out $D/none.jsonl --kernels $D/foreign --case " PAIR,
           "no kernel that the cases launch");
}

/* The other commands judge the same cases alike. The reference has no launcher: what only that
   refuses is a golden like others. */
static void all_commands_agree_on_impossible_dims(void **state)
{
    (void)state;
#define RESOURCES "deltarig resources --out $D/dims.jsonl --case "
    expect(2, BENCH "--case 'kda_chunk_scan D=6'", "kda_chunk_scan: D = 6 is not a multiple of 32");
    expect(2, BENCH "--case 'gdn_flag_clear words=2 at={5,1}'", "at=5 is past the 2 words");
    assert_non_null(strstr(cli.out.data, "2 rows, 1 not valid"));
    expect(1, BENCH "--case 'kda_chunk_scan C=64 D={6,128}'", "needs 81920 bytes of shared memory");
    expect(2, RESOURCES "'kda_chunk_scan D=6'", "kda_chunk_scan: D = 6 is not a multiple of 32");
    expect(2, RESOURCES "'gdn_flag_clear words=2 at={5,1}'", "at=5 is past the 2 words");
    assert_non_null(strstr(cli.out.data, "1 launch, 0 that GB10 would refuse"));
    expect(1, RESOURCES "'kda_chunk_scan C=64 D={6,128}'", "needs 81920 bytes of shared memory");
    expect(2, "deltarig golden --case 'gdn_flag_clear words=2 at={5,1}'",
           "at=5 is past the 2 words");
    expect(0, "deltarig golden --case 'kda_chunk_scan D=6'", "480 values");
    expect(2,
           "printf '[smoke]\\ngdn_flag_clear words=2 at=5\\n' >$D/bad/gdn_flag_clear.case; "
           "deltarig resources --cases $D/bad --tier all "
           "--out $D/dims.jsonl",
           "bad/gdn_flag_clear.case:2: ");
#undef RESOURCES
}

/* However many goldens and workers there are. */
static void an_unwritable_cache_is_told_once(void **state)
{
    (void)state;
    expect(0,
           "deltarig verify --device cpu --jobs 2 --tier smoke --golden-dir /proc/none 'kda_l2*' "
           "'kda_conv*' 2>&1 >/dev/null",
           "/proc/none");
    assert_int_equal(cli_lines(&cli), 1);
    expect_line(0,
                "deltarig bench --device cpu --jobs 2 --rounds 2 --budget 0.01 --out $D/c.jsonl "
                "--golden-dir /proc/none --tier smoke 'kda_l2*' 'kda_conv*' 2>&1 >/dev/null",
                "warning: goldens are computed and not kept: /proc/none");
    expect_line(0, "deltarig golden --golden-dir /proc --case " PAIR " 2>&1 >/dev/null",
                "warning: goldens are computed and not kept: /proc");
}

/* As is what each worker, each set and each round sees. */
static void a_warning_is_told_once(void **state)
{
    (void)state;
#define SIX "--device cpu --jobs 2 --case 'gdn_flag_clear words={2,3,4,5,6,7} at=1' "
    expect(0,
           "mkdir $D/dup; echo 'extern \"C\" __global__ void gated_delta_rule_wy4_flag_clear("
           "unsigned *flag) { if (threadIdx.x == 0) *flag = 0; }' "
           ">$D/dup/gated_delta_rule_wy4_woa.cu; cp $D/dup/*.cu $D/dup/other.cu",
           "");
    expect_line(0, "deltarig verify " SIX "--kernels $D/dup 2>&1 >/dev/null",
                "warning: build/tmp/agree/dup: kernel gated_delta_rule_wy4_flag_clear is in both");
    expect_line(
        0,
        "deltarig bench --rounds 2 --budget 0.01 --out $D/d.jsonl --against-out $D/e.jsonl " SIX
        "--kernels $D/dup --against $D/dup 2>&1 >/dev/null",
        "warning: build/tmp/agree/dup: kernel gated_delta_rule_wy4_flag_clear is in both");
    expect_line(0,
                "deltarig golden --golden-dir $D/torn --case kda_l2 >/dev/null; "
                "truncate -s -3 $D/torn/*; deltarig bench --device cpu --rounds 2 --budget 0.01 "
                "--out $D/d.jsonl --golden-dir $D/torn --case kda_l2 2>&1 >/dev/null",
                "warning: a damaged golden is computed anew");
#undef SIX
}

/* Of a build without NVTX's header, only under a profiler, which would wait for ranges. */
static void missing_ranges_are_told_to_a_profiler(void **state)
{
    (void)state;
    expect(0, BENCH "--case gdn_flag_clear 2>&1 >/dev/null", "");
    assert_int_equal(cli_lines(&cli), 0);
    expect(0,
           "NVTX_INJECTION64_PATH=$D/none/tool.so; export NVTX_INJECTION64_PATH; " BENCH
           "--case gdn_flag_clear 2>&1 >/dev/null",
           nvtx_available() ? "" : "no ranges for profilers");
    assert_int_equal(cli_lines(&cli), nvtx_available() ? 0 : 1);
}

/* `make` broke off, say: what verify calls a failure bench does not pass over. */
static void our_own_set_must_be_complete(void **state)
{
    (void)state;
    expect(0,
           "mkdir -p $D/own/kernels/cpu; cp build/deltarig* $D/own/; cp -r scripts cases $D/; "
           "cp build/kernels/cpu/norm.so build/kernels/cpu/bench_memory.so $D/own/kernels/cpu/",
           "");
    expect(1, "$D/own/deltarig verify --device cpu --case " PAIR, "a required entry is missing");
    expect(1,
           "$D/own/deltarig bench --device cpu --rounds 2 --budget 0.01 --out $D/own.jsonl "
           "--case " PAIR,
           "not timed: SKIP: kernel gated_delta_rule_wy4_flag_clear");
    expect(3,
           "deltarig bench --device cpu --rounds 2 --budget 0.01 --out $D/own.jsonl --kernels "
           "$D/foreign "
           "--case " PAIR,
           "nothing was timed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_that_will_not_do_are_named),
        cmocka_unit_test(goldens_need_a_folder),
        cmocka_unit_test(no_case_is_exit_3),
        cmocka_unit_test(all_commands_agree_on_impossible_dims),
        cmocka_unit_test(an_unwritable_cache_is_told_once),
        cmocka_unit_test(a_warning_is_told_once),
        cmocka_unit_test(missing_ranges_are_told_to_a_profiler),
        cmocka_unit_test(our_own_set_must_be_complete),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
