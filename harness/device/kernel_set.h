/*
 * A kernel set: a folder of kernels for one device. Ours is built by make (`kernels/` beside the
 * binary); a user's own folder holds `.cu` (compiled on first use, cached by content), `.so` built
 * for the CPU device, or `.cubin` `.fatbin` `.ptx`; any file names, several entries a file, headers
 * beside them.
 */
#ifndef DEVICE_KERNEL_SET_H
#define DEVICE_KERNEL_SET_H

#include "device/device.h"

struct kernel_set;

/* `dir` NULL: our own set, found beside the running binary. Built modules for the CPU device are
   loaded here, others on first use of one of their entries. ERR_INPUT for an unreadable folder, one
   with no kernel file, or a .so that is no kernel module; a source that does not compile is
   ERR_INPUT with the compiler's first error line. */
int kernel_set_open(struct device *dev, const char *dir, struct kernel_set **out, struct err *err);
/* The files of `first` once more, to be loaded to other places in memory; what was compiled for it
   is not compiled again. `first` must outlive it. */
int kernel_set_open_again(const struct kernel_set *first, struct kernel_set **out, struct err *err);
void kernel_set_close(struct kernel_set *set);

/* Looks `entry` up in whichever file exports it. Two files that do are ERR_INPUT unless one is
   named `module`: that one counts, and kernel_set_note() tells of the other (of one that a fatbin
   holds compressed, which nvcc's defaults do to PTX alone, once that file is loaded). ERR_MISSING
   names module, entry and folder when none does. The kernel is owned by the set. */
int kernel_set_find(struct kernel_set *set, const char *module, const char *entry,
                    struct kernel **out, struct err *err);
/* Once: what the user should know about what was found; false when there is nothing. */
bool kernel_set_note(struct kernel_set *set, char *out, size_t n);
/* Seconds spent loading modules so far, without those that were loaded only to look into them. */
double kernel_set_load_seconds(const struct kernel_set *set);

#endif
