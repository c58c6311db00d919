#include "measure/roof.h"

#include <math.h>
#include <stddef.h>

#include "base/number.h"

void roofs_init(struct roofs *r)
{
    *r = (struct roofs){NAN64, NAN64, NAN64, NAN64, NAN64, NAN64, NAN64, NAN64};
}

/* work / rate, 0 for no work whatever the rate; NaN for either is NaN. */
static double time_of(double work, double rate)
{
    return work == 0 ? 0 : work / rate;
}

/* NaN when any of the three is: a roof that lacks one was not measured. */
static double best_of(double a, double b, double c)
{
    double ab = a > b ? a : b;

    if (isnan(a) || isnan(b) || isnan(c))
        return NAN64;
    return ab > c ? ab : c;
}

static double memory_us(const struct cost *c, const struct roofs *r, enum temperature t)
{
    double dram = best_of(r->dram_read, r->dram_write, r->dram_copy);
    double may_stay = t == BENCH_COLD ? c->write_bytes : c->read_bytes + c->write_bytes;
    double cached = may_stay < r->l2_bytes ? may_stay : r->l2_bytes;

    return time_of(c->read_bytes + c->write_bytes - cached, dram) + time_of(cached, r->l2_read);
}

static struct roof_floor binding(double memory, double compute)
{
    if (isnan(memory) || isnan(compute))
        return (struct roof_floor){NAN64, "", NAN64};
    if (compute > memory)
        return (struct roof_floor){compute, "compute", compute};
    return (struct roof_floor){memory, "memory", memory};
}

struct roof_floor roof_floor(const struct cost *cost, const struct roofs *r, enum temperature t)
{
    double rate = cost->unit == COST_BF16_MMA ? r->bf16_mma : r->ffma;
    double fastest = fmax(rate, fmax(r->ffma, fmax(r->bf16_mma, r->tf32_mma))); /* skips NaN */
    double memory = memory_us(cost, r, t);
    struct roof_floor floor = binding(memory, time_of(cost->flops, rate));

    floor.least_us = binding(memory, time_of(cost->flops, fastest)).us;
    return floor;
}

/* In units of work per microsecond: 1 GB/s is 1e3 bytes/us, 1 TFLOP/s is 1e6 flops/us. */
static double sheet_rate(const struct device_sheet *s, const char *name, const char *fallback,
                         double scale)
{
    const struct figure *f = device_sheet_figure(s, name);

    if (!f && fallback)
        f = device_sheet_figure(s, fallback);
    return f ? f->value * scale : NAN64;
}

double roof_from_sheet(const struct cost *cost, const struct device_sheet *sheet)
{
    const char *unit = cost->unit == COST_BF16_MMA ? "bf16_mma" : "ffma";
    double read = time_of(cost->read_bytes, sheet_rate(sheet, "dram_read", "dram", 1e3));
    double write = time_of(cost->write_bytes, sheet_rate(sheet, "dram_write", "dram", 1e3));

    return binding(read + write, time_of(cost->flops, sheet_rate(sheet, unit, NULL, 1e6))).us;
}
