/* What several commands share: errors, places. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "measure/golden_cache.h"

int cli_error(const struct err *err)
{
    fprintf(stderr, "deltarig: %s\n", err->text);
    return err->kind == ERR_SYSTEM ? EXIT_FAIL : EXIT_INPUT;
}

static bool parent_folder(char path[PATH_MAX])
{
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

static bool has_cases(const char *root)
{
    char cases[PATH_MAX + sizeof("/cases")];
    struct stat st;
    snprintf(cases, sizeof(cases), "%s/cases", root);
    return stat(cases, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The folder above the one the binary lies in (build), or one more up (build/asan): the one with
   the cases, else the first; false when it cannot be told. */
static bool project_root(char out[PATH_MAX])
{
    char above[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    if (!parent_folder(out) || !parent_folder(out))
        return false;
    strcpy(above, out);
    if (!has_cases(out) && parent_folder(above) && has_cases(above))
        strcpy(out, above);
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

/* What is there must be a folder; nothing is as good as an empty one. */
static int check_folder(const char *path, struct err *err)
{
    struct stat st;
    if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, ERR_INPUT, "--golden-dir: %s: is a file: name a folder", path);
}

int cli_goldens(const char *given, bool read, struct golden_place *out, struct err *err)
{
    struct err why = ERR_INIT;
    if (given != NULL)
        snprintf(out->dir, sizeof(out->dir), "%s", given);
    else
        cli_project_path("build/golden", out->dir, sizeof(out->dir));
    if (check_folder(out->dir, err) < 0)
        return -1;
    out->read_only = read || !golden_cache_writable(out->dir, &why);
    if (!read && out->read_only)
        fprintf(stderr, "deltarig: warning: goldens are computed and not kept: %s\n", why.text);
    return 0;
}
