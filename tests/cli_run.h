/*
 * Runs build/deltarig as its users do, for tests of the command line. Included once a program.
 */
#ifndef TESTS_CLI_RUN_H
#define TESTS_CLI_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/shell.h"
#include "base/text.h"

#include <cmocka.h> /* last, as everywhere in the tests */

/* A test program's own folder and what its last command printed, both streams. */
struct cli {
    const char *folder;
    struct text out;
};

/* "$D" in the command is the folder, "deltarig" the program. Returns the exit status. */
static inline int cli_run(struct cli *c, const char *command)
{
    struct text script;
    struct err err = ERR_INIT;
    struct shell_run how = {.limit = 1 << 22, .with_stderr = 1};
    int status = -1;
    text_init(&script);
    text_addf(&script, "D=%s; deltarig() { build/deltarig \"$@\"; }; %s", c->folder, command);
    char shell[] = "sh", flag[] = "-c";
    char *argv[] = {shell, flag, script.data, NULL};
    text_clear(&c->out);
    if (shell_capture(argv, &how, &c->out, &status, &err) < 0)
        fail_msg("%s: %s", command, err.text);
    text_release(&script);
    return status;
}

static inline void cli_expect(struct cli *c, int code, const char *command, const char *says)
{
    int got = cli_run(c, command);
    if (got != code || strstr(c->out.data, says) == NULL)
        fail_msg("%s: exit %d, wanted %d and '%s', printed:\n%s", command, got, code, says,
                 c->out.data);
}

static inline size_t cli_lines(const struct cli *c)
{
    size_t n = 0;
    for (const char *p = c->out.data; *p != '\0'; p++)
        n += *p == '\n';
    return n;
}

/* The same, and all that is printed is one line. */
static inline void cli_expect_line(struct cli *c, int code, const char *command, const char *says)
{
    cli_expect(c, code, command, says);
    if (cli_lines(c) != 1)
        fail_msg("%s: one line is wanted, not:\n%s", command, c->out.data);
}

/* Of the program that includes this. */
static struct cli cli;

static inline void expect(int code, const char *command, const char *says)
{
    cli_expect(&cli, code, command, says);
}

static inline void expect_line(int code, const char *command, const char *says)
{
    cli_expect_line(&cli, code, command, says);
}

/* Two quick cases of one operator. */
#define PAIR "'gdn_flag_clear words={2,3} at=1'"

static inline int cli_open(struct cli *c, const char *folder)
{
    c->folder = folder;
    text_init(&c->out);
    return cli_run(c, "rm -rf $D; mkdir -p $D");
}

static inline int cli_close(struct cli *c)
{
    cli_run(c, "rm -rf $D");
    text_release(&c->out);
    return 0;
}

#endif
