/*
 * NVML's interface is declared here from its reference manual ("NVML API Reference Guide"), as
 * the driver's is in device/cuda_api.h; functions that a library lacks leave their field NAN.
 */
#include "measure/clocks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"

struct nvml_device;

enum { NVML_SUCCESS = 0 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 }; /* nvmlClockType_t */
enum { NVML_TEMPERATURE_GPU = 0 };              /* nvmlTemperatureSensors_t */

/* nvmlClocksEventReasons. */
enum {
    REASON_IDLE = 0x1,
    REASON_APP_CLOCKS = 0x2,
    REASON_SW_POWER_CAP = 0x4,
    REASON_HW_SLOWDOWN = 0x8,
    REASON_SYNC_BOOST = 0x10,
    REASON_SW_THERMAL = 0x20,
    REASON_HW_THERMAL = 0x40,
    REASON_HW_POWER_BRAKE = 0x80,
    REASON_DISPLAY_CLOCKS = 0x100,
};

static const struct {
    uint64_t bit;
    const char *name;
} reasons[] = {
    {REASON_IDLE, "idle"},
    {REASON_APP_CLOCKS, "application-clocks"},
    {REASON_SW_POWER_CAP, "sw-power-cap"},
    {REASON_HW_SLOWDOWN, "hw-slowdown"},
    {REASON_SYNC_BOOST, "sync-boost"},
    {REASON_SW_THERMAL, "sw-thermal"},
    {REASON_HW_THERMAL, "hw-thermal"},
    {REASON_HW_POWER_BRAKE, "hw-power-brake"},
    {REASON_DISPLAY_CLOCKS, "display-clocks"},
};

struct clocks {
    void *library;
    struct nvml_device *device;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int result);
    int (*by_uuid)(const char *uuid, struct nvml_device **device);
    int (*clock_info)(struct nvml_device *device, int type, unsigned *mhz);
    int (*temperature)(struct nvml_device *device, int sensor, unsigned *celsius);
    int (*power)(struct nvml_device *device, unsigned *milliwatts);
    int (*energy)(struct nvml_device *device, unsigned long long *millijoules);
    int (*throttle)(struct nvml_device *device, unsigned long long *reasons);
    int (*vbios)(struct nvml_device *device, char *version, unsigned length);
};

/* The first of the two names that the library has, as a function pointer at `out`; none leaves
   NULL. */
static void bind(void *library, void *out, const char *name, const char *older)
{
    void *symbol = dlsym(library, name);

    if (!symbol && older)
        symbol = dlsym(library, older);
    memcpy(out, &symbol, sizeof symbol);
}

static void bind_all(struct clocks *c)
{
    bind(c->library, &c->init, "nvmlInit_v2", "nvmlInit");
    bind(c->library, &c->shutdown, "nvmlShutdown", NULL);
    bind(c->library, &c->error_string, "nvmlErrorString", NULL);
    bind(c->library, &c->by_uuid, "nvmlDeviceGetHandleByUUID", NULL);
    bind(c->library, &c->clock_info, "nvmlDeviceGetClockInfo", NULL);
    bind(c->library, &c->temperature, "nvmlDeviceGetTemperature", NULL);
    bind(c->library, &c->power, "nvmlDeviceGetPowerUsage", NULL);
    bind(c->library, &c->energy, "nvmlDeviceGetTotalEnergyConsumption", NULL);
    bind(c->library, &c->throttle, "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetCurrentClocksThrottleReasons");
    bind(c->library, &c->vbios, "nvmlDeviceGetVbiosVersion", NULL);
}

static int check(const struct clocks *c, const char *call, int result, struct err *err)
{
    if (result == NVML_SUCCESS)
        return 0;
    return err_set(err, ERR_MISSING, "%s: %s", call,
                   c->error_string ? c->error_string(result) : "failed");
}

int clocks_open_with(const char *library, const struct device_info *info, struct clocks **out,
                     struct err *err)
{
    struct clocks *c;
    void *handle;

    *out = NULL;
    if (info->kind != DEVICE_CUDA)
        return err_set(err, ERR_MISSING, "%s has no clocks to read", info->spec);
    handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_set(err, ERR_MISSING, "no NVML: %s", dlerror());
    c = xcalloc(1, sizeof *c);
    c->library = handle;
    bind_all(c);
    if (!c->init || !c->shutdown || !c->by_uuid)
        err_set(err, ERR_MISSING, "%s is no NVML", library);
    else if (!check(c, "nvmlInit", c->init(), err)) {
        if (!check(c, "nvmlDeviceGetHandleByUUID", c->by_uuid(info->uuid, &c->device), err)) {
            *out = c;
            return 0;
        }
        c->shutdown();
    }
    dlclose(handle);
    free(c);
    return -1;
}

int clocks_open(const struct device_info *info, struct clocks **out, struct err *err)
{
    return clocks_open_with(NVML_LIBRARY, info, out, err);
}

void clocks_close(struct clocks *c)
{
    if (!c)
        return;
    c->shutdown();
    dlclose(c->library);
    free(c);
}

void clocks_firmware(const struct clocks *c, char *out, size_t n)
{
    if (!c || !c->vbios || c->vbios(c->device, out, (unsigned)n) != NVML_SUCCESS)
        snprintf(out, n, "%s", "");
}

static double clock_mhz(struct clocks *c, int type)
{
    unsigned mhz = 0;

    if (!c->clock_info || c->clock_info(c->device, type, &mhz) != NVML_SUCCESS)
        return NAN64;
    return mhz;
}

void clocks_read(struct clocks *c, struct clock_reading *out)
{
    unsigned value = 0;
    unsigned long long wide = 0;

    *out = (struct clock_reading){
        .sm_mhz = NAN64,
        .mem_mhz = NAN64,
        .temperature_c = NAN64,
        .power_w = NAN64,
        .energy_j = NAN64,
    };
    if (!c)
        return;
    out->sm_mhz = clock_mhz(c, NVML_CLOCK_SM);
    out->mem_mhz = clock_mhz(c, NVML_CLOCK_MEM);
    if (c->temperature && !c->temperature(c->device, NVML_TEMPERATURE_GPU, &value))
        out->temperature_c = value;
    if (c->power && !c->power(c->device, &value))
        out->power_w = value / 1e3;
    if (c->energy && !c->energy(c->device, &wide))
        out->energy_j = (double)wide / 1e3;
    if (c->throttle && !c->throttle(c->device, &wide)) {
        out->throttle_known = true;
        out->throttle = wide;
    }
}

bool clocks_slowed(uint64_t throttle)
{
    return throttle &
           (REASON_HW_SLOWDOWN | REASON_SW_THERMAL | REASON_HW_THERMAL | REASON_HW_POWER_BRAKE);
}

void clocks_throttle_text(uint64_t throttle, char *out, size_t n)
{
    size_t at = 0;

    snprintf(out, n, "none");
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (!(throttle & reasons[i].bit) || at >= n)
            continue;
        at += (size_t)snprintf(out + at, n - at, "%s%s", at ? ", " : "", reasons[i].name);
        throttle &= ~reasons[i].bit;
    }
    if (throttle && at < n)
        snprintf(out + at, n - at, "%s0x%llx", at ? ", " : "", (unsigned long long)throttle);
}
