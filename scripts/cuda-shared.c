/* Shared variables in cuda-prepass, static and dynamic. */
#include <stdio.h>
#include <string.h>

#include "cuda-prepass.h"

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

static void put_dynamic(const struct prepass *p, const struct alias *a)
{
    fputs("(*reinterpret_cast<", stdout);
    put_type(p, a->type);
    fputs("(*)[]>(cpu::dynamic_shared()))", stdout);
}

/* `extern .. __shared__ .. name[];` at pos. False when the declaration is another extern. */
bool dynamic_shared(struct prepass *p)
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
    if (in_function(p) && !p->lambdas) {
        put_type(p, a.type);
        fputs("(&", stdout);
        put(a.name);
        fputs(")[] = ", stdout);
        put_dynamic(p, &a);
    } else {
        if (p->naliases == MAX_ALIASES)
            die(p, "more than %d dynamic shared arrays by name", MAX_ALIASES);
        p->alias[p->naliases++] = a;
    }
    put_newlines(p, p->pos, end);
    p->pos = end;
    return true;
}

/* The latest declaration of the name counts. */
bool replace_alias(const struct prepass *p, struct span w)
{
    for (unsigned i = p->naliases; i-- > 0;)
        if (w.len == p->alias[i].name.len && !memcmp(w.at, p->alias[i].name.at, w.len)) {
            put_dynamic(p, &p->alias[i]);
            return true;
        }
    return false;
}

/* The end of the declarator at s: `,` or `;`. Its name, and whether the text is one we
   understand. */
static const char *declarator(const struct prepass *p, const char *s, struct span *name)
{
    int angle = 0;

    *name = (struct span){NULL, 0};
    for (bool named = false; *s && *s != ';' && (*s != ',' || angle > 0);) {
        struct span w = word_at(s);

        if (is(w, "__attribute__") || is(w, "alignas")) {
            s = skip_group(p, skip_space(s + w.len));
        } else if (w.len) {
            *name = named ? *name : w;
            s += w.len;
        } else if (strchr("([{", *s)) {
            named |= *s == '[';
            s = skip_group(p, s);
        } else {
            angle += (*s == '<') - (*s == '>');
            s++;
        }
    }
    return s;
}

/* The storage class, behind the alignas that stand before it: C++ wants them first. */
static void put_storage(const struct prepass *p, struct span alignments)
{
    put(alignments);
    putchar(' ');
    fputs(p->storage, stdout);
}

static const char *skip_alignments(const struct prepass *p, const char *s)
{
    for (struct span w; w = word_at(skip_space(s)), is(w, "alignas");)
        s = skip_group(p, skip_space(w.at + w.len));
    return s;
}

/* One variable as a struct with fences on both sides, and a reference that lambdas need not
   capture: it is static, too, and constant. */
static void put_fenced(const struct prepass *p, struct span alignments, struct span base,
                       struct span declared, struct span name)
{
    put_storage(p, alignments);
    fputs(" struct { unsigned char cpu_before[CPU_SHARED_FENCE]; ", stdout);
    put(base);
    putchar(' ');
    put(declared);
    printf("; unsigned char cpu_after[CPU_SHARED_FENCE]; } cpu_static_%.*s; "
           "static auto &%.*s = cpu_static_%.*s.%.*s",
           (int)name.len, name.at, (int)name.len, name.at, (int)name.len, name.at, (int)name.len,
           name.at);
}

static void put_located(const struct prepass *p, struct span alignments, struct span base,
                        struct span declared, struct span name)
{
    size_t before = (size_t)(name.at - declared.at);

    put_storage(p, alignments);
    putchar(' ');
    put(base);
    putchar(' ');
    put((struct span){declared.at, before});
    fputs("cpu_static_", stdout);
    put((struct span){name.at, declared.len - before});
    printf("; auto &%.*s = *cpu::located(&cpu_static_%.*s)", (int)name.len, name.at, (int)name.len,
           name.at);
}

/*
 * `__shared__ T x[n], *y;` becomes one thread-local a name, and a reference that remembers its
 * address:
 *     STORAGE T cpu_static_x[n]; auto &x = *cpu::located(&cpu_static_x); STORAGE T *cpu_static_y;
 * ... At file scope, and where a lambda might capture the reference by copy, only the storage class
 * is put. With fences each becomes a struct, wherever it stands.
 */
bool static_shared(struct prepass *p)
{
    const char *keyword = p->pos + strlen("__shared__"), *end;
    const char *s = skip_alignments(p, keyword);
    struct span name, base, alignments = {keyword, (size_t)(s - keyword)};
    bool plain;

    end = declarator(p, s, &name);
    plain = !p->fences && (!in_function(p) || p->lambdas || memchr(s, '{', (size_t)(end - s)));
    if (plain || !name.len || !*end) {
        put_storage(p, alignments);
        putchar(' ');
        p->pos = s;
        return true;
    }
    for (base = (struct span){s, (size_t)(name.at - s)}; base.len; base.len--)
        if (!strchr(" *\n", s[base.len - 1]))
            break;
    for (const char *d = s + base.len;; d = end + 1, end = declarator(p, d, &name)) {
        struct span declared = {d, (size_t)(end - d)};

        if (p->fences)
            put_fenced(p, alignments, base, declared, name);
        else
            put_located(p, alignments, base, declared, name);
        if (*end != ',')
            break;
        fputs("; ", stdout);
    }
    for (const char *t = s; t < end; t++)
        p->line += *t == '\n';
    p->pos = end;
    return true;
}
