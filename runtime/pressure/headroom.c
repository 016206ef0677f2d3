#include "runtime/pressure/headroom.h"

#include <stddef.h>

#include "runtime/os/os.h"
#include "runtime/pressure/pressure_level.h"
#include "runtime/stats/stats.h"

static void take_nearer(memrt__headroom_t *nearest, const char *of, uint64_t limit, uint64_t used)
{
    uint32_t permille = memrt__pressure_permille(used, limit);
    if (nearest->limit == UINT64_MAX || permille > nearest->permille) {
        *nearest = (memrt__headroom_t){of, limit, used, permille};
    }
}

memrt__headroom_t memrt__headroom_read(void)
{
    memrt__headroom_t nearest = {"none", UINT64_MAX, 0, 0};
    size_t own = memrt__level_limit(&memrt__process);
    if (own != SIZE_MAX) {
        memrt_stats_t stats = {.struct_size = sizeof(stats)};
        memrt__stats_read(&memrt__process, &stats);
        take_nearer(&nearest, "of the process", own, stats.live);
    }
    memrt__os_limit_t limits[MEMRT__OS_LIMITS];
    size_t count = memrt__os_limits(limits);
    for (size_t i = 0; i < count; i++) {
        take_nearer(&nearest, limits[i].what, limits[i].bytes, limits[i].used);
    }
    return nearest;
}
