/* What several commands share: errors, places. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

int cli_error(const struct err *err)
{
    fprintf(stderr, "deltarig: %s\n", err->text);
    return err->kind == ERR_SYSTEM ? EXIT_FAIL : EXIT_INPUT;
}

/* The folder above the one the binary lies in; false when it cannot be told. */
static bool project_root(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(out, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    if (out[0] == '\0')
        strcpy(out, "/");
    return true;
}

static bool same_folder(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

void cli_project_path(const char *below_root, char *out, unsigned long n)
{
    char root[PATH_MAX];
    if (!project_root(root) || same_folder(root, "."))
        snprintf(out, n, "%s", below_root);
    else
        snprintf(out, n, "%s/%s", root, below_root);
}
