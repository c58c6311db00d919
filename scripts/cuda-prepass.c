/*
 * cuda-prepass [--storage TEXT | --fenced TEXT] < preprocessed.ii > plain.cpp
 *
 * Turns CUDA C++ that g++ has preprocessed under the CPU device's shim into C++ that g++ compiles.
 * Working after the preprocessor, it sees kernels, shared variables and inline PTX wherever they
 * come from: macros and headers included. Line markers are kept, so that compiler messages name the
 * original lines.
 *
 *   __global__ void k(..) {..}     exported: a descriptor of k follows its body (templates
 * excepted)
 *   __launch_bounds__(n, ..)       removed, n goes into the descriptor
 *   __shared__ T x[n];             TEXT T x[n];           (TEXT: thread-local storage, or static)
 *                                  --fenced: in a struct, with a fence on either side
 *   extern __shared__ T x[];       a reference to the launch's dynamic shared memory
 *   asm("op a, b;" : outs : ins)   ({ ptx::op(a, b); })   operands in the order of the PTX text
 *
 * Text from system headers (flag 3 of a line marker) passes through. Built by make, or by
 * build-cpu-module when it is missing: cc -O2 scripts/cuda-*.c -o build/tools/cuda-prepass.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda-prepass.h"

/* --- line markers ----------------------------------------------------------------------------- */

/* `# 12 "file.cu" 1 3`: flag 3 marks a system header. */
static void line_marker(struct prepass *p)
{
    const char *s = p->pos, *end = strchr(s, '\n');
    const char *open = memchr(s, '"', end ? (size_t)(end - s) : strlen(s));
    size_t n = end ? (size_t)(end - s) : strlen(s);

    if (open && isdigit((unsigned char)s[2])) {
        const char *close = skip_literal(open);

        p->line = atol(s + 2) - 1;
        snprintf(p->file, sizeof p->file, "%.*s", (int)(close - open - 2), open + 1);
        p->system = false;
        for (const char *f = close; f < s + n; f++)
            p->system |= *f == '3';
    }
    put((struct span){s, n});
    p->pos += n;
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* Does the statement up to pos begin a template? Names of files do not count. */
static bool opens_template(const struct prepass *p)
{
    for (const char *t = p->statement; t < p->pos;) {
        const char *literal = skip_literal(t);
        struct span w = word_at(t);

        if (is(w, "template"))
            return true;
        t = literal != t ? literal : t + (w.len ? w.len : 1);
    }
    return false;
}

/* Reads the signature that follows __global__; remembers name, bounds and the end of the body. */
static void kernel_signature(struct prepass *p)
{
    const char *s = p->pos;
    struct span name = {NULL, 0}, bounds = {NULL, 0};
    while (*s && *s != '{' && *s != ';') {
        struct span w = word_at(s);

        if (is(w, "__attribute__") || is(w, "__launch_bounds__")) {
            const char *open = skip_space(s + w.len), *end = skip_group(p, open);

            if (is(w, "__launch_bounds__"))
                bounds = (struct span){open, (size_t)(end - open)};
            s = end;
        } else if (w.len) {
            name = w;
            s += w.len;
        } else if (*s == '(') {
            s = skip_space(skip_group(p, s));
            break;
        } else {
            s++;
        }
    }
    if (*s != '{' || opens_template(p) || !name.len)
        return;
    p->kernel = name;
    p->bounds = bounds;
    p->body_end = skip_group(p, s);
}

/* The largest block is the first argument of __launch_bounds__. */
static void put_descriptor(struct prepass *p)
{
    int n = (int)p->kernel.len;
    const char *name = p->kernel.at;

    printf(" extern \"C\" const cpu_kernel_desc cpu_kernel_of_%.*s = "
           "cpu::describe<decltype(&%.*s), &%.*s>(\"%.*s\", cpu::first_of",
           n, name, n, name, n, name, n, name);
    if (p->bounds.len)
        put(p->bounds);
    else
        fputs("(1024)", stdout);
    fputs(");", stdout);
    fprintf(stderr, "%.*s\n", n, name); /* the list of kernels, for the script */
    p->body_end = NULL;
}

/* --- the pass --------------------------------------------------------------------------------- */

/* The word at pos, outside system headers. True when it was replaced. */
static bool replace_word(struct prepass *p, struct span w)
{
    const char *after = w.at + w.len;

    if (is(w, "__global__")) {
        p->pos = after;
        kernel_signature(p);
        fputs("__attribute__((noinline))", stdout);
        return true;
    }
    if (is(w, "__launch_bounds__")) {
        const char *end = skip_group(p, skip_space(after));

        put_newlines(p, after, end);
        p->pos = end;
        return true;
    }
    if (is(w, "static") && is(word_at(skip_space(after)), "__shared__")) {
        p->pos = after;
        return true;
    }
    if (is(w, "__shared__"))
        return static_shared(p);
    if (is(w, "extern") && dynamic_shared(p))
        return true;
    if ((is(w, "asm") || is(w, "__asm__") || is(w, "__asm")) && inline_ptx(p, after))
        return true;
    if (replace_alias(p, w)) {
        p->pos = after;
        return true;
    }
    return false;
}

/* Does the brace at pos open a namespace or a linkage block rather than a body? */
static bool opens_scope(const struct prepass *p)
{
    const char *s = skip_space(p->statement);
    struct span w = word_at(s);

    if (is(w, "inline"))
        w = word_at(skip_space(s + w.len));
    return is(w, "namespace") || (is(w, "extern") && *skip_space(w.at + w.len) == '"' &&
                                  skip_space(skip_literal(skip_space(w.at + w.len))) == p->pos);
}

static void punctuation(struct prepass *p)
{
    char c = *p->pos;

    if (c == '{') {
        if (p->depth == MAX_DEPTH)
            die(p, "braces nest deeper than %d", MAX_DEPTH);
        p->function[p->depth++] = !opens_scope(p);
    } else if (c == '}' && p->depth) {
        p->depth--;
    }
    p->line += c == '\n';
    putchar(c);
    p->pos++;
    if (c == '{' || c == '}' || c == ';')
        p->statement = p->pos;
    if (p->pos == p->body_end)
        put_descriptor(p);
}

static void run(struct prepass *p, const char *text)
{
    bool line_start = true;

    for (p->pos = p->statement = text; *p->pos;) {
        const char *literal = skip_literal(p->pos);
        struct span w = word_at(p->pos);

        if (line_start && p->pos[0] == '#' && p->pos[1] == ' ') {
            line_marker(p);
            if (p->statement < p->pos && skip_space(p->statement) >= p->pos)
                p->statement = p->pos;
            continue;
        }
        line_start = *p->pos == '\n';
        if (literal != p->pos) {
            put((struct span){p->pos, (size_t)(literal - p->pos)});
            p->pos = literal;
        } else if (!w.len) {
            punctuation(p);
        } else if (p->system || !replace_word(p, w)) {
            put(w);
            p->pos += w.len;
        }
    }
}

/* Lambdas in the user's text that capture by copy, or nothing: a reference would not do in them. */
static bool has_lambdas(const char *text)
{
    bool system = true;

    for (const char *s = text; *s; s++) {
        if (s[0] == '#' && s[1] == ' ' && (s == text || s[-1] == '\n')) {
            const char *end = strchr(s, '\n');
            const char *flags = end ? memrchr(s, '"', (size_t)(end - s)) : NULL;

            system = !flags || memchr(flags, '3', (size_t)(end - flags)) != NULL;
        } else if (!system && *s == '[' &&
                   (s[1] == '=' ||
                    (s[1] == ']' && strchr("({", *skip_space(s + 2)) && *skip_space(s + 2)))) {
            return true;
        }
    }
    return false;
}

static char *read_all(FILE *in)
{
    size_t cap = 1 << 20, n = 0, got;
    char *text = malloc(cap);

    while (text && (got = fread(text + n, 1, cap - n - 1, in)) > 0) {
        n += got;
        if (cap - n < 2)
            text = realloc(text, cap *= 2);
    }
    if (text)
        text[n] = '\0';
    return text;
}

int main(int argc, char **argv)
{
    static struct prepass p = {.storage = "static __thread", .file = "stdin"};
    char *text = read_all(stdin);

    p.fences = argc == 3 && !strcmp(argv[1], "--fenced");
    if (p.fences || (argc == 3 && !strcmp(argv[1], "--storage")))
        p.storage = argv[2];
    else if (argc != 1 || !text) {
        fprintf(
            stderr,
            "usage: cuda-prepass [--storage TEXT | --fenced TEXT] < preprocessed.ii > plain.cpp\n");
        return 2;
    }
    p.lambdas = has_lambdas(text);
    run(&p, text);
    free(text);
    return ferror(stdout) ? 1 : 0;
}
