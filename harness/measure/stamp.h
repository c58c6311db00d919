/* What a record says about the device a run was made on. */
#ifndef MEASURE_STAMP_H
#define MEASURE_STAMP_H

#include "device/device.h"
#include "record/record.h"

void stamp_device(const struct device_info *info, struct device_stamp *out);

#endif
