/*
 * The canaries are NaNs, as bf16, fp16 and fp32 alike: a kernel that reads them shows it in its
 * result, a kernel that writes them shows it in fenced_check().
 *
 * Where they lie: CUDA has FENCE_BYTES on both sides. On the CPU device the block must end at its
 * guard page, so the canaries behind are the 0 to 15 bytes that 16-byte alignment leaves free
 * there. AddressSanitizer's build reports the access itself.
 */
#include "device/fence.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "device/cpu/cpu_sanitizer.h"

#define ALIGNMENT 16

/* Byte i counted from the block's start. Each aligned half word has all exponent bits of a
   bf16 set and a mantissa other than zero, and differs from its neighbours. */
static unsigned char canary(size_t i)
{
    size_t half = i / 2;
    unsigned word = (half % 2 ? 0xff80u : 0x7f80u) | (unsigned)(1 + half * 37 % 127);

    return (unsigned char)(i % 2 ? word >> 8 : word & 0xff);
}

/* The canaries of one side; `first` is the offset of its first byte in the block. */
static void canary_fill(unsigned char *out, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = canary(first + i);
}

static int upload_side(const struct fenced *f, size_t first, size_t n, struct err *err)
{
    unsigned char bytes[FENCE_BYTES];

    if (!n)
        return 0;
    canary_fill(bytes, first, n);
    return device_upload(f->device, f->base + first, bytes, n, err);
}

int fenced_mend(const struct fenced *f, struct err *err)
{
    if (upload_side(f, 0, f->before, err) < 0 ||
        upload_side(f, f->before + f->bytes, f->after, err) < 0)
        return err_context(err, "canaries of buffer %s", f->label);
    return 0;
}

static void forbid(const struct fenced *f, bool yes)
{
    const unsigned char *before = (const unsigned char *)(uintptr_t)f->base;
    const unsigned char *behind = (const unsigned char *)(uintptr_t)f->ptr + f->bytes;

    if (device_info(f->device)->kind != DEVICE_CPU)
        return;
    if (yes) {
        cpu_sanitizer_forbid(before, f->before);
        cpu_sanitizer_forbid(behind, f->after);
    } else {
        cpu_sanitizer_allow(before, f->before);
        cpu_sanitizer_allow(behind, f->after);
    }
}

int fenced_alloc(struct device *dev, size_t bytes, const char *label, struct fenced *out,
                 struct err *err)
{
    size_t slack = (ALIGNMENT - bytes % ALIGNMENT) % ALIGNMENT;
    struct fenced f = {.device = dev, .bytes = bytes, .before = FENCE_BYTES};

    memset(out, 0, sizeof *out);
    f.after = device_info(dev)->kind == DEVICE_CPU ? slack : FENCE_BYTES;
    snprintf(f.label, sizeof f.label, "%s", label);
    if (bytes > SIZE_MAX - f.before - f.after)
        return err_set(err, ERR_INPUT, "buffer %s: %zu bytes do not fit an address space", label,
                       bytes);
    if (device_alloc(dev, f.before + bytes + f.after, label, &f.base, err) < 0)
        return err_context(err, "buffer %s", label);
    f.ptr = f.base + f.before;
    if (fenced_mend(&f, err) < 0) {
        fenced_free(&f);
        return -1;
    }
    forbid(&f, true);
    *out = f;
    return 0;
}

void fenced_free(struct fenced *f)
{
    if (f->device)
        device_free(f->device, f->base);
    memset(f, 0, sizeof *f);
}

/* Downloads one side and counts the changed bytes; *nearest is the changed byte's offset in
   the block that lies closest to the user's range. */
static int scan_side(const struct fenced *f, size_t first, size_t n, bool last_is_nearest,
                     size_t *changed, size_t *nearest, unsigned char *value, struct err *err)
{
    unsigned char bytes[FENCE_BYTES];

    *changed = 0;
    if (!n)
        return 0;
    if (device_download(f->device, bytes, f->base + first, n, err) < 0)
        return err_context(err, "canaries of buffer %s", f->label);
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == canary(first + i))
            continue;
        if (!*changed || last_is_nearest) {
            *nearest = first + i;
            *value = bytes[i];
        }
        ++*changed;
    }
    return 0;
}

static int check_sides(const struct fenced *f, bool *hit, struct err *err)
{
    size_t end = f->before + f->bytes, changed, at = 0;
    unsigned char value = 0;

    *hit = false;
    if (scan_side(f, end, f->after, false, &changed, &at, &value, err) < 0)
        return -1;
    if (changed) {
        *hit = true;
        err_set(err, ERR_FAULT,
                "buffer %s: written behind its end, first at byte %zu past it (0x%02x where the "
                "canary was 0x%02x; %zu byte%s changed)",
                f->label, at - end, value, canary(at), changed, plural(changed));
        return 0;
    }
    if (scan_side(f, 0, f->before, true, &changed, &at, &value, err) < 0)
        return -1;
    if (changed) {
        *hit = true;
        err_set(err, ERR_FAULT,
                "buffer %s: written before its start, nearest %zu byte%s before it (0x%02x where "
                "the canary was 0x%02x; %zu byte%s changed)",
                f->label, f->before - at, plural(f->before - at), value, canary(at), changed,
                plural(changed));
    }
    return 0;
}

int fenced_check(const struct fenced *f, bool *hit, struct err *err)
{
    int rc;

    forbid(f, false);
    rc = check_sides(f, hit, err);
    forbid(f, true);
    return rc;
}
