/*
 * What a profiler sees. NVTX looks for an injected tool at its first call in a process, so the
 * ranges are made in a process of their own: this program started anew with an argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "measure/nvtx.h"

#define TOOL   "build/tests/nvtx_inject/nvtx_inject.so"
#define RANGES "--ranges"

static const char case_text[] = "gdn_fold nk=2 nv=6 seed=1";

/* A suite of one case with two phases, and the same case once more. */
static int make_ranges(void)
{
    struct nvtx *n = nvtx_open();

    nvtx_suite_begin(n, "bench", 2);
    nvtx_case_begin(n, case_text, UINT64_C(0x123456789abcdef0));
    nvtx_phase_begin(n, NVTX_WARM_UP, 4096);
    nvtx_end(n);
    nvtx_phase_begin(n, NVTX_TIMED, UINT64_C(5000000000));
    nvtx_end(n);
    nvtx_end(n);
    nvtx_case_begin(n, case_text, UINT64_C(0x123456789abcdef0));
    nvtx_end(n);
    nvtx_end(n);
    nvtx_close(n);
    return 0;
}

static void run_with_tool(const char *log)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    int status = 0;
    pid_t child;

    assert_true(length > 0);
    self[length] = '\0';
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        setenv("NVTX_INJECTION64_PATH", TOOL, 1);
        setenv("DELTARIG_NVTX_LOG", log, 1);
        execl(self, self, RANGES, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The id that the tool gave to a registered name; each name must come once. */
static unsigned id_of(const char *log, const char *name)
{
    char wanted[256];
    const char *line, *found = NULL;
    unsigned id = 0;

    snprintf(wanted, sizeof wanted, " 1 %s\n", name);
    for (line = log; (line = strstr(line, "string ")) != NULL; line++) {
        const char *rest = strchr(line + strlen("string "), ' ');

        if (rest && !strncmp(rest, wanted, strlen(wanted))) {
            assert_null(found);
            found = line;
            assert_int_equal(sscanf(line, "string %u", &id), 1);
        }
    }
    if (!found)
        fail_msg("\"%s\" was not registered in:\n%s", name, log);
    return id;
}

static void assert_ranges(const char *log)
{
    char expected[1024];
    const char *first = strstr(log, "push ");
    unsigned suite = id_of(log, "bench"), one = id_of(log, case_text);
    unsigned warm_up = id_of(log, "warm-up"), timed = id_of(log, "timed");

    assert_non_null(strstr(log, "domain 1 0 deltarig\n"));
    assert_non_null(strstr(log, "category 1 1 suite\n"));
    assert_non_null(strstr(log, "category 2 1 case\n"));
    assert_non_null(strstr(log, "category 3 1 phase\n"));
    for (int i = 0; i < NVTX_PHASES; i++)
        id_of(log, nvtx_phase_name((enum nvtx_phase)i));
    snprintf(expected, sizeof expected,
             "push %u 1 2\n"
             "string %u 1 %s\n"
             "push %u 2 1311768467463790320\n"
             "push %u 3 4096\npop 1 0 \n"
             "push %u 3 5000000000\npop 1 0 \n"
             "pop 1 0 \n"
             "push %u 2 1311768467463790320\npop 1 0 \n"
             "pop 1 0 \n",
             suite, one, case_text, one, warm_up, timed, one);
    assert_string_equal(first, expected);
}

static void test_a_tool_sees_the_ranges(void **data)
{
    char path[64];
    struct text log;
    struct err err = ERR_INIT;

    (void)data;
    if (!nvtx_available()) {
        print_message("SKIP: built without nvtx3/nvToolsExt.h: no ranges to see\n");
        skip();
    }
    snprintf(path, sizeof path, "build/tests/nvtx-%d.log", (int)getpid());
    run_with_tool(path);
    text_init(&log);
    if (file_read(path, 1 << 20, &log, &err) < 0)
        fail_msg("%s", err.text);
    unlink(path);
    assert_ranges(log.data);
    text_release(&log);
}

static void test_nothing_happens_without_ranges(void **data)
{
    (void)data;
    nvtx_suite_begin(NULL, "bench", 1);
    nvtx_case_begin(NULL, case_text, 1);
    nvtx_phase_begin(NULL, NVTX_TIMED, 1);
    nvtx_end(NULL);
    nvtx_close(NULL);
}

static void test_phase_names(void **data)
{
    (void)data;
    for (int i = 0; i < NVTX_PHASES; i++)
        assert_true(strlen(nvtx_phase_name((enum nvtx_phase)i)) > 0);
    assert_string_equal(nvtx_phase_name(NVTX_WARM_UP), "warm-up");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tool_sees_the_ranges),
        cmocka_unit_test(test_nothing_happens_without_ranges),
        cmocka_unit_test(test_phase_names),
    };

    if (argc == 2 && !strcmp(argv[1], RANGES))
        return make_ranges();
    return cmocka_run_group_tests_name("nvtx", tests, NULL, NULL);
}
