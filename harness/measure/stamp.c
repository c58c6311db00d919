#include "measure/stamp.h"

#include <stdio.h>
#include <string.h>

void device_stamp_fill(const struct device_info *info, struct device_stamp *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->spec, sizeof out->spec, "%s", info->spec);
    snprintf(out->name, sizeof out->name, "%s", info->name);
    snprintf(out->driver, sizeof out->driver, "%s", info->driver);
    snprintf(out->uuid, sizeof out->uuid, "%s", info->uuid);
    out->cc_major = info->cc_major;
    out->cc_minor = info->cc_minor;
    out->sm_count = info->sm_count;
    out->memory_bytes = info->memory_bytes;
    out->l2_bytes = info->l2_bytes;
    out->emulated = info->kind == DEVICE_CPU;
}
