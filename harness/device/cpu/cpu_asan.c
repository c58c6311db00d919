/* AddressSanitizer's side of cpu_sanitizer.h; empty in the other builds. */
#include "device/cpu/cpu_sanitizer.h"

#ifdef CPU_ASAN

#include <ctype.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu_worker.h"

/* Called by the run-time library. Each report counts (suppress_equal_pcs): the same fault of
   another case is that case's, too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "halt_on_error=0:suppress_equal_pcs=0:detect_leaks=0:detect_stack_use_after_return=0:"
           "allow_user_segv_handler=1";
}

struct stack_range {
    const void *bottom;
    size_t bytes;
};

/* --- reports ---------------------------------------------------------------------------------- */

/* The innermost place of the report's first stack that is the kernel's: lines of the form
   "    #2 0x7f12 in function file:line". */
static void kernel_place(const char *report, char *out, size_t n)
{
    snprintf(out, n, "an unknown place");
    for (const char *line = report; line; line = strchr(line, '\n')) {
        const char *s = line += *line == '\n';
        char place[300];
        size_t len, word;

        s += strspn(s, " ");
        if (*s != '#')
            continue;
        len = strcspn(line, "\n");
        for (word = len; word > 0 && line[word - 1] != ' '; word--)
            ;
        snprintf(place, sizeof place, "%.*s", (int)(len - word), line + word);
        if (cpu_kernel_place(place)) {
            snprintf(out, n, "%s", place);
            return;
        }
    }
}

static void on_report(const char *report)
{
    size_t n = __asan_get_report_access_size();
    char kind[100], where[300], what[64];

    if (!cpu_current) /* the harness itself: nothing that it says now can be trusted */
        abort();
    snprintf(kind, sizeof kind, "AddressSanitizer: %s", __asan_get_report_description());
    snprintf(what, sizeof what, "%s of %zu byte%s",
             __asan_get_report_access_type() ? "write" : "read", n, n == 1 ? "" : "s");
    kernel_place(report, where, sizeof where);
    cpu_sanitizer_caught(kind, where, what, (uintptr_t)__asan_get_report_address());
}

int cpu_sanitizer_open(struct cpu_worker *w)
{
    __asan_set_error_report_callback(on_report);
    w->sanitizer = calloc(1, sizeof(struct stack_range));
    return w->sanitizer ? 0 : -1;
}

void cpu_sanitizer_close(struct cpu_worker *w)
{
    free(w->sanitizer);
}

/* --- stacks ----------------------------------------------------------------------------------- */

/* The sanitizer is told of the switch before it happens: nothing that it watches lies between. The
   worker's own stack is the one that is left for the first fiber of a block. */
void cpu_sanitizer_enter(struct cpu_worker *w, const struct cpu_fiber *f)
{
    struct stack_range *own = w->sanitizer, left, to = *own;

    if (f)
        to = (struct stack_range){w->stack[f->stack] + w->guard_bytes, CPU_STACK_BYTES};
    __sanitizer_start_switch_fiber(NULL, to.bottom, to.bytes);
    __sanitizer_finish_switch_fiber(NULL, &left.bottom, &left.bytes);
    if (!own->bytes)
        *own = left;
}

void cpu_sanitizer_launch_begins(struct cpu_worker *w)
{
    memset(w->sanitizer, 0, sizeof(struct stack_range));
}

/* Frames that were never left keep their fences. */
void cpu_sanitizer_block_abandoned(struct cpu_worker *w)
{
    for (uint32_t i = 0; i < w->nstacks; i++)
        cpu_sanitizer_allow(w->stack[i] + w->guard_bytes, CPU_STACK_BYTES);
}

/* --- memory ----------------------------------------------------------------------------------- */

void cpu_sanitizer_trim(uintptr_t *begin, uintptr_t *end)
{
    while (*begin < *end && __asan_address_is_poisoned((const void *)*begin))
        ++*begin;
    while (*begin < *end && __asan_address_is_poisoned((const void *)(*end - 1)))
        --*end;
}

#endif
