#include "runtime/alloc/warm.h"

#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/mapped.h"
#include "runtime/alloc/pages.h"
#include "runtime/base/atomics.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

/// From here on a zeroed block gets fresh pages, which cost nothing until they are touched; below,
/// clearing warm ones costs less than the faults of those who touch them all.
#define LAZY_FROM ((size_t)32 << 20)

#define STEPS 8u
#define LISTS (64 * STEPS)

/// A mapping that is kept; lies at its start.
typedef struct kept {
    struct kept *next, *prev;   ///< of the same size, last given back first
    struct kept *older, *newer; ///< of all, by when they came
    size_t bytes;
    uint64_t since; ///< memrt__os_now_ns()
} kept_t;

/* All under the lock of rank WARM: */
static kept_t *lists[LISTS]; /* by size */
static kept_t *oldest, *newest;
static size_t in_use, asked; /* bytes; `asked`: of in_use, not yet given by the system */
static size_t most;          /* that was in use here and in spans */

/* Bytes; written under the lock, read by anybody: */
static size_t cached;

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

static void insert(kept_t *kept)
{
    kept_t **list = &lists[list_of(kept->bytes)];
    kept->prev = NULL;
    kept->next = *list;
    if (*list != NULL) {
        (*list)->prev = kept;
    }
    *list = kept;
    kept->newer = NULL;
    kept->older = newest;
    *(newest == NULL ? &oldest : &newest->newer) = kept;
    newest = kept;
    memrt__own_add(&cached, kept->bytes);
}

static void extract(kept_t *kept)
{
    *(kept->prev == NULL ? &lists[list_of(kept->bytes)] : &kept->prev->next) = kept->next;
    if (kept->next != NULL) {
        kept->next->prev = kept->prev;
    }
    *(kept->older == NULL ? &oldest : &kept->older->newer) = kept->newer;
    *(kept->newer == NULL ? &newest : &kept->newer->older) = kept->older;
    memrt__own_add(&cached, (size_t)0 - kept->bytes);
}

/// Extract the oldest until no more than `room` is kept; returns them, linked by `next`.
static kept_t *shrink_to(size_t room)
{
    kept_t *out = NULL;
    while (cached > room) {
        kept_t *kept = oldest;
        extract(kept);
        kept->next = out;
        out = kept;
    }
    return out;
}

/// Keep a mapping from now on.
static void keep(void *mapping, size_t bytes)
{
    kept_t *kept = mapping;
    *kept = (kept_t){.bytes = bytes, .since = memrt__os_now_ns()};
    memrt__lock(MEMRT__RANK_WARM);
    insert(kept);
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

/// What is in use here and in spans.
static size_t used(void)
{
    return in_use - asked + memrt__pages_used();
}

/// What may be kept beside what is in use and what spans have left.
static size_t room(void)
{
    size_t others = in_use + memrt__pages_used() + memrt__pages_cached();
    size_t spare = most > others && memrt__options.decay != 0 ? most - others : 0;
    return memrt__size_min(spare, memrt__options.cache_limit);
}

/// Whether what is asked of the system makes the process larger than it has been, although there is
/// memory that nobody uses.
static bool should_purge_pages(void)
{
    size_t kept = memrt__pages_cached();
    return kept > MEMRT__PAGES_SPARE && in_use + memrt__pages_used() + kept > most;
}

/// Count `bytes` that are asked of the system as in use and extract what then is too much.
static kept_t *enter(size_t bytes)
{
    in_use += bytes;
    asked += bytes;
    return shrink_to(room());
}

/// What was entered is there.
static void confirm(size_t bytes)
{
    memrt__lock(MEMRT__RANK_WARM);
    asked -= bytes;
    most = memrt__size_max(most, used());
    memrt__unlock(MEMRT__RANK_WARM);
}

static kept_t *find(size_t bytes, size_t align)
{
    kept_t *kept = lists[list_of(bytes)];
    while (kept != NULL && (kept->bytes != bytes || ((uintptr_t)kept & (align - 1)) != 0)) {
        kept = kept->next;
    }
    return kept;
}

/// The system may have memory again once nothing is kept.
static void *map_at_any_price(size_t bytes, size_t align)
{
    void *mapping = memrt__mapped_new(bytes, align);
    if (mapping == NULL && memrt__pages_purge(true) + memrt__warm_purge(UINT64_MAX) != 0) {
        mapping = memrt__mapped_new(bytes, align);
    }
    return mapping;
}

/// What was entered is not to be had.
static void leave(size_t bytes)
{
    memrt__lock(MEMRT__RANK_WARM);
    in_use -= bytes;
    asked -= bytes;
    memrt__unlock(MEMRT__RANK_WARM);
}

void *memrt__warm_take(size_t bytes, size_t align, bool zeroed)
{
    kept_t *excess = NULL;
    bool purge = false;
    memrt__lock(MEMRT__RANK_WARM);
    kept_t *kept = zeroed && bytes >= LAZY_FROM ? NULL : find(bytes, align);
    if (kept != NULL) {
        extract(kept);
        in_use += bytes;
    } else {
        excess = enter(bytes);
        purge = should_purge_pages();
    }
    memrt__unlock(MEMRT__RANK_WARM);
    unmap_all(excess);
    if (purge) {
        memrt__pages_purge(true);
    }
    if (kept != NULL) {
        return zeroed ? memset(kept, 0, bytes) : kept;
    }
    void *mapping = map_at_any_price(bytes, align);
    if (mapping == NULL) {
        leave(bytes);
    } else {
        confirm(bytes);
    }
    return mapping;
}

void memrt__warm_give(void *mapping, size_t bytes)
{
    memrt__system_learn(bytes);
    kept_t *kept = mapping;
    *kept = (kept_t){.bytes = bytes, .since = memrt__os_now_ns()};
    memrt__lock(MEMRT__RANK_WARM);
    in_use -= bytes;
    insert(kept);
    kept_t *excess = shrink_to(room());
    memrt__unlock(MEMRT__RANK_WARM);
    unmap_all(excess);
}

void *memrt__warm_resize(void *mapping, size_t old_bytes, size_t new_bytes, size_t align)
{
    void *moved = memrt__os_remap(mapping, old_bytes, new_bytes, align <= memrt__os_page_size());
    if (moved == NULL) {
        return NULL;
    }
    memrt__mapped_advise(moved, new_bytes);
    memrt__lock(MEMRT__RANK_WARM);
    in_use -= old_bytes;
    kept_t *excess = enter(new_bytes);
    memrt__unlock(MEMRT__RANK_WARM);
    confirm(new_bytes);
    unmap_all(excess);
    return moved;
}

/// What was in use before what is kept came is of the past with it.
size_t memrt__warm_purge(uint64_t then)
{
    kept_t *old = NULL;
    memrt__lock(MEMRT__RANK_WARM);
    while (oldest != NULL && oldest->since < then) {
        kept_t *kept = oldest;
        extract(kept);
        kept->next = old;
        old = kept;
    }
    if (oldest == NULL) {
        most = used();
    }
    memrt__unlock(MEMRT__RANK_WARM);
    return unmap_all(old);
}

void memrt__warm_shrink(void)
{
    if (memrt__warm_cached() != 0) {
        memrt__lock(MEMRT__RANK_WARM);
        kept_t *excess = shrink_to(room());
        memrt__unlock(MEMRT__RANK_WARM);
        unmap_all(excess);
    }
}

size_t memrt__warm_cached(void)
{
    return memrt__load_relaxed(&cached);
}
