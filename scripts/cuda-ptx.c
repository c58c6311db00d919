/*
 * Inline PTX in cuda-prepass: asm("op a, b;" : outs : ins) becomes ({ ptx::op(a, b); }), with the
 * operands in the order of the PTX text, whatever their order in the statement. Several
 * instructions, predicates and declared registers are translated too; what an instruction does is
 * up to the functions of namespace ptx.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda-prepass.h"

#define MAX_OPERANDS 64 /* of one asm statement; GCC allows 30 */

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
static void ptx_operands(struct prepass *p, const struct asm_text *a, const char *s,
                         const char *end)
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
    die(p, "inline PTX register type \"%.*s\" is not supported on the CPU device", (int)(end - s),
        s);
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
bool inline_ptx(struct prepass *p, const char *after)
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
