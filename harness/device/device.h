/*
 * A device runs kernels: `cuda:N` through the driver API, or `cpu`, which runs the kernels' own
 * sources compiled by g++ (see device/cpu/). Everything above this header treats both alike.
 *
 * One device has one ordered stream: uploads, copies, fills and launches happen in the order of the
 * calls. device_sync() waits for all of them and reports what went wrong. Not thread-safe: one
 * thread drives a device.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

/* An address in the device's memory (a CUdeviceptr; on the CPU device a host address). */
typedef uint64_t dev_ptr;

enum device_kind { DEVICE_CPU, DEVICE_CUDA };

struct extent {
    uint32_t x, y, z;
};

/* What a launch may ask for. The harness holds every launch, on any device, to GB10's limits as
   well as to the device's own: a launch that the target would refuse is refused everywhere. */
struct launch_limits {
    uint32_t threads_per_block;
    uint32_t shared_per_block; /* bytes, static + dynamic, with the opt-in */
    struct extent block;
    struct extent grid;
};

extern const struct launch_limits gb10_limits;

struct device_info {
    enum device_kind kind;
    char spec[32];          /* "cpu", "cuda:0" */
    char name[128];         /* "NVIDIA H200"; for cpu the processor's name and "(emulated)" */
    int cc_major, cc_minor; /* compute capability; 0.0 for cpu */
    uint32_t sm_count;      /* worker threads for cpu */
    uint64_t memory_bytes;
    uint64_t l2_bytes;
    char driver[64]; /* driver version text, "" for cpu */
    char uuid[48];   /* "" when unknown */
    struct launch_limits limits;
};

struct device; /* opaque */
struct module; /* opaque: a loaded .cubin/.fatbin/.ptx, or a CPU kernel .so */
struct event;  /* opaque: a point in the stream */
struct graph;  /* opaque: recorded launches */

#define KERNEL_MAX_PARAMS 48

/* A kernel entry of a loaded module. Owned by its module. */
struct kernel {
    struct device *device;
    struct module *module;
    char entry[128];
    unsigned nparams;
    /* Of each parameter, from the kernel's own signature: its bytes, and its kind: 'p' pointer,
       'u' 'i' 'f' 4 bytes, 'U' 'I' 'd' 8 bytes, '?' when the device knows only the size (CUDA). */
    uint8_t param_size[KERNEL_MAX_PARAMS];
    char param_kind[KERNEL_MAX_PARAMS + 1];
    uint32_t registers;     /* per thread; 0 when not known (cpu) */
    uint32_t static_shared; /* bytes */
    uint32_t local_bytes;   /* stack and spills per thread */
    uint32_t max_threads;   /* by the kernel's own launch bounds and registers */
    struct hash content;    /* of the module's file */
    char module_path[512];  /* as loaded; relative where it was given so */
    char flags[256];        /* compiler and options that made it; "" when not known */
    void *handle;           /* the device's own */
};

/* --- open and close --------------------------------------------------------------------------- */

/* "cpu", "cuda", "cuda:N", or "default" (the first GPU, else cpu). ERR_MISSING says which of
   driver, device or symbol is absent; ERR_INPUT when the text is none of these. */
int device_open(const char *spec, struct device **out, struct err *err);
void device_close(struct device *dev); /* frees what is left; NULL allowed */
const struct device_info *device_info(const struct device *dev);

/* Fills `infos` with the devices of this machine, cpu first; returns how many (at most `max`).
   `why_no_cuda` (may be NULL) gets the reason when there is no CUDA device, else "". */
unsigned device_enumerate(struct device_info *infos, unsigned max, char *why_no_cuda, size_t n);

/* --- memory ----------------------------------------------------------------------------------- */

/* At least 256-byte aligned on CUDA. On the CPU device the block ENDS at an unmapped guard page,
   rounded down to 16 bytes of alignment, and another guard page precedes it: an access outside is a
   kernel fault that names the buffer. `label` is kept for that message. */
int device_alloc(struct device *dev, size_t bytes, const char *label, dev_ptr *out,
                 struct err *err);
void device_free(struct device *dev, dev_ptr ptr); /* 0 allowed */
int device_upload(struct device *dev, dev_ptr dst, const void *src, size_t bytes, struct err *err);
int device_download(struct device *dev, void *dst, dev_ptr src, size_t bytes,
                    struct err *err); /* waits */
int device_copy(struct device *dev, dev_ptr dst, dev_ptr src, size_t bytes, struct err *err);
int device_fill32(struct device *dev, dev_ptr dst, uint32_t word, size_t words, struct err *err);

/* --- modules ---------------------------------------------------------------------------------- */

int module_load(struct device *dev, const char *path, struct module **out, struct err *err);
void module_unload(struct module *m);
/* ERR_MISSING names module path and entry. */
int module_kernel(struct module *m, const char *entry, struct kernel **out, struct err *err);
/* The names of all entries, NULL-terminated; owned by the module. CUDA: by
   cuModuleEnumerateFunctions. */
const char *const *module_entries(struct module *m);

/* --- launch: use device/launch.h, which checks arguments; this is what it calls --------------- */

struct launch;
int device_launch(struct device *dev, const struct launch *launch, struct err *err);

/* Shows each launch to `seen` before the backend gets it, so that a record can say which
   kernels ran with which geometry. One watcher per device, which must outlive its use; NULL
   ends it. */
struct launch_watch {
    void (*seen)(void *ctx, const struct launch *launch);
    void *ctx;
};
void device_watch(struct device *dev, const struct launch_watch *watch);

int device_sync(struct device *dev, struct err *err);

/* --- time and graphs -------------------------------------------------------------------------- */

int event_create(struct device *dev, struct event **out, struct err *err);
void event_free(struct event *e);
int event_record(struct event *e, struct err *err);
/* Waits for `stop`; milliseconds between the two. */
int event_elapsed_ms(struct event *start, struct event *stop, double *ms, struct err *err);

/* Between begin and end, launches, copies and fills are recorded, not run. The CPU device records
   and replays a plain list. */
int graph_begin(struct device *dev, struct err *err);
int graph_end(struct device *dev, struct graph **out, struct err *err);
int graph_launch(struct graph *g, struct err *err);
void graph_free(struct graph *g);

/* --- the CPU device's adversarial modes ---------------------------------------------------------
   No effect on CUDA, where device_set_schedule() returns false. */

enum thread_order {
    ORDER_FORWARD,
    ORDER_REVERSE,
    ORDER_RANDOM, /* from here on chance decides: any thread that can run */
    ORDER_WARPS,  /* a warp as far as it can alone, then a random other */
};
enum shared_fill { SHARED_FILL_NAN, SHARED_FILL_ZERO, SHARED_FILL_BIG }; /* before each block */

struct schedule {
    enum thread_order order; /* of threads between barriers, and of blocks */
    uint64_t seed;           /* for ORDER_RANDOM and ORDER_WARPS */
    enum shared_fill fill;   /* static and dynamic shared memory before each block */
    unsigned workers;        /* OS threads that blocks are spread over; 0 = all CPUs */
    bool late_async_copies;  /* cp.async lands as late as its waits allow, instead of at once */
};

bool device_set_schedule(struct device *dev, const struct schedule *schedule);

#endif
