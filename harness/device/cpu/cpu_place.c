/* What lies at an address, for the texts of faults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/cpu/cpu_device.h"

#define NEAR_BYTES (1ull << 30) /* an address further from every buffer is wild */

/* How an address lies to [begin, end): the verb-less part of a sentence, and the bytes between. */
static const char *relation(uintptr_t at, uintptr_t begin, uintptr_t end, unsigned long long *bytes)
{
    *bytes = at < begin ? begin - at : at < end ? at - begin : at - end;
    return at < begin ? "before the start of" : at < end ? "into" : "past the end of";
}

/* The variable's name in the source, from its linkage name, which ends in <length>cpu_static_<name>
   and perhaps a number. */
static void shared_name(const char *linkage, char *out, size_t n)
{
    static const char mark[] = "cpu_static_";
    const char *at = strstr(linkage, mark), *digits = at;
    size_t length;

    while (digits && digits > linkage && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    length = digits ? strtoul(digits, NULL, 10) : 0;
    if (length < sizeof mark)
        snprintf(out, n, "%s", linkage);
    else
        snprintf(out, n, "%.*s", (int)(length - strlen(mark)), at + strlen(mark));
}

/* False when it is none of the module's static shared variables and their fences, or when their
   addresses are not known. */
static bool describe_static(const struct cpu_worker *w, uintptr_t at, char *out, size_t n)
{
    for (const struct cpu_symbol *s = w->job->module->desc->shared; s->name; s++) {
        uintptr_t begin = (uintptr_t)s->address, end = begin + s->bytes;
        unsigned long long bytes;
        const char *how = relation(at, begin, end, &bytes);
        char name[100];

        if (!begin || at < begin - CPU_SHARED_FENCE || at >= end + CPU_SHARED_FENCE)
            continue;
        shared_name(s->name, name, sizeof name);
        snprintf(out, n, "%llu byte%s %s static shared memory %s (%llu byte%s)", bytes,
                 plural(bytes), how, name, (unsigned long long)s->bytes, plural(s->bytes));
        return true;
    }
    return false;
}

static bool describe_dynamic(const struct cpu_worker *w, uintptr_t at, char *out, size_t n)
{
    uintptr_t begin = (uintptr_t)w->block.shared, end = begin + w->block.shared_bytes;
    unsigned long long bytes;
    const char *how = relation(at, begin, end, &bytes);

    if (at - (uintptr_t)w->window >= w->window_bytes)
        return false;
    if (at >= end)
        snprintf(out, n, "%llu byte%s %s the %llu bytes of dynamic shared memory", bytes,
                 plural(bytes), how, (unsigned long long)w->block.shared_bytes);
    else
        snprintf(out, n, "%llu byte%s %s dynamic shared memory", bytes, plural(bytes), how);
    return true;
}

/* False when there is none, or it is far away. */
static bool describe_buffer(const struct cpu_buffer *b, uintptr_t at, char *out, size_t n)
{
    uintptr_t begin = b ? (uintptr_t)b->begin : 0, end = b ? begin + b->bytes : 0;
    unsigned long long bytes;
    const char *how;

    cpu_sanitizer_trim(&begin, &end);
    how = relation(at, begin, end, &bytes);
    if (!b || ((at < begin || at >= end) && bytes >= NEAR_BYTES))
        return false;
    snprintf(out, n, "%llu byte%s %s buffer %s (%zu byte%s)", bytes, plural(bytes), how, b->label,
             (size_t)(end - begin), plural(end - begin));
    return true;
}

void cpu_describe_address(const struct cpu_device *dev, const struct cpu_worker *w, uintptr_t at,
                          char *out, size_t n)
{
    if (at < 65536)
        snprintf(out, n, "null pointer (address 0x%llx)", (unsigned long long)at);
    else if (!describe_dynamic(w, at, out, n) && !describe_static(w, at, out, n) &&
             !describe_buffer(cpu_buffer_near(dev, at), at, out, n))
        snprintf(out, n, "wild address 0x%llx, in no buffer", (unsigned long long)at);
}
