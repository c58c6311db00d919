/* A device as records keep it. */
#ifndef MEASURE_STAMP_H
#define MEASURE_STAMP_H

#include "device/device.h"
#include "record/record.h"

void device_stamp_fill(const struct device_info *info, struct device_stamp *out);

#endif
