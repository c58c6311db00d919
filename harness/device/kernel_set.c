/*
 * A kernel set. The file named like the wanted module is looked into first and, when it has the
 * entry, is the one that counts: others that have it too (of the sources, those that contain its
 * name are asked; of modules for a GPU, what shows in the file) are told of once. Otherwise all
 * files do, for the entry may be anywhere and must be there only once. Sources are compiled when
 * they are first looked into.
 */
#include "device/kernel_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "device/cuda_image.h"
#include "device/kernel_build.h"

#define FILE_LIMIT ((size_t)256 << 20)

struct set_file {
    char *name;            /* "gemm.cu" */
    size_t stem;           /* length of "gemm" */
    char *built;           /* what a source was compiled into; NULL before */
    char *text;            /* that is searched for names: see searched(); NULL before */
    struct module *module; /* NULL until it is loaded */
    double load_s;         /* what that took, until it counts */
};

struct kernel_set {
    struct device *device;
    const struct kernel_set *first; /* of the same files; NULL: this is it */
    char *dir;
    struct set_file *file;
    size_t nfiles, cap;
    double load_s;
    bool noted; /* once is enough */
    char note[512];
};

/* --- which files ------------------------------------------------------------------------------ */

static const char *suffix_of(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && dot != name ? dot : "";
}

static bool is_source(const char *name)
{
    return !strcmp(suffix_of(name), ".cu");
}

static bool wanted(enum device_kind kind, const char *name)
{
    static const char *const cpu[] = {".cu", ".so", NULL};
    static const char *const cuda[] = {".cu", ".cubin", ".fatbin", ".ptx", NULL};

    for (const char *const *s = kind == DEVICE_CPU ? cpu : cuda; *s; s++)
        if (!strcmp(suffix_of(name), *s))
            return true;
    return false;
}

static void file_path(const struct kernel_set *set, const char *name, struct text *out)
{
    text_init(out);
    text_addf(out, "%s/%s", set->dir, name);
}

static bool newer(const struct kernel_set *set, const char *a, const char *b)
{
    struct stat sa, sb;
    struct text pa, pb;
    bool known;

    file_path(set, a, &pa);
    file_path(set, b, &pb);
    known = stat(pa.data, &sa) == 0 && stat(pb.data, &sb) == 0;
    text_release(&pa);
    text_release(&pb);
    if (!known)
        return false;
    return sa.st_mtim.tv_sec != sb.st_mtim.tv_sec ? sa.st_mtim.tv_sec > sb.st_mtim.tv_sec
                                                  : sa.st_mtim.tv_nsec > sb.st_mtim.tv_nsec;
}

/* Of a source and a module built from it, side by side, the module counts unless the source is
   newer. Two built forms of one stem stay two files, whose entries then are there twice: an error
   that names both. */
static struct set_file *rival_of(struct kernel_set *set, const char *name, size_t stem)
{
    for (size_t i = 0; i < set->nfiles; i++) {
        struct set_file *f = &set->file[i];

        if (f->stem == stem && !strncmp(f->name, name, stem) &&
            is_source(f->name) != is_source(name))
            return f;
    }
    return NULL;
}

static int add_file(const char *name, void *ctx, struct err *err)
{
    struct kernel_set *set = ctx;
    size_t stem = (size_t)(suffix_of(name) - name);
    struct set_file *rival;

    (void)err;
    if (!wanted(device_info(set->device)->kind, name))
        return 0;
    rival = rival_of(set, name, stem);
    if (rival) {
        const char *source = is_source(name) ? name : rival->name;
        const char *built = is_source(name) ? rival->name : name;

        if (newer(set, source, built) == is_source(name)) {
            free(rival->name);
            rival->name = xstrdup(name);
        }
        return 0;
    }
    if (set->nfiles == set->cap) {
        set->cap = set->cap ? 2 * set->cap : 16;
        set->file = xrealloc(set->file, set->cap, sizeof *set->file);
    }
    set->file[set->nfiles++] = (struct set_file){.name = xstrdup(name), .stem = stem};
    return 0;
}

/* --- loading ---------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* f->built: compiled now, or before for the first set of the same files. */
static int compile(struct kernel_set *set, struct set_file *f, const char *path, struct err *err)
{
    const struct set_file *before = set->first ? &set->first->file[f - set->file] : NULL;
    struct text built;
    int rc;

    if (f->built)
        return 0;
    if (before && before->built) {
        f->built = xstrdup(before->built);
        return 0;
    }
    text_init(&built);
    rc = kernel_build(device_info(set->device)->kind, path, &built, err);
    if (!rc)
        f->built = xstrdup(built.data);
    text_release(&built);
    return rc;
}

/* Compiles (not counted as loading) and loads. The time counts once the file is wanted. */
static int load(struct kernel_set *set, struct set_file *f, struct err *err)
{
    struct text path;
    double begin;
    int rc = 0;

    if (f->module)
        return 0;
    file_path(set, f->name, &path);
    if (is_source(f->name))
        rc = compile(set, f, path.data, err);
    begin = now_s();
    if (!rc)
        rc = module_load(set->device, f->built ? f->built : path.data, &f->module, err);
    f->load_s += now_s() - begin;
    if (rc < 0 && f->built)
        err_context(err, "%s", path.data);
    text_release(&path);
    return rc;
}

static int load_wanted(struct kernel_set *set, struct set_file *f, struct err *err)
{
    int rc = load(set, f, err);

    set->load_s += f->load_s;
    f->load_s = 0;
    return rc;
}

/* What was built before is judged before any case runs: a file that is no module is bad input. */
static int load_built(struct kernel_set *set, struct err *err)
{
    for (size_t i = 0; i < set->nfiles; i++)
        if (!is_source(set->file[i].name) && load_wanted(set, &set->file[i], err) < 0)
            return -1;
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* `kernels/cpu` or `kernels/cuda` beside the binary, or, for the tests' binaries, one folder up. */
static int own_dir(enum device_kind kind, struct text *out, struct err *err)
{
    static const char *const up[] = {"", "/.."};
    const char *leaf = kind == DEVICE_CPU ? "cpu" : "cuda";
    struct text home;
    int rc = 0;

    text_init(&home);
    if (kernel_build_home(&home, err) < 0)
        rc = -1;
    for (size_t i = 0; !rc && i < sizeof up / sizeof *up; i++) {
        text_clear(out);
        text_addf(out, "%s%s/kernels/%s", home.data, up[i], leaf);
        if (file_exists(out->data))
            goto done;
    }
    if (!rc)
        rc = err_set(err, ERR_MISSING,
                     "no kernels/%s beside %s: run make%s, or give a folder with --kernels", leaf,
                     home.data, kind == DEVICE_CUDA ? " on a machine with nvcc" : "");
done:
    text_release(&home);
    return rc;
}

int kernel_set_open(struct device *dev, const char *dir, struct kernel_set **out, struct err *err)
{
    bool cpu = device_info(dev)->kind == DEVICE_CPU;
    struct kernel_set *set = xcalloc(1, sizeof *set);
    struct text own;
    int rc = 0;

    text_init(&own);
    set->device = dev;
    if (!dir)
        rc = own_dir(device_info(dev)->kind, &own, err);
    if (!rc) {
        set->dir = xstrdup(dir ? dir : own.data);
        rc = dir_each(set->dir, add_file, set, err);
    }
    if (!rc && !set->nfiles)
        rc = err_set(err, ERR_INPUT, "%s: no kernel file for device %s: it takes %s", set->dir,
                     device_info(dev)->spec, cpu ? ".cu and .so" : ".cu, .cubin, .fatbin and .ptx");
    if (!rc && cpu)
        rc = load_built(set, err);
    text_release(&own);
    if (rc < 0) {
        kernel_set_close(set);
        return -1;
    }
    *out = set;
    return 0;
}

int kernel_set_open_again(const struct kernel_set *first, struct kernel_set **out, struct err *err)
{
    struct kernel_set *set = xcalloc(1, sizeof *set);

    set->device = first->device;
    set->first = first;
    set->dir = xstrdup(first->dir);
    set->nfiles = set->cap = first->nfiles;
    set->file = xcalloc(set->nfiles, sizeof *set->file);
    for (size_t i = 0; i < set->nfiles; i++)
        set->file[i] =
            (struct set_file){.name = xstrdup(first->file[i].name), .stem = first->file[i].stem};
    if (device_info(set->device)->kind == DEVICE_CPU && load_built(set, err) < 0) {
        kernel_set_close(set);
        return -1;
    }
    *out = set;
    return 0;
}

void kernel_set_close(struct kernel_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->nfiles; i++) {
        module_unload(set->file[i].module);
        free(set->file[i].name);
        free(set->file[i].built);
        free(set->file[i].text);
    }
    free(set->file);
    free(set->dir);
    free(set);
}

double kernel_set_load_seconds(const struct kernel_set *set)
{
    return set->load_s;
}

/* --- finding ---------------------------------------------------------------------------------- */

static bool exports(struct set_file *f, const char *entry)
{
    for (const char *const *e = module_entries(f->module); *e; e++)
        if (!strcmp(*e, entry))
            return true;
    return false;
}

/* The first file with the module's own name. */
static struct set_file *named(struct kernel_set *set, const char *module)
{
    for (size_t i = 0; i < set->nfiles; i++)
        if (strlen(module) == set->file[i].stem &&
            !strncmp(set->file[i].name, module, set->file[i].stem))
            return &set->file[i];
    return NULL;
}

static bool is_name_part(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The text of a source; of a module for a GPU, the entries that show. Of what cannot be read,
   nothing: when it is wanted for an entry of its own, that is told. */
static const char *searched(struct kernel_set *set, struct set_file *f)
{
    struct text path, bytes, names;
    struct err unread = ERR_INIT;

    if (f->text)
        return f->text;
    text_init(&bytes);
    text_init(&names);
    file_path(set, f->name, &path);
    if (file_read(path.data, FILE_LIMIT, &bytes, &unread) == 0 && !is_source(f->name) &&
        cuda_image_check(path.data, bytes.data, bytes.len, &unread) == 0)
        cuda_image_entries(bytes.data, bytes.len, &names);
    f->text = xstrdup(is_source(f->name) ? bytes.data : names.data);
    text_release(&path);
    text_release(&bytes);
    text_release(&names);
    return f->text;
}

/* Whether the searched text contains the name, as a word. */
static bool mentions(struct kernel_set *set, struct set_file *f, const char *entry)
{
    const char *text = searched(set, f);
    size_t n = strlen(entry);

    for (const char *at = text; (at = strstr(at, entry)) != NULL; at += n)
        if ((at == text || !is_name_part(at[-1])) && !is_name_part(at[n]))
            return true;
    return false;
}

/* Whether another file has the entry, too. A module for a GPU is not loaded to look: that may mean
   compiling PTX, and changes where others lie in the GPU's memory. What it holds compressed is seen
   once it is loaded. A source that cannot be compiled is told of when it is wanted itself. */
static bool rivals(struct kernel_set *set, struct set_file *f, const char *entry)
{
    struct err unloaded = ERR_INIT;

    if (!f->module && !mentions(set, f, entry))
        return false;
    if (!f->module && !is_source(f->name))
        return true;
    return load(set, f, &unloaded) == 0 && exports(f, entry);
}

/* Writes down another file that has the entry that `f` has. */
static void note_others(struct kernel_set *set, const struct set_file *f, const char *entry)
{
    for (size_t i = 0; i < set->nfiles && !set->noted; i++) {
        struct set_file *other = &set->file[i];

        if (other == f || !rivals(set, other, entry))
            continue;
        set->noted = true;
        snprintf(set->note, sizeof set->note,
                 "%s: kernel %s is in both %s and %s: the one in %s counts, by its file's name",
                 set->dir, entry, f->name, other->name, f->name);
    }
}

static int find_anywhere(struct kernel_set *set, const char *module, const char *entry,
                         struct set_file **out, struct err *err)
{
    *out = NULL;
    for (size_t i = 0; i < set->nfiles; i++) {
        struct set_file *f = &set->file[i];

        if (load_wanted(set, f, err) < 0)
            return -1;
        if (!exports(f, entry))
            continue;
        if (*out)
            return err_set(err, ERR_INPUT,
                           "%s: kernel %s is in both %s and %s, and neither is named %s", set->dir,
                           entry, (*out)->name, f->name, module);
        *out = f;
    }
    if (*out)
        return 0;
    return err_set(err, ERR_MISSING, "kernel %s (module %s) is in no file of %s", entry, module,
                   set->dir);
}

int kernel_set_find(struct kernel_set *set, const char *module, const char *entry,
                    struct kernel **out, struct err *err)
{
    struct set_file *f = named(set, module);

    if (f && load_wanted(set, f, err) < 0)
        return -1;
    if (f && exports(f, entry)) {
        if (!set->first)
            note_others(set, f, entry);
    } else if (find_anywhere(set, module, entry, &f, err) < 0) {
        return -1;
    }
    return module_kernel(f->module, entry, out, err);
}

bool kernel_set_note(struct kernel_set *set, char *out, size_t n)
{
    bool there = set->note[0] != '\0';

    if (there)
        snprintf(out, n, "%s", set->note);
    set->note[0] = '\0';
    return there;
}
