#include "runtime/stats/level.h"

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/atomics.h"

memrt__level_t memrt__process;

void memrt__level_raise_peaks(memrt__level_t *level, size_t rise)
{
    for (; level != NULL; level = level->up) {
        memrt__raise_release(&level->peak, memrt__load_relaxed(&level->flushed) + rise);
    }
}

/// Report to one aggregate. Release; partner: the acquire load of a reader of the peak. A reader
/// that sees the change also sees that the reporting gauge shows no rise, so the reader does not
/// add the rise twice.
static void report_to_one(memrt__level_t *level, size_t change, size_t rise)
{
    size_t before = memrt__fetch_add_release(&level->flushed, change);
    size_t now = before + change;
    bool ahead = (ptrdiff_t)change > (ptrdiff_t)rise;
    memrt__raise_release(&level->peak, before + rise);
    if (ahead && (ptrdiff_t)now > (ptrdiff_t)memrt__load_relaxed(&level->peak)) {
        memrt__store_relaxed(&level->past_gauges, 1);
        memrt__raise_release(&level->peak, now);
    }
}

void memrt__level_report(memrt__level_t *level, size_t change, size_t rise)
{
    for (; level != NULL; level = level->up) {
        report_to_one(level, change, rise);
    }
}

size_t memrt__level_distance_to_peak(const memrt__level_t *level)
{
    size_t least = (size_t)PTRDIFF_MAX;
    for (; level != NULL; level = level->up) {
        size_t distance = memrt__load_relaxed(&level->peak) - memrt__load_relaxed(&level->flushed);
        least = (ptrdiff_t)distance < (ptrdiff_t)least ? distance : least;
    }
    return least;
}

void memrt__level_count_gauges(memrt__level_t *level, size_t change)
{
    for (; level != NULL; level = level->up) {
        size_t before = memrt__fetch_add_relaxed(&level->gauges, change);
        memrt__raise_release(&level->most_gauges, before + change);
    }
}

void memrt__level_mark_several_gauges(memrt__level_t *level)
{
    for (; level != NULL; level = level->up) {
        if (memrt__load_relaxed(&level->gauges) != 0) {
            memrt__store_relaxed(&level->past_gauges, 1);
        }
    }
}
