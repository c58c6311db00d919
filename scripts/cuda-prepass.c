/*
 * cuda-prepass [--storage TEXT] < preprocessed.ii > plain.cpp
 *
 * Turns CUDA C++ that g++ has preprocessed under the CPU device's shim into C++ that g++ compiles. Working
 * after the preprocessor, it sees kernels, shared variables and inline PTX wherever they come from: macros
 * and headers included. Line markers are kept, so that compiler messages name the original lines.
 *
 *   __global__ void k(..) {..}     exported: a descriptor of k follows its body (templates excepted)
 *   __launch_bounds__(n, ..)       removed, n goes into the descriptor
 *   __shared__ T x[n];             TEXT T x[n];           (TEXT: thread-local storage, or static)
 *   extern __shared__ T x[];       a reference to the launch's dynamic shared memory
 *   asm("op a, b;" : outs : ins)   ({ ptx::op(a, b); })   operands in the order of the PTX text
 *
 * Text from system headers (flag 3 of a line marker) passes through. Built by make, or by build-cpu-module
 * when it is missing: cc -O2 scripts/cuda-prepass.c -o build/tools/cuda-prepass.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH    256 /* nested braces; deeper source is refused */
#define MAX_ALIASES  32  /* file-scope dynamic shared arrays */
#define MAX_OPERANDS 64  /* of one asm statement; GCC allows 30 */

struct span {
    const char *at;
    size_t len;
};

struct alias { /* a file-scope `extern __shared__ type name[]` */
    struct span type, name;
};

struct prepass {
    const char *pos, *statement; /* where we are; where the current statement began */
    const char *storage;
    bool system;                 /* inside a system header */
    char file[512];
    long line;
    bool function[MAX_DEPTH]; /* per open brace: does it belong to a function (or type) body? */
    unsigned depth;
    struct alias alias[MAX_ALIASES];
    unsigned naliases;
    const char *body_end; /* of the kernel being read: its descriptor goes there */
    struct span kernel, bounds;
};

static void die(const struct prepass *p, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s:%ld: error: ", p->file, p->line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_space(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    return s;
}

/* Past the string or character literal at s; s itself when there is none. Raw strings included. */
static const char *skip_literal(const char *s)
{
    if (s[0] == 'R' && s[1] == '"') {
        const char *open = strchr(s, '('), *end;
        size_t n = open ? (size_t)(open - s - 2) : 0;

        for (end = open; end && (end = strchr(end + 1, ')'));)
            if (!strncmp(end + 1, s + 2, n) && end[1 + n] == '"')
                return end + n + 2;
        return s + 1;
    }
    if (*s != '"' && *s != '\'')
        return s;
    for (const char *p = s + 1; *p && *p != '\n'; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == *s)
            return p + 1;
    }
    return s + 1;
}

/* Past the bracket that closes the one at s. */
static const char *skip_group(const struct prepass *p, const char *s)
{
    int depth = 0;

    for (const char *q = s; *q;) {
        const char *lit = skip_literal(q);

        if (lit != q) {
            q = lit;
            continue;
        }
        depth += (*q == '(' || *q == '{' || *q == '[') - (*q == ')' || *q == '}' || *q == ']');
        q++;
        if (!depth)
            return q;
    }
    die(p, "no closing bracket for \"%.20s\"", s);
    return s;
}

static struct span word_at(const char *s)
{
    const char *e = s;

    while (word_char(*e))
        e++;
    return (struct span){s, (size_t)(e - s)};
}

static bool is(struct span w, const char *text)
{
    return w.len == strlen(text) && !memcmp(w.at, text, w.len);
}

static void put(struct span s)
{
    fwrite(s.at, 1, s.len, stdout);
}

/* The newlines of a replaced text, so that later lines keep their numbers. */
static void put_newlines(struct prepass *p, const char *from, const char *to)
{
    for (; from < to; from++)
        if (*from == '\n') {
            putchar('\n');
            p->line++;
        }
}

/* Type text without attributes and alignas, which a cast does not take. */
static void put_type(const struct prepass *p, struct span type)
{
    const char *end = type.at + type.len;

    for (const char *s = type.at; s < end;) {
        struct span w = word_at(s);

        if (is(w, "__attribute__") || is(w, "alignas") || is(w, "__shared__")) {
            s = skip_space(s + w.len);
            if (*s == '(')
                s = skip_group(p, s);
        } else if (w.len) {
            put(w);
            s += w.len;
        } else {
            putchar(*s == '\n' ? ' ' : *s);
            s++;
        }
    }
}

/* --- line markers ------------------------------------------------------------------------------ */

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

/* --- kernels ----------------------------------------------------------------------------------- */

/* Reads the signature that follows __global__; remembers name, bounds and the end of the body. */
static void kernel_signature(struct prepass *p)
{
    const char *s = p->pos;
    struct span name = {NULL, 0}, bounds = {NULL, 0};
    bool is_template = false;

    for (const char *t = p->statement; t < p->pos; t++)
        if (word_char(*t) && (t == p->statement || !word_char(t[-1])))
            is_template |= is(word_at(t), "template");
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
    if (*s != '{' || is_template || !name.len)
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

/* --- shared variables -------------------------------------------------------------------------- */

static bool in_function(const struct prepass *p)
{
    for (unsigned i = 0; i < p->depth; i++)
        if (p->function[i])
            return true;
    return false;
}

static void put_dynamic(const struct prepass *p, const struct alias *a)
{
    fputs("(*reinterpret_cast<", stdout);
    put_type(p, a->type);
    fputs("(*)[]>(cpu::dynamic_shared()))", stdout);
}

/* `extern .. __shared__ .. name[];` at pos. False when the declaration is another extern. */
static bool dynamic_shared(struct prepass *p)
{
    const char *s = p->pos + strlen("extern"), *bracket = NULL, *end;
    struct alias a = {{s, 0}, {NULL, 0}};
    bool shared = false;

    for (end = s; *end && !strchr(";{}=", *end);) {
        struct span w = word_at(end);

        if (is(w, "__attribute__") || is(w, "alignas")) {
            end = skip_group(p, skip_space(end + w.len));
            continue;
        }
        shared |= is(w, "__shared__");
        if (w.len && !bracket)
            a.name = w;
        if (*end == '[' && !bracket)
            bracket = end;
        end += w.len ? w.len : 1;
    }
    if (!shared || *end != ';' || !bracket)
        return false;
    a.type.len = (size_t)(a.name.at - a.type.at);
    if (in_function(p)) {
        put_type(p, a.type);
        fputs("(&", stdout);
        put(a.name);
        fputs(")[] = ", stdout);
        put_dynamic(p, &a);
    } else {
        if (p->naliases == MAX_ALIASES)
            die(p, "more than %d dynamic shared arrays at file scope", MAX_ALIASES);
        p->alias[p->naliases++] = a;
    }
    put_newlines(p, p->pos, end);
    p->pos = end;
    return true;
}

static bool file_scope_alias(struct prepass *p, struct span w)
{
    for (unsigned i = 0; i < p->naliases; i++)
        if (w.len == p->alias[i].name.len && !memcmp(w.at, p->alias[i].name.at, w.len)) {
            put_dynamic(p, &p->alias[i]);
            return true;
        }
    return false;
}

/* --- inline PTX -------------------------------------------------------------------------------- */

struct asm_text {
    char *ptx; /* the concatenated template, escapes resolved */
    struct span operand[MAX_OPERANDS];
    unsigned noperands;
};

static const char *asm_template(struct prepass *p, const char *s, struct asm_text *a)
{
    size_t n = 0;

    a->ptx = calloc(1, strlen(s) + 1);
    if (!a->ptx)
        die(p, "out of memory");
    for (s = skip_space(s); *s == '"'; s = skip_space(s)) {
        const char *end = skip_literal(s);

        for (const char *c = s + 1; c < end - 1; c++) {
            if (*c != '\\') {
                a->ptx[n++] = *c;
                continue;
            }
            c++;
            a->ptx[n++] = *c == 'n' || *c == 't' ? ' ' : *c;
        }
        s = end;
    }
    return s;
}

/* `: "=f"(x), [name] "r"(y) : ...` up to the closing bracket; clobbers are left out. */
static const char *asm_operands(struct prepass *p, const char *s, struct asm_text *a)
{
    unsigned section = 0;

    while (*(s = skip_space(s)) && *s != ')') {
        if (*s == ':') {
            section++;
            s++;
        } else if (*s == '"') {
            const char *open = skip_space(skip_literal(s));

            s = open;
            if (section > 2 || *open != '(')
                continue;
            if (a->noperands == MAX_OPERANDS)
                die(p, "asm statement with more than %d operands", MAX_OPERANDS);
            s = skip_group(p, open);
            a->operand[a->noperands++] = (struct span){open, (size_t)(s - open)};
        } else if (*s == ',') {
            s++;
        } else {
            die(p, "cannot read the asm operand at \"%.20s\"", s);
        }
    }
    return s;
}

/* One piece of an operand: %3, %%laneid, a number or a declared register. */
static const char *ptx_atom(struct prepass *p, const struct asm_text *a, const char *s)
{
    struct span w;

    if (s[0] == '%' && isdigit((unsigned char)s[1])) {
        char *end;
        unsigned long i = strtoul(s + 1, &end, 10);

        if (i >= a->noperands)
            die(p, "inline PTX names operand %%%lu, the statement has %u", i, a->noperands);
        put(a->operand[i]);
        return end;
    }
    if (s[0] == '%' && s[1] == '%') {
        w = word_at(s + 2);
        printf("ptx::special_%.*s", (int)w.len, w.at);
        s += 2 + w.len;
        if (*s == '.') {
            printf("_%c", s[1]);
            s += 2;
        }
        fputs("()", stdout);
        return s;
    }
    if (s[0] == '0' && (s[1] == 'f' || s[1] == 'F')) { /* 0f3F800000: the bits of a float */
        printf("ptx::float_bits(0x%.8s)", s + 2);
        return s + 10;
    }
    w = word_at(s + (*s == '-'));
    if (!w.len)
        die(p, "cannot read the inline PTX operand at \"%.20s\"", s);
    put((struct span){s, (size_t)(w.at + w.len - s)});
    return w.at + w.len;
}

/* "[%0+16], {%1, %2}, 16" -> "ptx::offset((x), 16), (y), (z), 16": braces fall away. */
static void ptx_operands(struct prepass *p, const struct asm_text *a, const char *s, const char *end)
{
    bool address = false;

    while (s < end) {
        if (*s == '[') {
            const char *plus = s;

            while (plus < end && *plus != '+' && *plus != ']')
                plus++;
            address = *plus == '+';
            fputs(address ? "ptx::offset(" : "", stdout);
            s++;
        } else if (*s == ']') {
            fputs(address ? ")" : "", stdout);
            s++;
        } else if (*s == '+') {
            putchar(',');
            s++;
        } else if (strchr("{} \n\t|", *s)) {
            putchar(*s == '|' ? ',' : ' ');
            s++;
        } else if (*s == ',') {
            putchar(*s++);
        } else {
            s = ptx_atom(p, a, s);
        }
    }
}

/* `.reg .b32 a, b` -> a C declaration. */
static void ptx_register(struct prepass *p, const char *s, const char *end)
{
    static const char *const type[][2] = {
        {".pred", "bool"},    {".b16", "uint16_t"}, {".u16", "uint16_t"}, {".s16", "int16_t"},
        {".b32", "uint32_t"}, {".u32", "uint32_t"}, {".s32", "int32_t"},  {".b64", "uint64_t"},
        {".u64", "uint64_t"}, {".s64", "int64_t"},  {".f32", "float"},    {".f64", "double"},
    };

    s = skip_space(s);
    for (size_t i = 0; i < sizeof type / sizeof *type; i++) {
        size_t n = strlen(type[i][0]);

        if (strncmp(s, type[i][0], n) || word_char(s[n]))
            continue;
        printf("%s %.*s; ", type[i][1], (int)(end - s - (long)n), s + n);
        return;
    }
    die(p, "inline PTX register type \"%.*s\" is not supported on the CPU device", (int)(end - s), s);
}

/* One instruction [s, end): predicate, opcode, operands. */
static void ptx_instruction(struct prepass *p, const struct asm_text *a, const char *s,
                            const char *end)
{
    if (!strncmp(s, ".reg", 4)) {
        ptx_register(p, s + 4, end);
        return;
    }
    if (*s == '@') {
        fputs("if (", stdout);
        if (*++s == '!')
            putchar(*s++);
        s = skip_space(ptx_atom(p, a, s));
        fputs(") ", stdout);
    }
    fputs("ptx::", stdout);
    if (!word_char(*s))
        die(p, "cannot read the inline PTX at \"%.*s\"", (int)(end - s), s);
    for (; s < end && (word_char(*s) || *s == '.' || *s == ':'); s++)
        putchar(word_char(*s) ? *s : '_');
    putchar('(');
    ptx_operands(p, a, skip_space(s), end);
    fputs("); ", stdout);
}

/* The asm statement whose keyword starts at pos; `after` is just behind the keyword. */
static bool inline_ptx(struct prepass *p, const char *after)
{
    struct asm_text a = {0};
    const char *s = skip_space(after), *end;
    struct span w = word_at(s);

    if (is(w, "volatile") || is(w, "__volatile__") || is(w, "__volatile"))
        s = skip_space(s + w.len);
    if (*s != '(')
        return false;
    end = asm_operands(p, asm_template(p, s + 1, &a), &a);
    fputs("({ ", stdout);
    for (const char *t = a.ptx; *(t += strspn(t, " {};\t\n"));) {
        const char *stop = t;

        while (*stop && *stop != ';')
            stop++;
        /* the closing brace of a `{ .. }` scope, not that of an operand list */
        ptx_instruction(p, &a, t, stop);
        t = stop;
    }
    fputs("})", stdout);
    put_newlines(p, p->pos, end + 1);
    p->pos = end + 1;
    free(a.ptx);
    return true;
}

/* --- the pass ---------------------------------------------------------------------------------- */

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
    if (is(w, "__shared__")) {
        fputs(p->storage, stdout);
        p->pos = after;
        return true;
    }
    if (is(w, "extern") && dynamic_shared(p))
        return true;
    if ((is(w, "asm") || is(w, "__asm__") || is(w, "__asm")) && inline_ptx(p, after))
        return true;
    if (file_scope_alias(p, w)) {
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

    if (argc == 3 && !strcmp(argv[1], "--storage"))
        p.storage = argv[2];
    else if (argc != 1 || !text) {
        fprintf(stderr, "usage: cuda-prepass [--storage TEXT] < preprocessed.ii > plain.cpp\n");
        return 2;
    }
    run(&p, text);
    free(text);
    return ferror(stdout) ? 1 : 0;
}
