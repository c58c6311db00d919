#include "device/cuda_image.h"

#include <elf.h>
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

static int check_sections(const Elf64_Ehdr *h, const unsigned char *bytes, size_t n)
{
    for (unsigned i = 0; i < h->e_shnum; i++) {
        Elf64_Shdr s;

        memcpy(&s, bytes + h->e_shoff + (uint64_t)i * sizeof s, sizeof s);
        if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL && !inside(s.sh_offset, s.sh_size, n))
            return -1;
    }
    return 0;
}

static int check_elf(const char *path, const unsigned char *bytes, size_t n, struct err *err)
{
    Elf64_Ehdr h;

    if (n < sizeof h)
        return err_set(err, ERR_INPUT, "%s: cut short within its ELF header", path);
    memcpy(&h, bytes, sizeof h);
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_NVIDIA_CUDA)
        return err_set(err, ERR_INPUT,
                       "%s: an ELF file for another machine than a CUDA GPU (ELF machine %u)", path,
                       h.e_machine);
    if ((h.e_shnum && h.e_shentsize != sizeof(Elf64_Shdr)) ||
        !inside(h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize, n) ||
        !inside(h.e_phoff, (uint64_t)h.e_phnum * h.e_phentsize, n) ||
        check_sections(&h, bytes, n) < 0)
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
