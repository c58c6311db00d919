/*
 * The CPU device's own structs; private to it.
 */
#ifndef DEVICE_CPU_DEVICE_H
#define DEVICE_CPU_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "device/cpu/cpu_worker.h"
#include "device/device_ops.h"

#define CPU_MAX_WORKERS                                                                            \
    64 /* each may map 1,024 stacks, and the kernel limits the mappings of a process */

/* A buffer: guard, [.. slack), guard. */
struct cpu_buffer {
    unsigned char *map, *begin; /* the mapping; what the user got */
    size_t map_bytes, bytes;    /* bytes as asked for */
    char label[64];
};

struct cpu_module {
    struct module base;
    uint64_t id; /* never reused within a device */
    void *dl;
    const struct cpu_module_desc *desc;
    size_t tls_module; /* the loader's number of its thread-local block; 0 when it has none */
    struct kernel *kernels;
    const char **entries;
    char path[512];
};

struct cpu_pool {
    pthread_mutex_t lock;
    pthread_cond_t go, done, tick;
    pthread_t thread[CPU_MAX_WORKERS], watchdog;
    unsigned started; /* pool threads running: workers 1 .. started */
    bool watching, quit;
    struct cpu_job *job;
    uint64_t generation;
    unsigned wanted, busy;
};

struct cpu_device {
    struct device base;
    struct schedule schedule;
    double limit_s; /* of processor time a block may take */
    struct cpu_worker
        *worker[CPU_MAX_WORKERS]; /* created on first use; 0 is the calling thread's */
    struct cpu_pool pool;
    struct cpu_buffer *buffer;
    size_t nbuffers, cap;
    uint64_t modules;          /* loaded ever */
    struct cpu_graph *capture; /* being recorded; NULL when not */
};

static inline struct cpu_device *cpu_device_of(struct device *dev)
{
    return (struct cpu_device *)(void *)dev;
}

/* cpu_memory.c */
int cpu_alloc(struct device *dev, size_t bytes, const char *label, dev_ptr *out, struct err *err);
void cpu_free(struct device *dev, dev_ptr ptr);
void cpu_free_all(struct cpu_device *dev);
/* The buffer whose mapping holds the address, else the nearest; NULL when there is none. */
const struct cpu_buffer *cpu_buffer_near(const struct cpu_device *dev, uintptr_t address);
/* ERR_FAULT naming the first buffer whose slack (the bytes up to its guard page) was written. */
int cpu_check_slack(const struct cpu_device *dev, struct err *err);
/* ERR_INPUT unless [ptr, ptr + bytes) lies in one buffer. */
int cpu_check_range(const struct cpu_device *dev, dev_ptr ptr, size_t bytes, const char *what,
                    struct err *err);

/* cpu_module.c */
int cpu_module_load(struct device *dev, const char *path, struct module **out, struct err *err);
void cpu_module_unload(struct module *m);
int cpu_module_kernel(struct module *m, const char *entry, struct kernel **out, struct err *err);
const char *const *cpu_module_entries(struct module *m);
/* The calling thread's static shared memory of the module. */
void cpu_module_shared(const struct cpu_module *m, unsigned char **begin, size_t *bytes);

/* What to do about a file that is no module. */
#define CPU_MAKE_MODULE "make it with scripts/build-cpu-module, or take it out of the folder"

/* cpu_elf.c: ERR_INPUT unless the file is a whole shared object for this machine. */
int cpu_elf_check(const char *path, struct err *err);

/* cpu_pool.c */
int cpu_run(struct cpu_device *dev, struct cpu_job *job, struct err *err);
void cpu_pool_close(struct cpu_device *dev);
void cpu_pool_open(struct cpu_device *dev);
/* Seconds of processor time after which a block counts as an infinite loop; the default is 60. */
void cpu_set_block_limit(struct device *dev, double seconds);

/* cpu_place.c: "12 bytes past the end of buffer gate (64 bytes)" and the like, within n bytes. */
void cpu_describe_address(const struct cpu_device *dev, const struct cpu_worker *w, uintptr_t at,
                          char *out, size_t n);

/* cpu_fault.c */
int cpu_watch_signal(void); /* the watchdog's */
void cpu_handlers_install(void);
void cpu_signal_stack_enter(struct cpu_worker *w, void *saved);
void cpu_signal_stack_leave(const void *saved);
void cpu_fault_describe(const struct cpu_device *dev, const struct cpu_worker *w, struct err *err);

#endif
