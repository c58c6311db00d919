/*
 * Errors as values. A function that can fail takes `struct err *err` last, returns 0 or -1, and
 * on -1 has described the failure in `err`. Callers add context and pass it up; only the command
 * line prints. There is no global error state, so every function here is safe on any thread.
 *
 *     if (device_alloc(dev, bytes, &ptr, err) < 0)
 *         return err_context(err, "buffer %s", name);
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/* Who is at fault; decides the exit code and whether a verdict is FAIL or ERROR. */
enum err_kind {
    ERR_NONE,
    ERR_INPUT,   /* the user's: malformed file, unknown key, impossible dims; exit code 2 */
    ERR_REFUSED, /* a launcher or device refused a launch before it started */
    ERR_FAULT,   /* the kernel under test misbehaved: bad access, stuck barrier, trap */
    ERR_MISSING, /* an entry, module, driver or tool is not there */
    ERR_SYSTEM,  /* the machine's: no memory, I/O, driver failure */
};

struct err {
    enum err_kind kind;
    char text[1024]; /* one line, no trailing newline; truncated with "..." when longer */
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .kind = ERR_NONE, .text = ""                                                               \
    }

/* Sets kind and text; always returns -1 so that `return err_set(...)` reads as a failure. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends "<context>: " to the text, keeps the kind; always returns -1. */
int err_context(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "input", "refused", "fault", "missing", "system", "none". Never NULL. */
const char *err_kind_name(enum err_kind kind);

/* A programmer's mistake: prints file, line and text to stderr, then aborts. */
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
