#include "measure/occupancy.h"

#include <stdio.h>

#define WARP        32
#define PARTITIONS  4 /* of a multiprocessor's registers and warps, on every cc since 5.0 */
#define MAX_THREADS 1024

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Warps that the register file holds. */
static uint64_t warps_by_registers(uint32_t registers, const struct sm_limits *sm)
{
    uint64_t per_warp = round_up((uint64_t)registers * WARP, sm->register_unit);

    return sm->registers / PARTITIONS / per_warp * PARTITIONS;
}

uint32_t occupancy_max_threads(uint32_t registers, const struct sm_limits *sm)
{
    uint64_t threads = registers ? warps_by_registers(registers, sm) * WARP : MAX_THREADS;

    return threads > MAX_THREADS ? MAX_THREADS : (uint32_t)threads;
}

struct limit {
    const char *name;
    uint64_t blocks;
};

void occupancy_fill(struct resources_record *r, const struct device_sheet *sheet)
{
    const struct sm_limits *sm = &sheet->sm;
    uint64_t warps = round_up((uint64_t)r->block[0] * r->block[1] * r->block[2], WARP) / WARP;
    uint64_t shared = round_up((uint64_t)r->static_shared + r->dynamic_shared + sm->shared_reserved,
                               sm->shared_unit);
    uint64_t grid = (uint64_t)r->grid[0] * r->grid[1] * r->grid[2];
    struct limit limits[] = {
        {"blocks", sm->blocks},
        {"threads", warps ? sm->threads / WARP / warps : 0},
        {"registers",
         warps && r->registers ? warps_by_registers(r->registers, sm) / warps : sm->blocks},
        {"shared", sm->shared_bytes / shared},
    };
    struct limit least = limits[0];

    for (size_t i = 1; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].blocks < least.blocks)
            least = limits[i];
    r->blocks_per_sm = (uint32_t)least.blocks;
    r->occupancy = r->waves = 0;
    snprintf(r->limiter, sizeof r->limiter, "%s", least.blocks ? least.name : "");
    if (!least.blocks)
        return;
    r->occupancy = (double)(least.blocks * warps) / (double)(sm->threads / WARP);
    r->waves = (double)grid / ((double)least.blocks * sheet->sm_count);
}
