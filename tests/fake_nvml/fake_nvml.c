/* NVML as GB10 has it: no memory clock, no power reading; the reasons under their older name
   only. */
#include <string.h>

/* Every symbol here is looked up by name; nobody includes a prototype. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static int users;

int nvmlInit_v2(void)
{
    users++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    users--;
    return SUCCESS;
}

int fake_nvml_users(void)
{
    return users;
}

const char *nvmlErrorString(int result)
{
    return result == NOT_FOUND ? "Not Found" : "Not Supported";
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = &users;
    return strcmp(uuid, "GPU-known") ? NOT_FOUND : SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    (void)device;
    *mhz = 2418;
    return type == 1 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device;
    (void)sensor;
    *celsius = 61;
    return SUCCESS;
}

int nvmlDeviceGetVbiosVersion(void *device, char *version, unsigned length)
{
    static const char text[] = "96.00.A5.00.03";

    (void)device;
    if (length < sizeof text)
        return NOT_SUPPORTED;
    memcpy(version, text, sizeof text);
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 0;
    return NOT_SUPPORTED;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    *reasons = 0x20;
    return SUCCESS;
}
