#include "runtime/stats/level.h"

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"

memrt__level_t memrt__process;
size_t memrt__limited_levels;
size_t memrt__limit_changes;
size_t memrt__soft_limits;
size_t memrt__soft_noted;

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

/// Hide in one aggregate. The addition comes before the check, so concurrent additions never miss
/// each other.
static bool hide_in_one(memrt__level_t *level, size_t more, bool close)
{
    size_t hidden = memrt__fetch_add_relaxed(&level->hidden, more) + more;
    if (close && hidden > memrt__load_relaxed(&level->peak) / MEMRT__CLOSE_PARTS) {
        memrt__fetch_add_relaxed(&level->hidden, (size_t)0 - more);
        return false;
    }
    memrt__raise_release(&level->most_hidden, hidden);
    return true;
}

bool memrt__level_hide(memrt__level_t *level, size_t more, bool close)
{
    for (memrt__level_t *at = level; at != NULL; at = at->up) {
        if (!hide_in_one(at, more, close)) {
            for (; level != at; level = level->up) {
                memrt__fetch_add_relaxed(&level->hidden, (size_t)0 - more);
            }
            return false;
        }
    }
    return true;
}

void memrt__level_unhide(memrt__level_t *level, size_t less)
{
    for (; level != NULL; level = level->up) {
        memrt__fetch_add_relaxed(&level->hidden, (size_t)0 - less);
    }
}

size_t memrt__level_close_allowance(const memrt__level_t *level, size_t own)
{
    size_t least = SIZE_MAX;
    for (; level != NULL; level = level->up) {
        size_t peak = memrt__size_at_least_zero(memrt__load_relaxed(&level->peak));
        size_t others = memrt__load_relaxed(&level->hidden) - own;
        size_t room = memrt__size_at_least_zero(peak / MEMRT__CLOSE_PARTS - others);
        least = memrt__size_min(least, room / 2);
    }
    return least;
}

void memrt__level_mark_several_gauges(memrt__level_t *level)
{
    for (; level != NULL; level = level->up) {
        if (memrt__load_relaxed(&level->gauges) != 0) {
            memrt__store_relaxed(&level->past_gauges, 1);
        }
    }
}

/// Store a limit plus 1. Returns the change of the number of limits: 1, 0 or -1.
static size_t store_bound(size_t *bound, size_t now)
{
    size_t before;
    do {
        before = memrt__load_relaxed(bound);
    } while (!memrt__cas_relaxed(bound, before, now));
    return (size_t)(now != 0) - (size_t)(before != 0);
}

void memrt__level_set_limit(memrt__level_t *level, size_t limit)
{
    memrt__fetch_add_relaxed(&memrt__limited_levels, store_bound(&level->limit, limit + 1));
    memrt__fetch_add_release(&memrt__limit_changes, 1);
}

void memrt__level_set_soft(memrt__level_t *level, size_t soft)
{
    size_t change = store_bound(&level->soft, soft + 1);
    memrt__fetch_add_relaxed(&memrt__limited_levels, change);
    memrt__fetch_add_relaxed(&memrt__soft_limits, change);
    memrt__store_relaxed(&level->soft_state, MEMRT__SOFT_BELOW);
    memrt__fetch_add_release(&memrt__limit_changes, 1);
}

bool memrt__level_has_limits(const memrt__level_t *level)
{
    return memrt__load_relaxed(&level->limit) != 0 || memrt__load_relaxed(&level->soft) != 0;
}

void memrt__level_end_limits(memrt__level_t *level)
{
    memrt__level_set_limit(level, SIZE_MAX);
    memrt__level_set_soft(level, SIZE_MAX);
}

size_t memrt__level_limit(const memrt__level_t *level)
{
    return memrt__load_relaxed(&level->limit) - 1;
}

size_t memrt__level_soft(const memrt__level_t *level)
{
    return memrt__load_relaxed(&level->soft) - 1;
}

size_t memrt__level_used(const memrt__level_t *level)
{
    size_t promised = memrt__load_relaxed(&level->promised);
    return promised + memrt__load_relaxed(&level->flushed);
}

size_t memrt__level_room(const memrt__level_t *level)
{
    return memrt__level_room_below(level, memrt__level_limit(level));
}

size_t memrt__level_room_below(const memrt__level_t *level, size_t limit)
{
    size_t used = memrt__level_used(level);
    if (limit == SIZE_MAX || (ptrdiff_t)used < 0) {
        return limit;
    }
    return used < limit ? limit - used : 0;
}

/// Promise in one aggregate. The addition comes before the check, so concurrent promises never miss
/// each other. A report changes `flushed` before `promised`. The check reads the words in the other
/// order, so the sum never misses bytes.
static bool promise_in_one(memrt__level_t *level, size_t bytes)
{
    size_t limit = memrt__level_limit(level);
    size_t promised = memrt__fetch_add_acquire(&level->promised, bytes) + bytes;
    if (limit == SIZE_MAX) {
        return true;
    }
    ptrdiff_t used = (ptrdiff_t)(promised + memrt__load_relaxed(&level->flushed));
    if (used < 0 || (size_t)used <= limit) {
        return true;
    }
    memrt__fetch_add_relaxed(&level->promised, (size_t)0 - bytes);
    return false;
}

bool memrt__level_promise(memrt__level_t *level, size_t bytes)
{
    MEMRT__ASSERT((ptrdiff_t)bytes >= 0);
    for (memrt__level_t *at = level; at != NULL; at = at->up) {
        if (!promise_in_one(at, bytes)) {
            for (; level != at; level = level->up) {
                memrt__fetch_add_relaxed(&level->promised, (size_t)0 - bytes);
            }
            return false;
        }
    }
    return true;
}

static bool exceeds(size_t used, size_t bound)
{
    return (ptrdiff_t)used > 0 && used > bound;
}

/// Note a use above the soft limit, unless a rise is noted or counted already. The acquire load of
/// `promised` partners with a report, which changes `flushed` first. So the sum misses no bytes.
static void note_soft_in_one(memrt__level_t *level)
{
    size_t promised = memrt__load_acquire(&level->promised);
    if (exceeds(promised + memrt__load_relaxed(&level->flushed), memrt__level_soft(level)) &&
        memrt__load_relaxed(&level->soft_state) == MEMRT__SOFT_BELOW &&
        memrt__cas_relaxed(&level->soft_state, MEMRT__SOFT_BELOW, MEMRT__SOFT_NOTED)) {
        memrt__store_relaxed(&memrt__soft_noted, 1);
    }
}

void memrt__level_note_soft(memrt__level_t *level)
{
    for (; level != NULL; level = level->up) {
        note_soft_in_one(level);
    }
}

/// Return the use after the caller changed `soft_state`. A promise either comes later than the
/// first addition and finds the new state, by its own acquire addition, or is part of the result.
static size_t read_use_after_change(memrt__level_t *level)
{
    memrt__fetch_add_release(&level->promised, 0);
    size_t promised = memrt__fetch_add_acquire(&level->promised, 0);
    return promised + memrt__load_relaxed(&level->flushed);
}

bool memrt__level_is_low(const memrt__level_t *level)
{
    size_t soft = memrt__level_soft(level);
    return !exceeds(memrt__level_used(level), soft - soft / 20);
}

bool memrt__level_update_soft(memrt__level_t *level)
{
    size_t soft = memrt__level_soft(level), state = memrt__load_relaxed(&level->soft_state);
    if (soft == SIZE_MAX || (state == MEMRT__SOFT_ABOVE && !memrt__level_is_low(level))) {
        return false;
    }
    if (state != MEMRT__SOFT_NOTED) {
        memrt__store_relaxed(&level->soft_state, MEMRT__SOFT_BELOW);
        if (!exceeds(read_use_after_change(level), soft)) {
            return false;
        }
    }
    memrt__store_relaxed(&level->soft_state, MEMRT__SOFT_ABOVE);
    memrt__fetch_add_relaxed(&level->soft_rises, 1);
    return true;
}

void memrt__level_keep_promise(memrt__level_t *level, size_t bytes)
{
    for (; level != NULL; level = level->up) {
        memrt__fetch_add_relaxed(&level->promised, bytes);
    }
}

void memrt__level_end_promise(memrt__level_t *level, size_t bytes)
{
    for (; level != NULL; level = level->up) {
        memrt__fetch_add_release(&level->promised, (size_t)0 - bytes);
    }
}

size_t memrt__level_lowest_limit(const memrt__level_t *level)
{
    size_t lowest = SIZE_MAX;
    for (; level != NULL; level = level->up) {
        lowest = memrt__size_min(lowest, memrt__level_limit(level));
        lowest = memrt__size_min(lowest, memrt__level_soft(level));
    }
    return lowest;
}
