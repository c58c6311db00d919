#include "measure/stamp.h"

#include <stdio.h>

#include "measure/clocks.h"

void stamp_device(const struct device_info *info, struct device_stamp *out)
{
    *out = (struct device_stamp){.cc_major = info->cc_major,
                                 .cc_minor = info->cc_minor,
                                 .sm_count = info->sm_count,
                                 .memory_bytes = info->memory_bytes,
                                 .l2_bytes = info->l2_bytes,
                                 .emulated = info->kind == DEVICE_CPU};
    snprintf(out->spec, sizeof(out->spec), "%s", info->spec);
    snprintf(out->name, sizeof(out->name), "%s", info->name);
    snprintf(out->driver, sizeof(out->driver), "%s", info->driver);
    snprintf(out->uuid, sizeof(out->uuid), "%s", info->uuid);

    struct clocks *clocks = NULL;
    struct err unknown = ERR_INIT; /* no NVML: the firmware is not known */
    (void)clocks_open(info, &clocks, &unknown);
    clocks_firmware(clocks, out->firmware, sizeof(out->firmware));
    clocks_close(clocks);
}
