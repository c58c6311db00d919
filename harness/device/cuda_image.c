#include "device/cuda_image.h"

#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The container's header: magic, version, header size, then the size of what follows it
   (fatbinary_section.h and cuobjdump's output on any fatbin). */
struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t payload_bytes;
};
#define FATBIN_MAGIC 0xba55ed50u

#define EM_NVIDIA_CUDA 190  /* EM_CUDA in newer <elf.h> */
#define STO_CUDA_ENTRY 0x10 /* in st_other: a kernel; so in the cubins of 11.8, 12.9, 13.0, 13.5 */
#define FATBIN_ALIGN   8    /* of the images within a fatbin */
#define PTX_HEAD_BYTES 4096 /* comments may precede ".version" */

/* [first, first + size) within n bytes. */
static int inside(uint64_t first, uint64_t size, size_t n)
{
    return first <= n && size <= n - first;
}

static int check_fatbin(const char *path, const void *bytes, size_t n, struct err *err)
{
    struct fatbin_header h;

    memcpy(&h, bytes, sizeof h);
    if (h.header_bytes < sizeof h || !inside(h.header_bytes, h.payload_bytes, n))
        return err_set(err, ERR_INPUT,
                       "%s: this fatbin is cut short: its header tells of %llu bytes, the file has "
                       "%zu; build it again",
                       path, (unsigned long long)h.payload_bytes + h.header_bytes, n);
    return 0;
}

static Elf64_Shdr section(const Elf64_Ehdr *h, const unsigned char *bytes, unsigned i)
{
    Elf64_Shdr s;

    memcpy(&s, bytes + h->e_shoff + (uint64_t)i * sizeof s, sizeof s);
    return s;
}

/* Whether all that the headers point to lies within n bytes. */
static bool fits(const Elf64_Ehdr *h, const unsigned char *bytes, size_t n)
{
    if ((h->e_shnum && h->e_shentsize != sizeof(Elf64_Shdr)) ||
        !inside(h->e_shoff, (uint64_t)h->e_shnum * h->e_shentsize, n) ||
        !inside(h->e_phoff, (uint64_t)h->e_phnum * h->e_phentsize, n))
        return false;
    for (unsigned i = 0; i < h->e_shnum; i++) {
        Elf64_Shdr s = section(h, bytes, i);

        if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL && !inside(s.sh_offset, s.sh_size, n))
            return false;
    }
    return true;
}

static bool for_cuda(const Elf64_Ehdr *h)
{
    return h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_machine == EM_NVIDIA_CUDA;
}

static int check_elf(const char *path, const unsigned char *bytes, size_t n, struct err *err)
{
    Elf64_Ehdr h;

    if (n < sizeof h)
        return err_set(err, ERR_INPUT, "%s: cut short within its ELF header", path);
    memcpy(&h, bytes, sizeof h);
    if (!for_cuda(&h))
        return err_set(err, ERR_INPUT,
                       "%s: an ELF file for another machine than a CUDA GPU (ELF machine %u)", path,
                       h.e_machine);
    if (!fits(&h, bytes, n))
        return err_set(err, ERR_INPUT,
                       "%s: this cubin is cut short or corrupt: its headers point past the file's "
                       "%zu bytes; build it again",
                       path, n);
    return 0;
}

static int check_ptx(const char *path, const void *bytes, size_t n, struct err *err)
{
    if (!memmem(bytes, n < PTX_HEAD_BYTES ? n : PTX_HEAD_BYTES, ".version", 8))
        return err_set(err, ERR_INPUT, "%s: not a cubin, fatbin or PTX file", path);
    if (memchr(bytes, '\0', n))
        return err_set(err, ERR_INPUT, "%s: PTX text with a NUL byte in it", path);
    return 0;
}

int cuda_image_check(const char *path, const void *bytes, size_t n, struct err *err)
{
    uint32_t magic = 0;

    if (n < sizeof(struct fatbin_header))
        return err_set(err, ERR_INPUT, "%s: %zu bytes are no kernel module", path, n);
    memcpy(&magic, bytes, sizeof magic);
    if (magic == FATBIN_MAGIC)
        return check_fatbin(path, bytes, n, err);
    if (!memcmp(bytes, ELFMAG, SELFMAG))
        return check_elf(path, bytes, n, err);
    return check_ptx(path, bytes, n, err);
}

/* --- the entries that show -------------------------------------------------------------------- */

static void add_name(struct text *names, const void *name, size_t n)
{
    text_add_bytes(names, name, n);
    text_add(names, "\n");
}

static void symbols(const unsigned char *bytes, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                    struct text *names)
{
    for (uint64_t at = 0; table->sh_size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
        const unsigned char *name, *end;
        Elf64_Sym s;

        memcpy(&s, bytes + table->sh_offset + at, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || !(s.st_other & STO_CUDA_ENTRY) ||
            s.st_shndx == SHN_UNDEF || s.st_name >= strings->sh_size)
            continue;
        name = bytes + strings->sh_offset + s.st_name;
        end = memchr(name, '\0', strings->sh_size - s.st_name);
        if (end)
            add_name(names, name, (size_t)(end - name));
    }
}

static void cubin_entries(const unsigned char *bytes, size_t n, struct text *names)
{
    Elf64_Ehdr h;

    if (n < sizeof h)
        return;
    memcpy(&h, bytes, sizeof h);
    if (!for_cuda(&h) || !fits(&h, bytes, n))
        return;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr table = section(&h, bytes, i), strings;

        if (table.sh_type != SHT_SYMTAB || table.sh_link >= h.e_shnum)
            continue;
        strings = section(&h, bytes, table.sh_link);
        if (strings.sh_type == SHT_STRTAB)
            symbols(bytes, &table, &strings, names);
    }
}

/* Behind a comment or a string that begins at p; else p. */
static const char *skipped(const char *p, const char *end)
{
    const char *close = *p == '"' ? "\"" : NULL;
    const char *at;

    if (end - p >= 2 && *p == '/')
        close = p[1] == '/' ? "\n" : p[1] == '*' ? "*/" : NULL;
    if (!close)
        return p;
    p += *p == '"' ? 1 : 2;
    at = memmem(p, (size_t)(end - p), close, strlen(close));
    return at ? at + strlen(close) : end;
}

static bool is_identifier(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static void ptx_entries(const char *p, size_t n, struct text *names)
{
    static const char word[] = ".entry";
    const char *end = p + n;

    while (p < end) {
        const char *next = skipped(p, end), *name;

        if (next == p && (size_t)(end - p) > strlen(word) && !memcmp(p, word, strlen(word)) &&
            isspace((unsigned char)p[strlen(word)])) {
            for (name = p + strlen(word); name < end && isspace((unsigned char)*name); name++)
                ;
            for (next = name; next < end && is_identifier(*next); next++)
                ;
            if (next > name)
                add_name(names, name, (size_t)(next - name));
        }
        p = next > p ? next : p + 1;
    }
}

void cuda_image_entries(const void *bytes, size_t n, struct text *names)
{
    uint32_t magic = 0;

    memcpy(&magic, bytes, n < sizeof magic ? n : sizeof magic);
    if (magic != FATBIN_MAGIC && memcmp(&magic, ELFMAG, SELFMAG) != 0) {
        ptx_entries(bytes, n, names);
        return;
    }
    /* The headers between a fatbin's images are nowhere documented. An image that is a cubin begins
       with ELF's magic, and it is one when its own headers fit. */
    for (size_t at = 0; at < n && n - at >= sizeof(Elf64_Ehdr); at += FATBIN_ALIGN) {
        const unsigned char *image = (const unsigned char *)bytes + at;

        if (!memcmp(image, ELFMAG, SELFMAG))
            cubin_entries(image, n - at, names);
        if (magic != FATBIN_MAGIC)
            break;
    }
}
