#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define READ_BLOCK 65536

/* --- reading ---------------------------------------------------------------------------------- */

static int read_all(int fd, const char *path, size_t limit, struct text *out, struct err *err)
{
    char *block = xcalloc(READ_BLOCK, 1);
    size_t total = 0;
    int rc = 0;

    for (;;) {
        ssize_t n = read(fd, block, READ_BLOCK);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = err_set(err, ERR_INPUT, "%s: cannot read: %s", path, strerror(errno));
        if (n <= 0)
            break;
        total += (size_t)n;
        if (total > limit) {
            rc = err_set(err, ERR_INPUT, "%s: longer than the limit of %zu bytes", path, limit);
            break;
        }
        text_add_bytes(out, block, (size_t)n);
    }
    free(block);
    return rc;
}

int file_read(const char *path, size_t limit, struct text *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    int rc;

    if (fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        rc = err_set(err, ERR_INPUT, "%s: is a directory, a file is needed", path);
    else
        rc = read_all(fd, path, limit, out, err);
    close(fd);
    return rc;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool same_inode(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

const char *path_last(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* The folder part of a path; "." when it has none. free() it. */
static char *parent_of(const char *path)
{
    char *copy = xstrdup(path);
    char *slash = strrchr(copy, '/');

    if (slash == copy) {
        slash[1] = '\0';
    } else if (slash) {
        *slash = '\0';
    } else {
        free(copy);
        copy = xstrdup(".");
    }
    return copy;
}

bool file_same(const char *a, const char *b)
{
    char *above_a = parent_of(a), *above_b = parent_of(b);
    bool same = strcmp(a, b) == 0 || same_inode(a, b);

    if (!same && !file_exists(a) && !file_exists(b))
        same = strcmp(path_last(a), path_last(b)) == 0 && same_inode(above_a, above_b);
    free(above_a);
    free(above_b);
    return same;
}

/* A rename or a new file is durable only when its directory is synced too. Some file systems
   refuse to sync a directory; the file itself is safe then, so that is not an error. */
static void sync_parent(const char *path)
{
    char *parent = parent_of(path);
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(parent);
}

/* Opens the file that takes the place of `path` later; `tmp` gets its name. */
static int open_beside(const char *path, struct text *tmp, struct err *err)
{
    int fd;

    text_addf(tmp, "%s.tmp.%ld", path, (long)getpid());
    fd = open(tmp->data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd < 0 ? err_set(err, ERR_INPUT, "%s: cannot create: %s", path, strerror(errno)) : fd;
}

/* "/dev/stdout" and the like: a link to an open file of this process. What lies behind it may be a
   regular file, yet to replace it would replace the link, for every other process, too. */
static bool names_stream(const char *path)
{
    static const char proc[] = "/proc/";
    char target[sizeof proc];
    ssize_t n = readlink(path, target, sizeof target);

    return n >= (ssize_t)strlen(proc) && memcmp(target, proc, strlen(proc)) == 0;
}

int file_refuse_special(const char *path, struct err *err)
{
    struct stat st;
    bool there = stat(path, &st) == 0;

    if (there && S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT, "%s: is a directory: name a file", path);
    if ((there && !S_ISREG(st.st_mode)) || names_stream(path))
        return err_set(err, ERR_INPUT, "%s: is not a regular file: name another", path);
    return 0;
}

int file_writable(const char *path, struct err *err)
{
    struct text tmp;
    int fd;

    if (dir_make_parent(path, err) < 0 || file_refuse_special(path, err) < 0)
        return -1;
    text_init(&tmp);
    fd = open_beside(path, &tmp, err);
    if (fd >= 0) {
        close(fd);
        unlink(tmp.data);
    }
    text_release(&tmp);
    return fd < 0 ? -1 : 0;
}

int file_replace(const char *path, const void *bytes, size_t n, struct err *err)
{
    struct text tmp;
    int fd = -1;
    int rc = -1;

    if (file_refuse_special(path, err) < 0)
        return -1;
    text_init(&tmp);
    fd = open_beside(path, &tmp, err);
    if (fd < 0)
        goto done;
    if (write_all(fd, bytes, n) < 0 || fsync(fd) < 0) {
        err_set(err, ERR_SYSTEM, "%s: cannot write: %s", path, strerror(errno));
        goto done;
    }
    if (rename(tmp.data, path) < 0) {
        err_set(err, ERR_INPUT, "%s: cannot replace: %s", path, strerror(errno));
        goto done;
    }
    sync_parent(path);
    rc = 0;
done:
    if (fd >= 0) {
        close(fd);
        if (rc < 0)
            unlink(tmp.data);
    }
    text_release(&tmp);
    return rc;
}

int file_append_sync(const char *path, const void *bytes, size_t n, struct err *err)
{
    bool fresh = !file_exists(path);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    struct stat before;
    int rc = 0;

    if (fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot open for appending: %s", path, strerror(errno));
    if (fstat(fd, &before) < 0) {
        rc = err_set(err, ERR_SYSTEM, "%s: cannot stat: %s", path, strerror(errno));
    } else if (write_all(fd, bytes, n) < 0 || fsync(fd) < 0) {
        rc = err_set(err, ERR_SYSTEM, "%s: cannot append: %s", path, strerror(errno));
        /* A full disk took a part of the line: take it back, what was there stays readable. */
        if (S_ISREG(before.st_mode) && ftruncate(fd, before.st_size) < 0)
            err_context(err, "%s: a partial line was left", path);
    }
    close(fd);
    if (rc == 0 && fresh)
        sync_parent(path);
    return rc;
}

/* --- directories ------------------------------------------------------------------------------ */

static int make_one(const char *path, struct err *err)
{
    struct stat st;

    if (mkdir(path, 0777) == 0)
        return 0;
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, ERR_INPUT, "%s: cannot make the directory: %s", path,
                   errno == EEXIST ? "a file of that name exists" : strerror(errno));
}

int dir_make(const char *path, struct err *err)
{
    char *copy = xstrdup(path);
    int rc = 0;

    for (char *p = copy + 1; rc == 0 && *copy && *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        rc = make_one(copy, err);
        *p = '/';
    }
    if (rc == 0)
        rc = make_one(copy, err);
    free(copy);
    return rc;
}

int dir_make_parent(const char *path, struct err *err)
{
    char *parent = parent_of(path);
    int rc = dir_make(parent, err);

    free(parent);
    return rc;
}

int dir_writable(const char *path, struct err *err)
{
    struct text inside, tmp;
    int fd = -1;

    text_init(&inside);
    text_init(&tmp);
    text_addf(&inside, "%s/", path);
    if (dir_make(path, err) == 0)
        fd = open_beside(inside.data, &tmp, err);
    if (fd >= 0) {
        close(fd);
        unlink(tmp.data);
    }
    text_release(&inside);
    text_release(&tmp);
    return fd < 0 ? -1 : 0;
}

static int by_bytes(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;

    return strcmp(*x, *y);
}

/* A link to nowhere counts: to pass it over would lose a file without a word. */
static bool is_file(DIR *dir, const char *name)
{
    struct stat st;

    if (fstatat(dirfd(dir), name, &st, 0) == 0)
        return S_ISREG(st.st_mode);
    return fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

int dir_each(const char *path, int (*visit)(const char *name, void *ctx, struct err *err),
             void *ctx, struct err *err)
{
    DIR *dir = opendir(path);
    char **names = NULL;
    size_t count = 0;
    int rc = 0;

    if (!dir)
        return err_set(err, ERR_INPUT, "%s: cannot read the directory: %s", path, strerror(errno));
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (!is_file(dir, d->d_name))
            continue;
        names = xrealloc(names, count + 1, sizeof *names);
        names[count++] = xstrdup(d->d_name);
    }
    closedir(dir);
    if (count)
        qsort(names, count, sizeof *names, by_bytes);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = visit(names[i], ctx, err) < 0 ? -1 : 0;
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return rc;
}
