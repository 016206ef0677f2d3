#include "runtime/alloc/warm.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/mapped.h"
#include "runtime/alloc/pages.h"
#include "runtime/alloc/spare.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

/// From here on the pages of a zeroed block are fresh ones, which cost nothing until they are
/// touched; below, clearing warm ones costs less than the faults of those who touch them all.
#define LAZY_FROM ((size_t)32 << 20)

#define STEPS 8u
#define LISTS (64 * STEPS)

/// A mapping that is kept; lies at its start.
typedef struct kept {
    struct kept *next, *prev;   ///< of the same size, last given back first
    struct kept *older, *newer; ///< of all, by when they came
    size_t bytes;
    uint64_t since; ///< memrt__os_now_ns()
    bool mixed;     ///< may have been advised otherwise than it is to be now
} kept_t;

/// All but `limits` under the lock of rank WARM.
struct memrt__warm {
    kept_t *lists[LISTS]; ///< by size
    kept_t *oldest, *newest;
    size_t in_use, asked, cached; ///< bytes; `asked`: of in_use, not yet given by the system
    size_t most;                  ///< that used() was
    bool closed;
    memrt__limits_t limits;    ///< fixed
    memrt__warm_t *next_other; ///< of all, beginning with memrt__warm_shared
};

memrt__warm_t memrt__warm_shared = {.limits = MEMRT__INHERIT_ALL};
size_t memrt__warm_shortest = MEMRT__DECAY_NEVER;

static size_t all_cached; /* bytes; written under the lock of rank WARM, read by anybody */

/* Under the lock of rank WARM: */
static bool modes_differ; /* among mappings that were made as the process had it at that time */

static size_t chosen(size_t own, const size_t *of_process)
{
    return own != MEMRT__INHERIT ? own : memrt__load_relaxed(of_process);
}

static size_t decay_of(const memrt__warm_t *warm)
{
    return chosen(warm->limits.decay, &memrt__options.decay);
}

static size_t limit_of(const memrt__warm_t *warm)
{
    return chosen(warm->limits.cache_limit, &memrt__options.cache_limit);
}

/// In which list mappings of a size lie.
static size_t list_of(size_t bytes)
{
    size_t pages = bytes / memrt__os_page_size();
    unsigned high = memrt__floor_log2(pages);
    size_t step = high < 3 ? 0 : (pages >> (high - 3)) - STEPS;
    return high * STEPS + step;
}

/// Blocks of a power of two come with a page for their header before it, so the steps are those of
/// the size less a page.
bool memrt__warm_bytes(size_t size, size_t *bytes)
{
    size_t page = memrt__os_page_size();
    size_t rest = size > page ? size - page : page;
    size_t step = memrt__size_max(((size_t)1 << memrt__floor_log2(rest)) / STEPS, page);
    return memrt__size_round_up(rest, step, &rest) && memrt__size_add(rest, page, bytes);
}

static void insert(memrt__warm_t *warm, kept_t *kept)
{
    kept_t **list = &warm->lists[list_of(kept->bytes)];
    kept->prev = NULL;
    kept->next = *list;
    if (*list != NULL) {
        (*list)->prev = kept;
    }
    *list = kept;
    kept->newer = NULL;
    kept->older = warm->newest;
    *(warm->newest == NULL ? &warm->oldest : &warm->newest->newer) = kept;
    warm->newest = kept;
    warm->cached += kept->bytes;
    memrt__own_add(&all_cached, kept->bytes);
}

static void extract(memrt__warm_t *warm, kept_t *kept)
{
    *(kept->prev == NULL ? &warm->lists[list_of(kept->bytes)] : &kept->prev->next) = kept->next;
    if (kept->next != NULL) {
        kept->next->prev = kept->prev;
    }
    *(kept->older == NULL ? &warm->oldest : &kept->older->newer) = kept->newer;
    *(kept->newer == NULL ? &warm->newest : &kept->newer->older) = kept->older;
    warm->cached -= kept->bytes;
    memrt__own_add(&all_cached, (size_t)0 - kept->bytes);
}

/// Move the oldest to `out`, linked by `next`.
static void move_oldest(memrt__warm_t *warm, kept_t **out)
{
    kept_t *kept = warm->oldest;
    extract(warm, kept);
    kept->next = *out;
    *out = kept;
}

/// Move the oldest to `out` until no more than `room` is kept.
static void shrink_to(memrt__warm_t *warm, size_t room, kept_t **out)
{
    while (warm->cached > room) {
        move_oldest(warm, out);
    }
}

/// Keep for the process a mapping of which nobody knows how it was advised.
static void keep(void *mapping, size_t bytes)
{
    kept_t *kept = mapping;
    *kept = (kept_t){.bytes = bytes, .since = memrt__os_now_ns(), .mixed = true};
    memrt__lock(MEMRT__RANK_WARM);
    insert(&memrt__warm_shared, kept);
    memrt__unlock(MEMRT__RANK_WARM);
}

/// Returns bytes. To unmap a part of what the system sees as one mapping takes one mapping more,
/// and a process may have all that it can: then the pages go and the addresses are kept.
static size_t unmap_all(kept_t *list)
{
    size_t unmapped = 0;
    while (list != NULL) {
        kept_t *next = list->next;
        size_t bytes = list->bytes;
        if (memrt__os_unmap(list, bytes)) {
            unmapped += bytes;
        } else {
            memrt__os_discard(list, bytes);
            keep(list, bytes);
        }
        list = next;
    }
    return unmapped;
}

/// What the limit of the process leaves for one.
static size_t left_by_others(const memrt__warm_t *warm)
{
    size_t limit = memrt__load_relaxed(&memrt__options.cache_limit);
    size_t others = all_cached - warm->cached;
    return limit > others ? limit - others : 0;
}

static bool is_shared(const memrt__warm_t *warm)
{
    return warm == &memrt__warm_shared;
}

/// What is in use here and, of the process, in spans.
static size_t used(const memrt__warm_t *warm)
{
    return warm->in_use - warm->asked + (is_shared(warm) ? memrt__pages_used() : 0);
}

/// What may be in use and kept together.
static size_t bound(const memrt__warm_t *warm)
{
    return is_shared(warm) ? warm->most + memrt__spare() : warm->most;
}

/// What may be kept beside what is in use and what spans have left.
static size_t room(const memrt__warm_t *warm)
{
    size_t spans = is_shared(warm) ? memrt__pages_used() + memrt__pages_cached() : 0;
    size_t most = bound(warm), taken = warm->in_use + spans;
    if (warm->closed || decay_of(warm) == 0 || most <= taken) {
        return 0;
    }
    size_t limit = memrt__size_min(limit_of(warm), left_by_others(warm));
    return memrt__size_min(most - taken, limit);
}

/// Whether what is asked of the system makes the process larger than it has been, although there is
/// memory that nobody uses.
static bool should_purge_pages(const memrt__warm_t *warm)
{
    size_t kept = memrt__pages_cached();
    return is_shared(warm) && kept > MEMRT__SPARE_MIN &&
           warm->in_use + memrt__pages_used() + kept > bound(warm);
}

/// Count `bytes` that are asked of the system as in use and extract what then is too much.
static void enter(memrt__warm_t *warm, size_t bytes, kept_t **excess)
{
    warm->in_use += bytes;
    warm->asked += bytes;
    shrink_to(warm, room(warm), excess);
}

/// What was entered is there.
static void confirm(memrt__warm_t *warm, size_t bytes)
{
    memrt__lock(MEMRT__RANK_WARM);
    warm->asked -= bytes;
    warm->most = memrt__size_max(warm->most, used(warm));
    memrt__unlock(MEMRT__RANK_WARM);
}

static void find_shortest(void)
{
    size_t shortest = MEMRT__DECAY_NEVER;
    for (memrt__warm_t *w = memrt__warm_shared.next_other; w != NULL; w = w->next_other) {
        if (w->limits.decay != MEMRT__INHERIT && w->limits.decay != 0) {
            shortest = memrt__size_min(shortest, w->limits.decay);
        }
    }
    memrt__store_relaxed(&memrt__warm_shortest, shortest);
}

memrt__warm_t *memrt__warm_new(const memrt__limits_t *limits)
{
    memrt__warm_t *warm = memrt__failure_due() ? NULL : calloc(1, sizeof(*warm));
    if (warm != NULL) {
        warm->limits = *limits;
        memrt__lock(MEMRT__RANK_WARM);
        warm->next_other = memrt__warm_shared.next_other;
        memrt__warm_shared.next_other = warm;
        find_shortest();
        memrt__unlock(MEMRT__RANK_WARM);
    }
    return warm;
}

void memrt__warm_close(memrt__warm_t *warm)
{
    kept_t *excess = NULL;
    memrt__lock(MEMRT__RANK_WARM);
    warm->closed = true;
    shrink_to(warm, 0, &excess);
    memrt__unlock(MEMRT__RANK_WARM);
    unmap_all(excess);
}

void memrt__warm_delete(memrt__warm_t *warm)
{
    memrt__warm_close(warm);
    memrt__lock(MEMRT__RANK_WARM);
    MEMRT__ASSERT(warm->in_use == 0 && warm->cached == 0);
    memrt__warm_t **link = &memrt__warm_shared.next_other;
    while (*link != warm) {
        link = &(*link)->next_other;
    }
    *link = warm->next_other;
    find_shortest();
    memrt__unlock(MEMRT__RANK_WARM);
    free(warm);
}

static kept_t *find(const memrt__warm_t *warm, size_t bytes, size_t align)
{
    kept_t *kept = warm->lists[list_of(bytes)];
    while (kept != NULL && (kept->bytes != bytes || ((uintptr_t)kept & (align - 1)) != 0)) {
        kept = kept->next;
    }
    return kept;
}

/// The system may have memory again once nothing is kept.
static void *map_at_any_price(size_t bytes, size_t align, memrt__huge_t huge)
{
    memrt__spare_look(memrt__os_now_ns());
    void *mapping = memrt__mapped_new(bytes, align, huge);
    if (mapping == NULL && memrt__pages_purge(true) + memrt__warm_purge_all() != 0) {
        mapping = memrt__mapped_new(bytes, align, huge);
    }
    return mapping;
}

/// What was entered is not to be had.
static void leave(memrt__warm_t *warm, size_t bytes)
{
    memrt__lock(MEMRT__RANK_WARM);
    warm->in_use -= bytes;
    warm->asked -= bytes;
    memrt__unlock(MEMRT__RANK_WARM);
}

/// The first page has been written, when the mapping was given back at the latest, and stays.
static void clear(void *mapping, size_t bytes)
{
    size_t page = memrt__os_page_size();
    bool lazy = bytes >= LAZY_FROM && memrt__os_discard((char *)mapping + page, bytes - page);
    memset(mapping, 0, lazy ? page : bytes);
}

static void *reuse(kept_t *kept, bool zeroed, memrt__huge_t huge)
{
    size_t bytes = kept->bytes;
    if (kept->mixed) {
        memrt__mapped_advise_anew(kept, bytes, huge);
    }
    if (zeroed) {
        clear(kept, bytes);
    }
    return kept;
}

void *memrt__warm_take(memrt__warm_t *warm, size_t bytes, size_t align, bool zeroed)
{
    memrt__huge_t huge = memrt__huge_of(warm->limits.huge_pages);
    kept_t *excess = NULL;
    bool purge = false;
    memrt__lock(MEMRT__RANK_WARM);
    kept_t *kept = find(warm, bytes, align);
    if (kept != NULL) {
        extract(warm, kept);
        warm->in_use += bytes;
    } else {
        enter(warm, bytes, &excess);
        purge = should_purge_pages(warm);
    }
    memrt__unlock(MEMRT__RANK_WARM);
    unmap_all(excess);
    if (purge) {
        memrt__pages_purge(true);
    }
    if (kept != NULL) {
        return reuse(kept, zeroed, huge);
    }
    void *mapping = map_at_any_price(bytes, align, huge);
    if (mapping == NULL) {
        leave(warm, bytes);
    } else {
        confirm(warm, bytes);
    }
    return mapping;
}

void memrt__warm_give(memrt__warm_t *warm, void *mapping, size_t bytes)
{
    memrt__system_learn(bytes);
    kept_t *kept = mapping, *excess = NULL;
    *kept = (kept_t){.bytes = bytes, .since = memrt__os_now_ns()};
    memrt__lock(MEMRT__RANK_WARM);
    kept->mixed = modes_differ && warm->limits.huge_pages == MEMRT__INHERIT;
    warm->in_use -= bytes;
    insert(warm, kept);
    shrink_to(warm, room(warm), &excess);
    memrt__unlock(MEMRT__RANK_WARM);
    unmap_all(excess);
}

void *memrt__warm_resize(memrt__warm_t *warm, void *mapping, size_t old_bytes, size_t new_bytes,
                         size_t align)
{
    void *moved = memrt__os_remap(mapping, old_bytes, new_bytes, align <= memrt__os_page_size());
    if (moved == NULL) {
        return NULL;
    }
    kept_t *excess = NULL;
    memrt__mapped_advise(moved, new_bytes, memrt__huge_of(warm->limits.huge_pages));
    memrt__lock(MEMRT__RANK_WARM);
    warm->in_use -= old_bytes;
    enter(warm, new_bytes, &excess);
    memrt__unlock(MEMRT__RANK_WARM);
    confirm(warm, new_bytes);
    unmap_all(excess);
    return moved;
}

/// Move what came before `then` to `out`. What was in use before what is kept came is of the past
/// with it.
static void move_old(memrt__warm_t *warm, uint64_t then, kept_t **out)
{
    while (warm->oldest != NULL && warm->oldest->since < then) {
        move_oldest(warm, out);
    }
    if (warm->oldest == NULL) {
        warm->most = used(warm);
    }
}

size_t memrt__warm_purge(memrt__warm_t *warm, uint64_t then)
{
    kept_t *old = NULL;
    memrt__lock(MEMRT__RANK_WARM);
    move_old(warm, then, &old);
    memrt__unlock(MEMRT__RANK_WARM);
    return unmap_all(old);
}

size_t memrt__warm_purge_all(void)
{
    kept_t *old = NULL;
    memrt__lock(MEMRT__RANK_WARM);
    for (memrt__warm_t *warm = &memrt__warm_shared; warm != NULL; warm = warm->next_other) {
        move_old(warm, UINT64_MAX, &old);
    }
    memrt__unlock(MEMRT__RANK_WARM);
    return unmap_all(old);
}

/// On the clock's scale; what is kept for ever came after the beginning of time.
static uint64_t oldest_allowed(const memrt__warm_t *warm, uint64_t now)
{
    size_t decay = decay_of(warm);
    uint64_t ns = (uint64_t)decay * 1000000u;
    return decay != MEMRT__DECAY_NEVER && now > ns ? now - ns : 0;
}

size_t memrt__warm_purge_old(uint64_t now)
{
    kept_t *old = NULL;
    memrt__lock(MEMRT__RANK_WARM);
    for (memrt__warm_t *warm = &memrt__warm_shared; warm != NULL; warm = warm->next_other) {
        move_old(warm, oldest_allowed(warm, now), &old);
    }
    memrt__unlock(MEMRT__RANK_WARM);
    return unmap_all(old);
}

void memrt__warm_trim(void)
{
    kept_t *excess = NULL;
    memrt__lock(MEMRT__RANK_WARM);
    for (memrt__warm_t *warm = &memrt__warm_shared; warm != NULL; warm = warm->next_other) {
        shrink_to(warm, room(warm), &excess);
    }
    memrt__unlock(MEMRT__RANK_WARM);
    unmap_all(excess);
}

void memrt__warm_make_room(void)
{
    if (memrt__load_relaxed(&all_cached) != 0) {
        memrt__warm_trim();
    }
}

static void mix(memrt__warm_t *warm)
{
    for (kept_t *kept = warm->oldest; kept != NULL; kept = kept->newer) {
        kept->mixed |= warm->limits.huge_pages == MEMRT__INHERIT;
    }
}

void memrt__warm_readvise(void)
{
    memrt__lock(MEMRT__RANK_WARM);
    modes_differ = true;
    for (memrt__warm_t *warm = &memrt__warm_shared; warm != NULL; warm = warm->next_other) {
        mix(warm);
    }
    memrt__unlock(MEMRT__RANK_WARM);
}

size_t memrt__warm_cached(const memrt__warm_t *warm)
{
    memrt__lock(MEMRT__RANK_WARM);
    size_t bytes = warm->cached;
    memrt__unlock(MEMRT__RANK_WARM);
    return bytes;
}

size_t memrt__warm_aging(void)
{
    size_t bytes = 0;
    memrt__lock(MEMRT__RANK_WARM);
    for (memrt__warm_t *warm = &memrt__warm_shared; warm != NULL; warm = warm->next_other) {
        bytes += decay_of(warm) == MEMRT__DECAY_NEVER ? 0 : warm->cached;
    }
    memrt__unlock(MEMRT__RANK_WARM);
    return bytes;
}
