/* The progress line of verify and of bench on a terminal: one that is overwritten, never wider than
 * the terminal, and gone before anything else is printed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/progress.h"

#include <cmocka.h> /* last, as everywhere in the tests */

#define CLEAR "\r\033[K"

/* Opens a terminal `columns` wide (0: it does not say); its other end in *end. */
static int open_terminal(unsigned columns, int *end)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0)
        return -1;
    *end = open(ptsname(fd), O_RDWR | O_NOCTTY);
    if (*end < 0 || ioctl(*end, TIOCSWINSZ, &size) < 0)
        return -1;
    return fd;
}

/* What was written to the terminal until its other end was closed. */
static void read_terminal(int fd, struct text *out)
{
    char block[4096];
    ssize_t n;
    while ((n = read(fd, block, sizeof(block))) > 0 || (n < 0 && errno == EINTR))
        text_add_bytes(out, block, n > 0 ? (size_t)n : 0);
    close(fd);
}

/* Runs a command whose both streams are the terminal. */
static int run(const char *command, unsigned columns, struct text *out)
{
    int end, status = -1;
    int fd = open_terminal(columns, &end);
    if (fd < 0)
        skip();
    pid_t child = fork();
    if (child == 0) {
        dup2(end, STDOUT_FILENO);
        dup2(end, STDERR_FILENO);
        close(end);
        close(fd);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(end);
    read_terminal(fd, out);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_progress(const char *text)
{
    unsigned done, all;
    return sscanf(text, "%u/%u cases", &done, &all) == 2 || strncmp(text, "verified ", 9) == 0 ||
           strncmp(text, "preparing ", 10) == 0 || strncmp(text, "cases ", 6) == 0;
}

/* Every line of progress is shorter than the terminal is wide and taken away before what follows;
   returns how many there were. */
static size_t check_progress(const char *out, size_t columns)
{
    size_t shown = 0;
    for (const char *p = strstr(out, CLEAR); p != NULL; p = strstr(p, CLEAR)) {
        p += strlen(CLEAR);
        const char *next = strstr(p, CLEAR);
        size_t n = next != NULL ? (size_t)(next - p) : strlen(p);
        if (!is_progress(p))
            continue;
        if (next == NULL || n >= columns || memchr(p, '\n', n) != NULL)
            fail_msg("'%.*s' is too wide for %zu columns, or stays", (int)n, p, columns);
        shown++;
    }
    return shown;
}

static void one_line_that_fits_is_shown_and_taken_away(void **state)
{
    (void)state;
    static const struct {
        const char *command, *progress, *last;
    } rows[] = {
        {"build/deltarig verify --device cpu --jobs 1 --out build/tmp/progress.jsonl "
         "--case 'gdn_flag_clear words={2,3,4,5,6,7,8,9}'",
         "1/8 cases, 0 not passed; last: gdn_flag_clear", "results: build/tmp/progress.jsonl"},
        {"build/deltarig bench --device cpu --jobs 1 --rounds 2 --budget 0.01 "
         "--out build/tmp/progress.jsonl --case 'gdn_flag_clear words={2,3,4,5,6,7,8,9}'",
         "verified 1 of 8", "records: build/tmp/progress.jsonl"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned columns = 50; columns <= 200; columns += 150) {
            struct text out;
            text_init(&out);
            unlink("build/tmp/progress.jsonl");
            assert_int_equal(run(rows[i].command, columns, &out), 0);
            if (strstr(out.data, rows[i].progress) == NULL)
                fail_msg("no '%s' in:\n%s", rows[i].progress, out.data);
            assert_true(check_progress(out.data, columns) >= 7); /* after each but the last */
            assert_non_null(strstr(out.data, rows[i].last));
            for (const char *p = strrchr(out.data, '\n') + 1; *p != '\0'; p += strlen(CLEAR))
                assert_memory_equal(p, CLEAR, strlen(CLEAR));
            text_release(&out);
        }
    unlink("build/tmp/progress.jsonl");
}

/* --- the module ------------------------------------------------------------------------------- */

static int saved;

/* Standard error becomes the file descriptor. */
static void redirect(int fd)
{
    fflush(stderr);
    saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static void restore(void)
{
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static void the_terminals_width_is_kept(void **state)
{
    (void)state;
    static const unsigned widths[][2] = {{20, 19}, {0, 79}, {1, 79}, {300, 120}};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        struct progress p;
        struct text out;
        int end, fd = open_terminal(widths[i][0], &end);
        if (fd < 0)
            skip();
        text_init(&out);
        redirect(end);
        progress_init(&p);
        progress_show(&p, "%0120d", 7);
        progress_release(&p);
        restore();
        read_terminal(fd, &out);
        assert_int_equal(out.len, 2 * strlen(CLEAR) + widths[i][1]);
        assert_memory_equal(out.data, CLEAR "000", strlen(CLEAR) + 3);
        assert_string_equal(out.data + out.len - strlen(CLEAR), CLEAR);
        text_release(&out);
    }
}

static void elsewhere_only_notes_and_new_warnings_are_told(void **state)
{
    (void)state;
    int pipe_fd[2];
    struct progress p;
    struct text out;
    assert_int_equal(pipe(pipe_fd), 0);
    text_init(&out);
    redirect(pipe_fd[1]);
    progress_init(&p);
    progress_show(&p, "1 of 2");
    progress_note(&p, "bench", "one");
    progress_note(&p, "bench", "one");
    progress_warn(&p, "two");
    progress_warn(&p, "three");
    progress_warn(&p, "two");
    progress_release(&p);
    restore();
    read_terminal(pipe_fd[0], &out);
    assert_string_equal(out.data, "deltarig: bench: one\ndeltarig: bench: one\n"
                                  "deltarig: warning: two\ndeltarig: warning: three\n");
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_that_fits_is_shown_and_taken_away),
        cmocka_unit_test(the_terminals_width_is_kept),
        cmocka_unit_test(elsewhere_only_notes_and_new_warnings_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
