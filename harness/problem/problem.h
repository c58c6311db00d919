/*
 * A problem: a case's buffers, with their shapes, roles and initial contents on the host. It is the
 * same for every device and every kernel set.
 */
#ifndef PROBLEM_PROBLEM_H
#define PROBLEM_PROBLEM_H

#include "problem/dtype.h"
#include "problem/test_case.h"

#define PROBLEM_MAX_BUFFERS 64
#define BUFFER_MAX_DIMS     6

enum role {
    ROLE_IN,      /* must come back bit for bit as it went in */
    ROLE_OUT,     /* arrives poisoned; the golden says what each element must hold afterwards */
    ROLE_INOUT,   /* arrives with contents, the golden says what it holds afterwards */
    ROLE_SCRATCH, /* arrives poisoned; its contents are nobody's business, its fences are */
};

/* Where an element of a DTYPE_PTR buffer points: into another buffer of the problem. */
struct pointer_ref {
    int buffer;    /* index of the buffer; POINTER_POISON for an address nobody may follow */
    size_t offset; /* bytes */
};

#define POINTER_POISON (-1)

struct buffer {
    const char *name;
    enum dtype dtype;
    enum role role;
    unsigned ndim;
    size_t dim[BUFFER_MAX_DIMS];       /* row-major, outermost first */
    const char *axis[BUFFER_MAX_DIMS]; /* "seq", "token", "row": how a failure names an element */
    size_t count;                      /* product of dim */
    size_t bytes;
    void *init; /* host contents before the launch; owned by the problem; poison for OUT */
    struct pointer_ref *refs; /* for DTYPE_PTR, count of them; owned by the problem */
    bool hollow;              /* numbers that need not be filled in: problem_init_hollow() */
};

struct problem {
    struct test_case tc;
    struct buffer buffer[PROBLEM_MAX_BUFFERS];
    unsigned count;
    bool hollow;
};

void problem_init(struct problem *p, const struct test_case *tc);
/* For a launcher whose launches nothing executes: numbers are not drawn, which takes nearly all of
   the time, so floating-point buffers hold nothing to rely on. Words and pointers, which launchers
   read, are as ever. */
void problem_init_hollow(struct problem *p, const struct test_case *tc);
void problem_release(struct problem *p);

/* One named dimension; arrays of them end with { NULL, 0 }. */
struct dim {
    const char *axis;
    size_t size;
};

/* Adds a buffer and allocates its host contents: zero for IN/INOUT (fill them next), poison for OUT
   and SCRATCH (a NaN with payload in every float type, 0xdeadbeef-like words elsewhere). *id gets
   its index. ERR_INPUT when the size overflows or exceeds PROBLEM_MAX_BYTES. */
#define PROBLEM_MAX_BYTES ((size_t)8 << 30)
int problem_add(struct problem *p, const char *name, enum dtype dtype, enum role role,
                const struct dim *dims, int *id, struct err *err);

/* The buffer of that name, or -1. */
int problem_find(const struct problem *p, const char *name);

/* Writes the poison of a dtype over elements [first, first+count) of a buffer's init. */
void buffer_poison(struct buffer *b, size_t first, size_t count);
/* True when the bits of element i of `array` are exactly the poison. */
bool poison_is(enum dtype t, const void *array, size_t i);

/* "output[seq=1 token=2 head=7 row=33]" for the flat element i. */
void buffer_index_text(const struct buffer *b, size_t i, char *out, size_t n);

#endif
