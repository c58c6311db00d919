/*
 * What the parts of cuda-prepass share: the state of the pass and a scanner for preprocessed C++.
 */
#ifndef CUDA_PREPASS_H
#define CUDA_PREPASS_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_DEPTH   256 /* nested braces; deeper source is refused */
#define MAX_ALIASES 64  /* dynamic shared arrays that are replaced by name */

struct span {
    const char *at;
    size_t len;
};

struct alias { /* `extern __shared__ type name[]` */
    struct span type, name;
};

struct prepass {
    const char *pos, *statement; /* where we are; where the current statement began */
    const char *storage;
    bool fences;  /* static shared variables get a fence on either side */
    bool system;  /* inside a system header */
    bool lambdas; /* the source has lambdas that capture by copy or not at all */
    char file[512];
    long line;
    bool function[MAX_DEPTH]; /* per open brace: does it belong to a function (or type) body? */
    unsigned depth;
    struct alias alias[MAX_ALIASES];
    unsigned naliases;
    const char *body_end; /* of the kernel being read: its descriptor goes there */
    struct span kernel, bounds;
};

/* cuda-scan.c */
void die(const struct prepass *p, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));
bool word_char(char c);
const char *skip_space(const char *s);
const char *
skip_literal(const char *s); /* past the string or character at s; s when there is none */
const char *skip_group(const struct prepass *p, const char *s); /* past the bracket that closes s */
struct span word_at(const char *s);                             /* empty when there is none */
bool is(struct span w, const char *text);
void put(struct span s);
/* The newlines of a replaced text, so that later lines keep their numbers. */
void put_newlines(struct prepass *p, const char *from, const char *to);
bool in_function(const struct prepass *p);

/* cuda-shared.c: the declaration at pos, whose keyword is `extern` or `__shared__`. False: no such
   thing. */
bool dynamic_shared(struct prepass *p);
bool static_shared(struct prepass *p);
bool replace_alias(const struct prepass *p, struct span w);

/* cuda-ptx.c: the asm statement whose keyword starts at pos; `after` is behind the keyword. */
bool inline_ptx(struct prepass *p, const char *after);

#endif
