/*
 * The cache: <folder>/<key>/<stem>.so (or .fatbin), its make-style list of prerequisites <stem>.d,
 * and `inputs`, which holds the content hash of each prerequisite. The key covers the source's path
 * and text, the script and the compiler's version; an entry counts only while all inputs still have
 * their hashes.
 */
#include "device/kernel_build.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/shell.h"
#include "device/cpu/cpu_sanitizer.h"

#define DEPS_LIMIT   (1u << 20)  /* bytes of a list of prerequisites */
#define SOURCE_LIMIT (64u << 20) /* bytes of a source file */

struct build {
    enum device_kind kind;
    char source[PATH_MAX]; /* absolute */
    char stem[256];
    char root[PATH_MAX]; /* where scripts/ lies */
    struct text script, folder, module, deps, inputs;
};

int kernel_build_home(struct text *out, struct err *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    if (n < 0)
        return err_set(err, ERR_SYSTEM, "/proc/self/exe: %s", strerror(errno));
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    text_add(out, path);
    return 0;
}

/* The checkout: the folder above the binary's, or, for the tests' binaries, the one above that. */
static int find_scripts(struct build *b, struct err *err)
{
    const char *name = b->kind == DEVICE_CPU ? "build-cpu-module" : "build-cuda-module";
    static const char *const up[] = {"/..", "/../.."};
    struct text home, path;
    int found = 0;

    text_init(&home);
    text_init(&path);
    if (kernel_build_home(&home, err) < 0)
        found = -1;
    for (size_t i = 0; !found && i < sizeof up / sizeof *up; i++) {
        text_clear(&path);
        text_addf(&path, "%s%s/scripts/%s", home.data, up[i], name);
        if (access(path.data, X_OK) == 0) {
            text_add(&b->script, path.data);
            path.data[strlen(path.data) - strlen("/scripts/") - strlen(name)] = '\0';
            found = realpath(path.data, b->root) != NULL;
        }
    }
    if (!found)
        err_set(err, ERR_MISSING,
                "%s: compiling it needs scripts/%s, which is not above %s; give a built module "
                "instead",
                b->source, name, home.data);
    text_release(&home);
    text_release(&path);
    return found == 1 ? 0 : -1;
}

/* --- the key ---------------------------------------------------------------------------------- */

/* What the compiler says of itself; nothing when it is not there, which the build will report. */
static struct hash compiler_hash(const struct build *b)
{
    const char *name = getenv(b->kind == DEVICE_CPU ? "CXX" : "NVCC");
    char *argv[] = {NULL, NULL, NULL};
    char flag[] = "--version", fallback[] = "g++", nvcc[] = "nvcc", chosen[256];
    struct shell_run how = {.limit = 4096};
    struct err ignored = ERR_INIT;
    struct text said;
    struct hash h;
    int status;

    if (!name || !*name || strlen(name) >= sizeof chosen)
        name = b->kind == DEVICE_CPU ? fallback : nvcc;
    strcpy(chosen, name);
    argv[0] = chosen;
    argv[1] = flag;
    text_init(&said);
    text_add(&said, chosen);
    (void)shell_capture(argv, &how, &said, &status, &ignored);
    h = hash_bytes(said.data, said.len);
    text_release(&said);
    return h;
}

static struct hash environment_hash(void)
{
    static const char *const names[] = {"OPT", "CC", "NOFMA"};
    struct hash h = hash_bytes(CPU_SANITIZER, strlen(CPU_SANITIZER));

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);

        h = hash_join(h, hash_bytes(value ? value : "", value ? strlen(value) : 0));
    }
    return h;
}

static int cache_folder(struct text *out, struct err *err)
{
    const char *base = getenv("XDG_CACHE_HOME");

    if (base && base[0] == '/') {
        text_addf(out, "%s/deltarig", base);
        return 0;
    }
    if (kernel_build_home(out, err) < 0)
        return -1;
    text_add(out, "/cache");
    return 0;
}

static int name_files(struct build *b, struct err *err)
{
    const char *suffix = b->kind == DEVICE_CPU ? "so" : "fatbin";
    struct hash h = hash_bytes(b->source, strlen(b->source)), part;
    char hex[HASH_HEX];

    if (hash_file(b->source, &part, err) < 0)
        return -1;
    h = hash_join(h, part);
    if (hash_file(b->script.data, &part, err) < 0)
        return -1;
    h = hash_join(hash_join(h, part), hash_join(compiler_hash(b), environment_hash()));
    hash_hex(h, hex);
    if (cache_folder(&b->folder, err) < 0)
        return -1;
    text_addf(&b->folder, "/%s", hex);
    text_addf(&b->module, "%s/%s.%s", b->folder.data, b->stem, suffix);
    text_addf(&b->deps, "%s/%s.d", b->folder.data, b->stem);
    text_addf(&b->inputs, "%s/inputs", b->folder.data);
    return 0;
}

/* --- prerequisites ---------------------------------------------------------------------------- */

/* The next prerequisite of a make-style list into `word`; where the list goes on, or NULL. */
static const char *next_word(const char *s, struct text *word)
{
    text_clear(word);
    while (*s == ' ' || *s == '\n' || (*s == '\\' && s[1] == '\n'))
        s++;
    for (; *s && *s != ' ' && *s != '\n'; s++) {
        if (*s == '\\' && s[1] == ' ')
            s++;
        else if (*s == '$' && s[1] == '$')
            s++;
        text_add_bytes(word, s, 1);
    }
    return word->len ? s : NULL;
}

/* One "<hash> <path>" line per prerequisite. A path that is not absolute is relative to the
   checkout. */
static int describe_inputs(const struct build *b, struct text *out, struct err *err)
{
    struct text deps, word;
    const char *s;
    int rc = -1;

    text_init(&deps);
    text_init(&word);
    if (file_read(b->deps.data, DEPS_LIMIT, &deps, err) < 0)
        goto done;
    s = strstr(deps.data, ": ");
    for (s = s ? s + 1 : ""; (s = next_word(s, &word)) != NULL;) {
        char hex[HASH_HEX];
        struct text path;
        struct hash h;
        int failed;

        if (word.data[word.len - 1] == ':') /* the empty rules that -MP adds */
            break;
        text_init(&path);
        text_addf(&path, "%s%s%s", word.data[0] == '/' ? "" : b->root,
                  word.data[0] == '/' ? "" : "/", word.data);
        failed = hash_file(path.data, &h, err);
        text_release(&path);
        if (failed < 0)
            goto done;
        hash_hex(h, hex);
        text_addf(out, "%s %s\n", hex, word.data);
    }
    rc = 0;
done:
    text_release(&deps);
    text_release(&word);
    return rc;
}

static bool up_to_date(const struct build *b)
{
    struct err ignored = ERR_INIT;
    struct text now, then;
    bool same;

    text_init(&now);
    text_init(&then);
    same = file_exists(b->module.data) &&
           file_read(b->inputs.data, DEPS_LIMIT, &then, &ignored) == 0 &&
           describe_inputs(b, &now, &ignored) == 0 && strcmp(now.data, then.data) == 0;
    text_release(&now);
    text_release(&then);
    return same;
}

/* --- building --------------------------------------------------------------------------------- */

static int compile(const struct build *b, struct err *err)
{
    char option[] = "--sanitize", sanitizer[] = CPU_SANITIZER;
    char *argv[] = {b->script.data, (char *)(uintptr_t)b->source,
                    b->module.data, CPU_SANITIZED && b->kind == DEVICE_CPU ? option : NULL,
                    sanitizer,      NULL};
    struct shell_run how = {.limit = 4096, .with_stderr = 1};
    struct text said, inputs;
    int status, rc;

    text_init(&said);
    text_init(&inputs);
    rc = dir_make(b->folder.data, err);
    if (!rc)
        rc = shell_capture(argv, &how, &said, &status, err);
    if (!rc && status != 0) {
        said.data[strcspn(said.data, "\n")] = '\0';
        rc = err_set(err, status == 2 ? ERR_MISSING : ERR_INPUT, "%s does not compile: %s",
                     b->source, said.data[0] ? said.data : "the compiler said nothing");
    }
    if (!rc)
        rc = describe_inputs(b, &inputs, err);
    if (!rc)
        rc = file_replace(b->inputs.data, inputs.data, inputs.len, err);
    text_release(&said);
    text_release(&inputs);
    return rc;
}

static int resolve(struct build *b, const char *source, struct err *err)
{
    const char *name;

    if (!realpath(source, b->source))
        return err_set(err, ERR_INPUT, "%s: %s", source, strerror(errno));
    name = strrchr(b->source, '/') + 1;
    if (strlen(name) >= sizeof b->stem)
        return err_set(err, ERR_INPUT, "%s: name too long", source);
    strcpy(b->stem, name);
    *strrchr(b->stem, '.') = '\0';
    if (find_scripts(b, err) < 0)
        return -1;
    return name_files(b, err);
}

int kernel_build(enum device_kind kind, const char *source, struct text *out, struct err *err)
{
    struct build b = {.kind = kind};
    int rc;

    text_init(&b.script);
    text_init(&b.folder);
    text_init(&b.module);
    text_init(&b.deps);
    text_init(&b.inputs);
    rc = resolve(&b, source, err);
    if (!rc && !up_to_date(&b))
        rc = compile(&b, err);
    if (!rc)
        text_add(out, b.module.data);
    text_release(&b.script);
    text_release(&b.folder);
    text_release(&b.module);
    text_release(&b.deps);
    text_release(&b.inputs);
    return rc;
}
