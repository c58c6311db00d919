/*
 * Writing records. One line is built in memory, appended in one write and synced; what is on disk
 * is always whole lines, but for one that a crash cut off, which the next store_open removes.
 */
#include "record/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/schema.h"

struct store {
    char *path;
    int lock; /* open and locked until store_close() */
    char run[HASH_HEX];
    struct text line; /* kept between records: benches have long ones */
};

/* How every line begins. */
#define LINE_START "{\"schema\":"

/* --- lines ------------------------------------------------------------------------------------ */

static void line_begin(struct store *s, const char *type)
{
    text_clear(&s->line);
    text_addf(&s->line, LINE_START "%d,\"type\":\"%s\",\"run\":\"%s\",", RECORD_SCHEMA, type,
              s->run);
}

static int line_end(struct store *s, struct err *err)
{
    text_add(&s->line, "}\n");
    return file_append_sync(s->path, s->line.data, s->line.len, err);
}

/* `,"key":[{...},{...}]` */
static void add_objects(struct text *out, const char *key, const struct field *table,
                        const void *objects, size_t stride, size_t count)
{
    text_addf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++) {
        text_add(out, i ? ",{" : "{");
        codec_write(out, table, (const char *)objects + i * stride);
        text_add(out, "}");
    }
    text_add(out, "]");
}

int store_verify(struct store *s, const struct verify_record *r, struct err *err)
{
    line_begin(s, "verify");
    codec_write(&s->line, schema_verify, r);
    add_objects(&s->line, "outputs", schema_output, r->output, sizeof r->output[0], r->noutputs);
    add_objects(&s->line, "kernels", schema_kernel, r->kernel, sizeof r->kernel[0], r->nkernels);
    return line_end(s, err);
}

int store_bench(struct store *s, const struct bench_record *r, struct err *err)
{
    line_begin(s, "bench");
    codec_write(&s->line, schema_bench, r);
    text_add(&s->line, ",\"samples\":{");
    codec_write_columns(&s->line, schema_sample, r->sample, sizeof r->sample[0], r->nsamples);
    text_add(&s->line, "}");
    add_objects(&s->line, "kernels", schema_kernel, r->kernel, sizeof r->kernel[0], r->nkernels);
    return line_end(s, err);
}

int store_ceiling(struct store *s, const struct ceiling_record *r, struct err *err)
{
    line_begin(s, "ceiling");
    codec_write(&s->line, schema_ceiling, r);
    return line_end(s, err);
}

int store_resources(struct store *s, const struct resources_record *r, struct err *err)
{
    line_begin(s, "resources");
    codec_write(&s->line, schema_resources, r);
    return line_end(s, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The offset just behind the last newline of the open file; -1 on a read error. */
static off_t end_of_lines(int fd, off_t size)
{
    char block[4096];

    while (size > 0) {
        off_t start = size > (off_t)sizeof block ? size - (off_t)sizeof block : 0;
        ssize_t n = pread(fd, block, (size_t)(size - start), start);

        if (n <= 0)
            return -1;
        for (ssize_t i = n; i > 0; i--)
            if (block[i - 1] == '\n')
                return start + i;
        size = start;
    }
    return 0;
}

/* True when the bytes at `at` begin one of our lines, or are the beginning of such a
   beginning. */
static bool looks_ours(int fd, off_t at)
{
    char head[sizeof LINE_START - 1];
    ssize_t n = pread(fd, head, sizeof head, at);

    return n > 0 && memcmp(head, LINE_START, (size_t)n) == 0;
}

static int refuse_foreign(const char *path, struct err *err)
{
    return err_set(err, ERR_INPUT, "%s: holds something else than results; choose another --out",
                   path);
}

/* An existing file: its length and that of its whole lines; refuses what is not ours. */
static int look(int fd, const char *path, off_t *size, off_t *whole, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || (*whole = end_of_lines(fd, st.st_size)) < 0)
        return err_set(err, ERR_SYSTEM, "%s: cannot read: %s", path, strerror(errno));
    *size = st.st_size;
    if (st.st_size > 0 && (!looks_ours(fd, 0) || (*whole < *size && !looks_ours(fd, *whole))))
        return refuse_foreign(path, err);
    return 0;
}

/* Cuts off a last line without its newline. */
static int mend(int fd, const char *path, struct err *err)
{
    off_t size, whole;

    if (look(fd, path, &size, &whole, err) < 0)
        return -1;
    if (whole < size && (ftruncate(fd, whole) < 0 || fsync(fd) < 0))
        return err_set(err, ERR_SYSTEM, "%s: cannot cut off an unfinished line: %s", path,
                       strerror(errno));
    return 0;
}

/* The workers of a run that was killed hold its lock a moment longer. */
#define LOCK_TRIES    20
#define LOCK_PAUSE_NS 50000000L

/* Locks an open file, where the file system has locks. The lock stands on the file, not its name:
   refuse one that was removed meanwhile. */
static int lock_file(int fd, const char *path, struct err *err)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    struct stat ours, there;
    int rc = flock(fd, LOCK_EX | LOCK_NB);

    for (int i = 0; i < LOCK_TRIES && rc < 0 && errno == EWOULDBLOCK; i++) {
        nanosleep(&pause, NULL);
        rc = flock(fd, LOCK_EX | LOCK_NB);
    }
    bool same = fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
                ours.st_dev == there.st_dev;
    if ((rc < 0 && errno == EWOULDBLOCK) || !same)
        return err_set(err, ERR_INPUT,
                       "%s: another run is writing it; wait for it or choose another --out", path);
    return 0;
}

/* Makes the file, with its folder, when it is absent, locks and mends it. */
static int take(const char *path, int *fd, struct err *err)
{
    if (dir_make_parent(path, err) < 0 || file_refuse_special(path, err) < 0 ||
        file_append_sync(path, "", 0, err) < 0)
        return -1;
    *fd = open(path, O_RDWR | O_CLOEXEC);
    if (*fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
    return lock_file(*fd, path, err) < 0 ? -1 : mend(*fd, path, err);
}

/* Removes what was made to see whether it can be; behind a link that led nowhere, too. */
static void remove_empty(int fd, const char *path)
{
    char *real = realpath(path, NULL);
    struct stat st;

    if (real && fstat(fd, &st) == 0 && st.st_size == 0)
        unlink(real);
    free(real);
}

int store_check(const char *path, struct err *err)
{
    bool fresh = !file_exists(path);
    off_t size, whole;
    int fd, rc;

    if (dir_make_parent(path, err) < 0 || file_refuse_special(path, err) < 0)
        return -1;
    fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot open for appending: %s", path, strerror(errno));
    rc = lock_file(fd, path, err);
    if (rc == 0)
        rc = look(fd, path, &size, &whole, err);
    if (fresh)
        remove_empty(fd, path);
    close(fd);
    return rc;
}

static int discard(int fd, const char *path, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set(err, ERR_SYSTEM, "%s: cannot stat: %s", path, strerror(errno));
    if (st.st_size > 0 && !looks_ours(fd, 0))
        return refuse_foreign(path, err);
    if (lock_file(fd, path, err) < 0)
        return -1;
    if (unlink(path) < 0)
        return err_set(err, ERR_INPUT, "%s: cannot replace: %s", path, strerror(errno));
    return 0;
}

int store_discard(const char *path, struct err *err)
{
    int fd, rc;

    if (file_refuse_special(path, err) < 0)
        return -1;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* should it become a pipe just now */
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_set(err, ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
    rc = discard(fd, path, err);
    close(fd);
    return rc;
}

/* Two runs never share an id: time to the nanosecond and process. */
static void name_run(const struct provenance *prov, char out[HASH_HEX])
{
    struct timespec now;
    struct text seed;

    clock_gettime(CLOCK_REALTIME, &now);
    text_init(&seed);
    text_addf(&seed, "%s|%lld.%09ld|%ld", prov->argv, (long long)now.tv_sec, now.tv_nsec,
              (long)getpid());
    hash_hex(hash_bytes(seed.data, seed.len), out);
    text_release(&seed);
}

int store_open(const char *path, const struct provenance *prov, const struct device_stamp *dev,
               struct store **out, struct err *err)
{
    struct store *s = xcalloc(1, sizeof *s);

    s->path = xstrdup(path);
    s->lock = -1;
    text_init(&s->line);
    name_run(prov, s->run);
    if (take(path, &s->lock, err) < 0)
        goto fail;
    line_begin(s, "run");
    codec_write(&s->line, schema_provenance, prov);
    text_add(&s->line, ",\"device\":{");
    codec_write(&s->line, schema_device, dev);
    text_add(&s->line, "}");
    if (line_end(s, err) < 0)
        goto fail;
    *out = s;
    return 0;
fail:
    store_close(s);
    return -1;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    if (s->lock >= 0)
        close(s->lock);
    text_release(&s->line);
    free(s->path);
    free(s);
}
