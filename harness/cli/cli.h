/*
 * The commands of `deltarig`. One file per command; main.c only picks one. A command prints:
 * results on standard output, progress and errors on standard error, an error as one line
 * `deltarig: <text>`.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>

#include "base/err.h"

/* The process's exit codes. */
enum exit_code {
    EXIT_PASS = 0,
    EXIT_FAIL = 1,    /* FAIL, MISTRUST or ERROR among the verdicts; slower; worse */
    EXIT_INPUT = 2,   /* bad input or a missing device, driver or file: nothing can be said */
    EXIT_NOTHING = 3, /* nothing was executed: no case matched, or all were skipped */
};

struct command {
    const char *name, *summary;
    /* The whole command line: argv[0] is the program, argv[1] the command's name. Returns an enum
     * exit_code. */
    int (*run)(int argc, char **argv);
};

/* Ends with a NULL name. */
extern const struct command cli_commands[];

int cmd_list(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_golden(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_resources(int argc, char **argv);

/* Prints `deltarig: <text>` to standard error and returns the exit code of the error's kind:
   EXIT_INPUT, or EXIT_FAIL for ERR_SYSTEM. */
int cli_error(const struct err *err);

/* The device to use when none is named: device_open()'s "default". */
#define CLI_DEFAULT_DEVICE "default"

/* Folders relative to the project root, which is the folder above the binary's (`build/deltarig`):
   `out` gets "cases" when that is the current folder, else an absolute path. */
void cli_project_path(const char *below_root, char *out, unsigned long n);

/* The cache of goldens. */
struct golden_place {
    char dir[4096];
    bool read_only; /* nothing can be stored there */
};

/* `given` (--golden-dir), NULL: the project's own. When nothing can be stored there one warning
   says why, unless it is only `read`. ERR_INPUT when it is no folder. */
int cli_goldens(const char *given, bool read, struct golden_place *out, struct err *err);

#endif
