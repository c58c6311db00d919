/* A problem of three small buffers and its golden, for the tests of goldens and verdicts. */
#ifndef TESTS_TOY_PROBLEM_H
#define TESTS_TOY_PROBLEM_H

#include <stdlib.h>
#include <string.h>

#include "problem/operator.h"

enum { TOY_X, TOY_Y, TOY_STATE, TOY_WORK };

#define TOY_ROWS 4
#define TOY_COLS 10
#define TOY_N    (TOY_ROWS * TOY_COLS)

static const char *const toy_inputs[] = {"plain", "zero", NULL};
static const struct param toy_params[] = {
    {.key = "input", .fallback = 0, .min = 0, .max = 1, .choices = toy_inputs},
    {.key = NULL},
};
static const struct op toy_operator = {
    .name = "toy", .params = toy_params, .contract = "none", .reference_version = 3};

static inline void toy_problem_init(struct problem *p, const char *text)
{
    struct test_case tc;
    struct err err = ERR_INIT;
    const struct dim dims[] = {{"row", TOY_ROWS}, {"col", TOY_COLS}, {NULL, 0}};
    int id;
    if (case_parse_for(&toy_operator, text, &tc, &err) < 0)
        abort();
    problem_init(p, &tc);
    if (problem_add(p, "x", DTYPE_BF16, ROLE_IN, dims, &id, &err) < 0 ||
        problem_add(p, "y", DTYPE_F32, ROLE_OUT, dims, &id, &err) < 0 ||
        problem_add(p, "state", DTYPE_F32, ROLE_INOUT, dims, &id, &err) < 0 ||
        problem_add(p, "work", DTYPE_U32, ROLE_SCRATCH, dims, &id, &err) < 0)
        abort();
    for (size_t i = 0; i < TOY_N; i++) {
        dtype_store(DTYPE_BF16, p->buffer[TOY_X].init, i, (double)i);
        dtype_store(DTYPE_F32, p->buffer[TOY_STATE].init, i, -1.0);
    }
}

/* y: VALUE i + 1 within 0.25 (worst 0.5) but for the last row, which is EXACT i, and its last
   column, which is FREE. state: VALUE 2 within 0.25, odd columns KEEP. */
static inline void toy_golden_init(struct golden *g, const struct problem *p)
{
    golden_init(g, p);
    struct expectation *y = golden_open(g, p, TOY_Y), *state = golden_open(g, p, TOY_STATE);
    for (size_t i = 0; i < TOY_N; i++) {
        if (i % TOY_COLS == TOY_COLS - 1 && i / TOY_COLS == TOY_ROWS - 1)
            y->expect[i] = EXPECT_FREE;
        else if (i / TOY_COLS == TOY_ROWS - 1)
            expect_exact(y, i, (double)i);
        else
            (expect_value)(y, i, (double)i + 1.0, 0.5, 0.25);
        if (i % 2 == 0)
            (expect_value)(state, i, 2.0, 0.5, 0.25);
    }
}

/* What a right kernel leaves behind; free() the arrays. */
static inline void toy_outcome_init(const struct problem *p, const struct golden *g, void *data[4])
{
    for (unsigned b = 0; b < p->count; b++) {
        data[b] = malloc(p->buffer[b].bytes);
        memcpy(data[b], p->buffer[b].init, p->buffer[b].bytes);
        for (size_t i = 0; i < p->buffer[b].count; i++) {
            enum expect what = expectation_at(&g->of[b], i);
            if (what == EXPECT_VALUE || what == EXPECT_EXACT)
                dtype_store(p->buffer[b].dtype, data[b], i, g->of[b].value[i]);
        }
    }
}

#endif
