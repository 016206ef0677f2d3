#include "runtime/alloc/heap/mapping_lists.h"

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

size_t memrt__mapping_lists_bytes;

/// Return the index of the list for mappings of a size.
static size_t get_list_index(size_t bytes)
{
    MEMRT__ASSERT(bytes != 0 && bytes % memrt__os_page_size() == 0);
    size_t pages = bytes / memrt__os_page_size();
    unsigned high = memrt__floor_log2(pages);
    size_t step = high < 3 ? 0 : (pages >> (high - 3)) - MEMRT__MAPPING_STEPS;
    return high * MEMRT__MAPPING_STEPS + step;
}

static memrt__mapping_queue_t *get_queue(memrt__mapping_lists_t *lists,
                                         const memrt__cached_mapping_t *entry)
{
    return entry->stuck ? &lists->stuck : &lists->cached;
}

/// Count cached bytes. Stuck mappings mostly have no pages, and count for no limit.
static void count_cached_bytes(const memrt__cached_mapping_t *entry, size_t bytes)
{
    memrt__own_add(&memrt__mapping_lists_bytes, entry->stuck ? 0 : bytes);
}

void memrt__mapping_lists_insert(memrt__mapping_lists_t *lists, memrt__cached_mapping_t *entry)
{
    memrt__cached_mapping_t **list = &lists->by_size[get_list_index(entry->bytes)];
    memrt__mapping_queue_t *queue = get_queue(lists, entry);
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    MEMRT__ASSERT(*list == NULL || (*list)->prev == NULL);
    MEMRT__ASSERT((queue->oldest == NULL) == (queue->newest == NULL));
    entry->prev = NULL;
    entry->next = *list;
    if (*list != NULL) {
        (*list)->prev = entry;
    }
    *list = entry;
    entry->newer = NULL;
    entry->older = queue->newest;
    *(queue->newest == NULL ? &queue->oldest : &queue->newest->newer) = entry;
    queue->newest = entry;
    queue->bytes += entry->bytes;
    count_cached_bytes(entry, entry->bytes);
}

void memrt__mapping_lists_extract(memrt__mapping_lists_t *lists, memrt__cached_mapping_t *entry)
{
    memrt__mapping_queue_t *queue = get_queue(lists, entry);
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    MEMRT__ASSERT(queue->bytes >= entry->bytes);
    MEMRT__ASSERT(entry->next == NULL || entry->next->prev == entry);
    MEMRT__ASSERT(entry == (entry->older == NULL ? queue->oldest : entry->older->newer));
    MEMRT__ASSERT(entry == (entry->newer == NULL ? queue->newest : entry->newer->older));
    *(entry->prev == NULL ? &lists->by_size[get_list_index(entry->bytes)] : &entry->prev->next) =
        entry->next;
    if (entry->next != NULL) {
        entry->next->prev = entry->prev;
    }
    *(entry->older == NULL ? &queue->oldest : &entry->older->newer) = entry->newer;
    *(entry->newer == NULL ? &queue->newest : &entry->newer->older) = entry->older;
    queue->bytes -= entry->bytes;
    count_cached_bytes(entry, (size_t)0 - entry->bytes);
}

memrt__cached_mapping_t *memrt__mapping_lists_find(const memrt__mapping_lists_t *lists,
                                                   size_t bytes, size_t align)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    MEMRT__ASSERT(memrt__is_power_of_two(align));
    memrt__cached_mapping_t *entry = lists->by_size[get_list_index(bytes)];
    while (entry != NULL && (entry->bytes != bytes || ((uintptr_t)entry & (align - 1)) != 0)) {
        entry = entry->next;
    }
    return entry;
}

/// Move the oldest mapping to the list `out`, linked by `next`.
static void move_oldest_entry(memrt__mapping_lists_t *lists, memrt__cached_mapping_t **out)
{
    memrt__cached_mapping_t *entry = lists->cached.oldest;
    MEMRT__ASSERT(entry != NULL && !entry->stuck);
    memrt__mapping_lists_extract(lists, entry);
    entry->next = *out;
    *out = entry;
}

void memrt__mapping_lists_shrink(memrt__mapping_lists_t *lists, size_t room,
                                 memrt__cached_mapping_t **out)
{
    while (lists->cached.bytes > room) {
        move_oldest_entry(lists, out);
    }
}

void memrt__mapping_lists_move_old(memrt__mapping_lists_t *lists, uint64_t then,
                                   memrt__cached_mapping_t **out)
{
    while (lists->cached.oldest != NULL && lists->cached.oldest->since < then) {
        move_oldest_entry(lists, out);
    }
}

#if MEMRT_DEBUG

/// Check a queue and count its mappings. Returns SIZE_MAX for a queue that is not valid.
static size_t count_queue(const memrt__mapping_queue_t *queue, bool stuck)
{
    size_t count = 0, bytes = 0;
    const memrt__cached_mapping_t *older = NULL, *entry = queue->oldest;
    for (; entry != NULL; older = entry, entry = entry->newer, count++) {
        bytes += entry->bytes;
        if (!MEMRT__HOLDS(entry->older == older) || !MEMRT__HOLDS(entry->stuck == stuck) ||
            !MEMRT__HOLDS(bytes <= queue->bytes)) {
            return SIZE_MAX;
        }
    }
    bool valid = MEMRT__HOLDS(queue->newest == older) && MEMRT__HOLDS(queue->bytes == bytes);
    return valid ? count : SIZE_MAX;
}

/// Check the lists by size and count their mappings. Returns SIZE_MAX for lists that are not valid.
static size_t count_sizes(const memrt__mapping_lists_t *lists, size_t most)
{
    size_t count = 0;
    for (size_t index = 0; index < MEMRT__MAPPING_LISTS; index++) {
        const memrt__cached_mapping_t *prev = NULL, *entry = lists->by_size[index];
        for (; entry != NULL; prev = entry, entry = entry->next, count++) {
            if (!MEMRT__HOLDS(entry->prev == prev) || !MEMRT__HOLDS(count < most) ||
                !MEMRT__HOLDS(get_list_index(entry->bytes) == index)) {
                return SIZE_MAX;
            }
        }
    }
    return count;
}

bool memrt__mapping_lists_is_valid(const memrt__mapping_lists_t *lists)
{
    size_t cached = count_queue(&lists->cached, false), stuck = count_queue(&lists->stuck, true);
    if (cached == SIZE_MAX || stuck == SIZE_MAX) {
        return false;
    }
    size_t sizes = count_sizes(lists, cached + stuck);
    return sizes != SIZE_MAX && MEMRT__HOLDS(sizes == cached + stuck);
}

#endif
