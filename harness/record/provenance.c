#include "record/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/shell.h"

/* The build says how the harness was compiled; a lone `cc -c` of this file says that it does
   not know. */
#ifndef BUILD_FLAGS
#define BUILD_FLAGS "flags not known"
#endif

#define PATH_BYTES 4096

/* --- the command line ------------------------------------------------------------------------- */

/* Appends the absolute path of `n` bytes without what is local to this machine. */
static void add_reduced(struct text *out, const char *path, size_t n, const char *here)
{
    size_t h = strlen(here);
    size_t last = n;

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (h > 1 && n >= h && strncmp(path, here, h) == 0 && (n == h || path[h] == '/')) {
        if (n == h)
            text_add(out, ".");
        else
            text_add_bytes(out, path + h + 1, n - h - 1);
        return;
    }
    for (last = n; last > 0 && path[last - 1] != '/';)
        last--;
    text_add(out, ".../");
    text_add_bytes(out, path + last, n - last);
}

static void reduce_word(struct text *out, const char *word, const char *here)
{
    const char *p = word;

    while (*p) {
        bool starts = p == word || strchr("=,:", p[-1]) != NULL;
        size_t n = strcspn(p, "=,:");

        if (starts && *p == '/') {
            add_reduced(out, p, n, here);
            p += n;
        } else {
            text_add_bytes(out, p, 1);
            p++;
        }
    }
}

static void add_word(struct text *out, const char *word, const char *here)
{
    struct text reduced;

    text_init(&reduced);
    reduce_word(&reduced, word, here);
    shell_quote(out, reduced.data);
    text_release(&reduced);
}

void provenance_word(struct text *out, const char *word)
{
    char here[PATH_BYTES];

    add_word(out, word, getcwd(here, sizeof here) ? here : "");
}

static char *command_line(int argc, char *const argv[])
{
    struct text line;

    text_init(&line);
    for (int i = 0; i < argc; i++) {
        const char *slash = i == 0 ? strrchr(argv[0], '/') : NULL;

        if (i > 0)
            text_add(&line, " ");
        if (slash)
            shell_quote(&line, slash + 1);
        else
            provenance_word(&line, argv[i]);
    }
    return line.data; /* the text's buffer is the string from here on */
}

/* --- git -------------------------------------------------------------------------------------- */

/* The folder of the running program. */
static bool program_folder(char *out, size_t n)
{
    ssize_t got = readlink("/proc/self/exe", out, n - 1);
    char *slash;

    if (got <= 0)
        return false;
    out[got] = '\0';
    slash = strrchr(out, '/');
    if (!slash || slash == out)
        return false;
    *slash = '\0';
    return true;
}

/* Runs `git <argument> <argument>` there; false when git is absent or says no. */
static bool git(const char *folder, const char *const words[], struct text *out)
{
    /* The fixed options: no helper of a configuration runs, and no lock is taken for a mere
       look. */
    static const char *const fixed[] = {"git", "--no-optional-locks", "-c", "core.fsmonitor=false"};
    struct shell_run how = {.dir = folder, .limit = 65536};
    struct err ignored = ERR_INIT;
    char *argv[12];
    size_t n = 0;
    int status = -1;
    bool ran;

    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        argv[n++] = xstrdup(fixed[i]);
    for (size_t i = 0; words[i]; i++)
        argv[n++] = xstrdup(words[i]);
    argv[n] = NULL;
    text_clear(out);
    ran = shell_capture(argv, &how, out, &status, &ignored) == 0 && status == 0;
    while (n > 0)
        free(argv[--n]);
    return ran;
}

static void collect_git(struct provenance *out)
{
    static const char *const commit[] = {"rev-parse", "--verify", "HEAD", NULL};
    static const char *const status[] = {"status", "--porcelain", "--untracked-files=no", NULL};
    char folder[PATH_BYTES];
    struct text said;

    text_init(&said);
    if (program_folder(folder, sizeof folder) && git(folder, commit, &said)) {
        snprintf(out->git_commit, sizeof out->git_commit, "%.*s", (int)strcspn(said.data, "\n"),
                 said.data);
        out->git_dirty = git(folder, status, &said) && said.len > 0;
    }
    text_release(&said);
}

/* --- machine ---------------------------------------------------------------------------------- */

/* The value of the first "key : value" line of /proc/cpuinfo, without its blanks; "" when
   absent. */
static void cpuinfo(const struct text *all, const char *key, char *out, size_t n)
{
    const char *line = all->data;

    out[0] = '\0';
    while (line && strncmp(line, key, strlen(key)) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line || !(line = strchr(line, ':')))
        return;
    line += 1 + strspn(line + 1, " \t");
    snprintf(out, n, "%.*s", (int)strcspn(line, "\n"), line);
}

static void collect_cpu(struct provenance *out)
{
    struct err ignored = ERR_INIT;
    char implementer[32], part[32];
    struct text all;

    text_init(&all);
    if (file_read("/proc/cpuinfo", (size_t)1 << 24, &all, &ignored) == 0) {
        cpuinfo(&all, "model name", out->host_cpu, sizeof out->host_cpu);
        cpuinfo(&all, "CPU implementer", implementer, sizeof implementer);
        cpuinfo(&all, "CPU part", part, sizeof part);
        /* Arm has no model name, only numbers. */
        if (!out->host_cpu[0] && implementer[0])
            snprintf(out->host_cpu, sizeof out->host_cpu, "Arm implementer %s part %s", implementer,
                     part);
    }
    if (!out->host_cpu[0])
        snprintf(out->host_cpu, sizeof out->host_cpu, "unknown");
    text_release(&all);
}

static void collect_system(struct provenance *out)
{
    struct utsname uts;
    struct tm utc;
    time_t now = time(NULL);

    if (uname(&uts) == 0) { /* not uts.nodename: that is the host's name */
        snprintf(out->os, sizeof out->os, "%.20s %.40s", uts.sysname, uts.release);
        snprintf(out->host_arch, sizeof out->host_arch, "%.15s", uts.machine);
    }
    if (gmtime_r(&now, &utc))
        strftime(out->started, sizeof out->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static void collect_compiler(struct provenance *out)
{
    struct text flags;
    char *words = xstrdup(BUILD_FLAGS);
    char *save = NULL;

    text_init(&flags);
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (flags.len)
            text_add(&flags, " ");
        reduce_word(&flags, w, "");
    }
#ifdef __clang__
    snprintf(out->compiler, sizeof out->compiler, "clang %d.%d.%d (%.90s)", __clang_major__,
             __clang_minor__, __clang_patchlevel__, flags.data);
#else
    snprintf(out->compiler, sizeof out->compiler, "gcc %d.%d.%d (%.90s)", __GNUC__, __GNUC_MINOR__,
             __GNUC_PATCHLEVEL__, flags.data);
#endif
    text_release(&flags);
    free(words);
}

int provenance_collect(int argc, char *const argv[], struct provenance *out, struct err *err)
{
    *out = (struct provenance){.argv = NULL};
    if (argc < 1)
        return err_set(err, ERR_SYSTEM, "the program was started without its name");
    out->argv = command_line(argc, argv);
    snprintf(out->version, sizeof out->version, "%s", DELTARIG_VERSION);
    collect_git(out);
    collect_cpu(out);
    collect_system(out);
    collect_compiler(out);
    return 0;
}

void provenance_release(struct provenance *p)
{
    free(p->argv);
    p->argv = NULL;
}
