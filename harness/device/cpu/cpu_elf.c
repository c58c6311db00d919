/*
 * Is a file a whole shared object of this machine? The loader maps what the file's tables say, and
 * one that was cut short is a bus error at whatever page is missing.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/cpu/cpu_device.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static bool lies_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

static bool of_this_machine(const Elf64_Ehdr *h)
{
    return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == MACHINE && h->e_type == ET_DYN &&
           h->e_phentsize == sizeof(Elf64_Phdr) && h->e_shentsize == sizeof(Elf64_Shdr);
}

static bool whole(int fd, const Elf64_Ehdr *h, uint64_t size)
{
    if (!lies_within(h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), size))
        return false;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        uint64_t at = h->e_phoff + i * sizeof(Elf64_Phdr);
        Elf64_Phdr p;

        if (at < h->e_phoff || !lies_within(at, sizeof p, size) ||
            pread(fd, &p, sizeof p, (off_t)at) != (ssize_t)sizeof p ||
            !lies_within(p.p_offset, p.p_filesz, size))
            return false;
    }
    return true;
}

int cpu_elf_check(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    Elf64_Ehdr h;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        rc = err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
    else if (pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h || !of_this_machine(&h))
        rc = err_set(err, ERR_INPUT, "%s: not a shared object for this machine; " CPU_MAKE_MODULE,
                     path);
    else if (!whole(fd, &h, (uint64_t)st.st_size))
        rc = err_set(err, ERR_INPUT, "%s: cut short at %lld bytes; " CPU_MAKE_MODULE, path,
                     (long long)st.st_size);
    if (fd >= 0)
        close(fd);
    return rc;
}
