#include "base/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define SAFE                                                                                       \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"                               \
    "_-+=./:,@%"

void shell_quote(struct text *out, const char *word)
{
    if (*word && word[strspn(word, SAFE)] == '\0') {
        text_add(out, word);
        return;
    }
    text_add(out, "'");
    for (; *word; word++) {
        if (*word == '\'')
            text_add(out, "'\\''");
        else
            text_add_bytes(out, word, 1);
    }
    text_add(out, "'");
}

/* The reading end of the pipe, until the program closes its own. */
static int drain(int fd, size_t limit, struct text *out, struct err *err)
{
    char block[4096];
    size_t kept = 0;

    for (;;) {
        ssize_t n = read(fd, block, sizeof block);
        size_t keep;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_SYSTEM, "cannot read from a program: %s", strerror(errno));
        if (n == 0)
            return 0;
        keep = (size_t)n < limit - kept ? (size_t)n : limit - kept;
        text_add_bytes(out, block, keep);
        kept += keep;
    }
}

static int wait_for(pid_t pid, int *status, struct err *err)
{
    int raw;

    while (waitpid(pid, &raw, 0) < 0)
        if (errno != EINTR)
            return err_set(err, ERR_SYSTEM, "cannot wait for a program: %s", strerror(errno));
    *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    return 0;
}

static int spawn(char *const argv[], const struct shell_run *how, int out_fd, pid_t *pid)
{
    posix_spawn_file_actions_t act;
    int rc;

    posix_spawn_file_actions_init(&act);
    posix_spawn_file_actions_addopen(&act, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&act, out_fd, STDOUT_FILENO);
    if (how->with_stderr)
        posix_spawn_file_actions_adddup2(&act, out_fd, STDERR_FILENO);
    else
        posix_spawn_file_actions_addopen(&act, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (how->dir)
        posix_spawn_file_actions_addchdir_np(&act, how->dir);
    rc = posix_spawnp(pid, argv[0], &act, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&act);
    return rc;
}

int shell_capture(char *const argv[], const struct shell_run *how, struct text *out, int *status,
                  struct err *err)
{
    int ends[2];
    pid_t pid;
    int rc;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, ERR_SYSTEM, "%s: cannot make a pipe: %s", argv[0], strerror(errno));
    rc = spawn(argv, how, ends[1], &pid);
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        return err_set(err, rc == ENOENT ? ERR_MISSING : ERR_SYSTEM, "%s: cannot run: %s", argv[0],
                       strerror(rc));
    }
    rc = drain(ends[0], how->limit, out, err);
    close(ends[0]);
    if (wait_for(pid, status, err) < 0)
        rc = -1;
    return rc;
}
