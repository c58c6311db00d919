#include "measure/static_resources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/kernel_build.h"

#define LOG_MAX_BYTES ((size_t)16 << 20)

void resources_init(struct resources *r)
{
    memset(r, 0, sizeof *r);
}

void resources_release(struct resources *r)
{
    free(r->items);
    resources_init(r);
}

static struct resources_record *append(struct resources *r)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 32;
        r->items = xrealloc(r->items, r->capacity, sizeof *r->items);
    }
    memset(&r->items[r->count], 0, sizeof *r->items);
    return &r->items[r->count++];
}

const struct resources_record *resources_find(const struct resources *r, const char *entry,
                                              const char *arch)
{
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->items[i].entry, entry) && !strcmp(r->items[i].arch, arch))
            return &r->items[i];
    return NULL;
}

/* --- the assembler's log ---------------------------------------------------------------------- */

/*
 * Of an entry it says, with ptxas -v:
 *
 *     ptxas info    : Compiling entry function 'NAME' for 'sm_121'
 *     ptxas info    : Function properties for NAME
 *         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *     ptxas info    : Used 40 registers, used 1 barriers, 4096 bytes smem, 400 bytes cmem[0]
 *
 * Properties of functions that were not inlined come in between, under their own names.
 */
struct log_reader {
    struct resources *list;
    const char *module, *content;
    struct resources_record *open; /* its "Used" line is still to come */
    bool own_properties;           /* the next line tells of the open entry */
};

/* The number before " <what>" in the line, 0 when the line has none. */
static uint32_t number_before(const char *line, const char *what)
{
    const char *p = strstr(line, what);

    if (!p || p == line || p[-1] != ' ')
        return 0;
    for (p--; p > line && p[-1] >= '0' && p[-1] <= '9';)
        p--;
    return (uint32_t)strtoul(p, NULL, 10);
}

static int read_entry(struct log_reader *l, const char *quoted, struct err *err)
{
    char entry[128], arch[16];

    if (l->open)
        return err_set(err, ERR_INPUT, "%s: the log says nothing of the registers of %s", l->module,
                       l->open->entry);
    if (sscanf(quoted, "'%127[^']' for '%15[^']'", entry, arch) != 2)
        return err_set(err, ERR_INPUT, "%s: cannot read \"%s\" in the assembler's log", l->module,
                       quoted);
    l->open = append(l->list);
    snprintf(l->open->module, sizeof l->open->module, "%s", l->module);
    snprintf(l->open->content, sizeof l->open->content, "%s", l->content);
    memcpy(l->open->entry, entry, sizeof entry);
    memcpy(l->open->arch, arch, sizeof arch);
    return 0;
}

static int read_line(struct log_reader *l, const char *line, struct err *err)
{
    static const char compiling[] = "Compiling entry function ";
    static const char properties[] = "Function properties for ";
    const char *p;

    if ((p = strstr(line, compiling)) != NULL)
        return read_entry(l, p + strlen(compiling), err);
    if (!l->open)
        return 0;
    if ((p = strstr(line, properties)) != NULL) {
        l->own_properties = !strcmp(p + strlen(properties), l->open->entry);
    } else if (strstr(line, "bytes stack frame")) {
        if (l->own_properties) {
            l->open->stack_bytes = number_before(line, "bytes stack frame");
            l->open->spill_store_bytes = number_before(line, "bytes spill stores");
            l->open->spill_load_bytes = number_before(line, "bytes spill loads");
        }
        l->own_properties = false;
    } else if ((p = strstr(line, ": Used ")) != NULL) {
        l->open->registers = number_before(p, "registers");
        l->open->static_shared = number_before(p, "bytes smem");
        if (!l->open->registers)
            return err_set(err, ERR_INPUT, "%s: cannot read \"%s\" in the assembler's log",
                           l->module, line);
        l->open = NULL;
    }
    return 0;
}

int resources_parse(struct resources *r, const char *log, const char *module, const char *content,
                    struct err *err)
{
    struct log_reader l = {.list = r, .module = module, .content = content};
    char *copy = xstrdup(log), *line, *next;
    int rc = 0;

    for (line = copy; rc == 0 && line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        rc = read_line(&l, line, err);
    }
    if (rc == 0 && l.open)
        rc = err_set(err, ERR_INPUT, "%s: the log says nothing of the registers of %s", module,
                     l.open->entry);
    free(copy);
    return rc;
}

/* --- a set ------------------------------------------------------------------------------------ */

struct collection {
    struct resources *list;
    const char *dir;
    unsigned logs;
};

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);

    return n > k && !strcmp(name + n - k, suffix);
}

/* `path` is a fatbin; its log lies beside it. */
static int read_log(struct collection *c, const char *path, struct err *err)
{
    const char *name = path_last(path);
    char module[64], content[HASH_HEX];
    struct text log, log_path;
    struct hash hash;
    int rc = -1;

    snprintf(module, sizeof module, "%.*s", (int)(strlen(name) - strlen(".fatbin")), name);
    text_init(&log);
    text_init(&log_path);
    text_addf(&log_path, "%.*s.ptxas", (int)(strlen(path) - strlen(".fatbin")), path);
    if (!file_exists(log_path.data)) {
        err_set(err, ERR_MISSING,
                "%s: no log of the assembler beside it: build it with scripts/build-cuda-module",
                path);
    } else if (!hash_file(path, &hash, err) &&
               !file_read(log_path.data, LOG_MAX_BYTES, &log, err)) {
        hash_hex(hash, content);
        rc = resources_parse(c->list, log.data, module, content, err);
        c->logs++;
    }
    text_release(&log);
    text_release(&log_path);
    return rc;
}

static int visit(const char *name, void *ctx, struct err *err)
{
    struct collection *c = ctx;
    struct text path;
    int rc = 0;

    text_init(&path);
    text_addf(&path, "%s/%s", c->dir, name);
    if (has_suffix(name, ".fatbin")) {
        rc = read_log(c, path.data, err);
    } else if (has_suffix(name, ".cu")) {
        struct text built;

        text_init(&built);
        rc = kernel_build(DEVICE_CUDA, path.data, &built, err);
        if (rc == 0)
            rc = read_log(c, built.data, err);
        text_release(&built);
    }
    text_release(&path);
    return rc;
}

int resources_collect(struct resources *r, const char *kernels_dir, struct err *err)
{
    struct collection c = {.list = r, .dir = kernels_dir};
    struct text own;
    int rc = 0;

    text_init(&own);
    if (!kernels_dir) {
        rc = kernel_build_home(&own, err);
        text_add(&own, "/kernels/cuda");
        c.dir = own.data;
        if (rc == 0 && !file_exists(c.dir))
            rc = err_set(err, ERR_MISSING,
                         "no kernels were built for CUDA: install nvcc and run make");
    }
    if (rc == 0)
        rc = dir_each(c.dir, visit, &c, err);
    if (rc == 0 && !c.logs)
        rc = err_set(err, ERR_MISSING,
                     kernels_dir ? "%s: no .cu or .fatbin in it"
                                 : "%s: no kernel built for CUDA: install nvcc and run make",
                     c.dir);
    text_release(&own);
    return rc;
}
