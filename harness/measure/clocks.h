/*
 * The state of a GPU while it is measured, from NVML (opened at run time). What a device does not
 * offer is NAN: GB10 has no memory clock and no power limit to read, the CPU device has nothing.
 */
#ifndef MEASURE_CLOCKS_H
#define MEASURE_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

struct clocks; /* opaque */

struct clock_reading {
    double sm_mhz, mem_mhz, temperature_c, power_w, energy_j;
    bool throttle_known;
    uint64_t throttle; /* NVML's reason bits; 0 none */
};

/* ERR_MISSING with the reason when there is no NVML or it does not know the device; measuring
   goes on without it. */
int clocks_open(const struct device_info *info, struct clocks **out, struct err *err);
/* The same with another library than libnvidia-ml.so.1 (tests). */
int clocks_open_with(const char *library, const struct device_info *info, struct clocks **out,
                     struct err *err);
void clocks_close(struct clocks *c); /* NULL allowed */

/* Reads what there is; all NAN for a NULL `c`. */
void clocks_read(struct clocks *c, struct clock_reading *out);

/* The version of the device's VBIOS; "" for a NULL `c` and where NVML does not say. */
void clocks_firmware(const struct clocks *c, char *out, size_t n);

/* The reasons that mean the hardware slowed itself down (thermal, power brake, hardware
   slowdown). A software power cap or an idle clock is not among them: those show in the clock
   itself, which is held against the run's own. */
bool clocks_slowed(uint64_t throttle);

/* "hw-thermal, sw-power-cap", or "none"; unknown bits as hex. */
void clocks_throttle_text(uint64_t throttle, char *out, size_t n);

#endif
