#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

const struct command cli_commands[] = {
    {"verify", "prove that kernels are right, case by case", cmd_verify},
    {"bench", "time kernels that are right", cmd_bench},
    {"compare", "tell what changed between two results", cmd_compare},
    {"report", "tables and plots from results", cmd_report},
    {"merge", "join results of several machines or shards", cmd_merge},
    {"list", "show operators and cases", cmd_list},
    {"golden", "compute, check or export what the reference says", cmd_golden},
    {"resources", "what the kernels ask of GB10, without one", cmd_resources},
    {"devices", "show the devices of this machine", cmd_devices},
    {NULL, NULL, NULL},
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: deltarig COMMAND [options]\n\ncommands:\n");
    for (const struct command *c = cli_commands; c->name != NULL; c++)
        fprintf(out, "  %-10s %s\n", c->name, c->summary);
    fprintf(out, "\n`deltarig COMMAND --help` explains one.\n"
                 "Exit codes: 0 pass, 1 fail, 2 bad input, 3 nothing was executed.\n");
}

/* A stream that the caller closed would get the next file that is opened: the table would go into
   the results. */
static void open_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* What a full disk swallowed is not a success. */
static int finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "deltarig: standard output: cannot write all of it\n");
    return code == EXIT_PASS ? EXIT_FAIL : code;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_PASS;
    }
    for (const struct command *c = cli_commands; c->name != NULL; c++)
        if (strcmp(c->name, argv[1]) == 0)
            return c->run(argc, argv);
    fprintf(stderr, "deltarig: unknown command '%s'; `deltarig --help` lists them\n", argv[1]);
    return EXIT_INPUT;
}

int main(int argc, char **argv)
{
    open_streams();
    return finish(run(argc, argv));
}
