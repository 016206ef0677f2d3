#include "runtime/alloc/placed/pool_map.h"

#include "runtime/alloc/placed/node_place.h"
#include "runtime/alloc/placed/pool_fork.h"
#include "runtime/alloc/placed/prefault.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

/// Map pages of the pool over a range that has no contents. Returns 0, or the error number of the
/// system, with the range unchanged.
static int put_pages(char *start, size_t bytes, size_t page)
{
    int error;
    void *pages = memrt__os_map_pool(bytes, page, &error);
    if (pages == NULL) {
        return error;
    }
    error = memrt__os_hide_from_child(pages, bytes);
    error = error == 0 ? memrt__os_move(pages, bytes, start) : error;
    if (error != 0) {
        (void)memrt__os_unmap(pages, bytes);
    }
    return error;
}

/// Put small pages over a range. Returns false, with the range unchanged, if the system refuses.
static bool put_small_pages(char *start, size_t bytes)
{
    char *pages = memrt__os_map(bytes, 0, memrt__os_page_size());
    if (pages == NULL || memrt__os_move(pages, bytes, start) != 0) {
        if (pages != NULL) {
            (void)memrt__os_unmap(pages, bytes);
        }
        return false;
    }
    (void)memrt__mapping_table_remove(pages);
    return true;
}

/// Give memory to pages at their final addresses: pages on several nodes are several mappings for
/// the system, which moves one mapping at a time.
static int fill_pages(const memrt__pool_map_t *map, char *start, size_t bytes, size_t page)
{
    int error = memrt__node_place(map->nodes, start, bytes, page);
    uint64_t nodes = memrt__node_place_set(map->nodes);
    return error == 0 ? memrt__prefault(start, bytes, map->threads, nodes) : error;
}

/// Put as many pages of a rung behind the first `*done` bytes of a mapping as fit, or none. Adds
/// the bytes to `*done`. Returns false if the mapping is not usable.
static bool climb_rung(const memrt__pool_map_t *map, memrt__rung_t rung, char *mapping,
                       size_t bytes, size_t *done)
{
    size_t page = rung == MEMRT__RUNG_1G ? MEMRT__GIANT_PAGE : MEMRT__HUGE_PAGE;
    size_t size = (bytes - *done) / page * page;
    if (!map->ladder->has[rung] || size == 0) {
        return true;
    }
    char *start = mapping + *done;
    int error = put_pages(start, size, page);
    bool is_put = error == 0;
    error = is_put ? fill_pages(map, start, size, page) : error;
    if (memrt__refusal_note(&map->ladder->refused[rung], error)) {
        *done += size;
        return true;
    }
    return !is_put || put_small_pages(start, size);
}

bool memrt__pool_map(const memrt__pool_map_t *map, char *mapping, size_t bytes)
{
    const memrt__page_ladder_t *ladder = map->ladder;
    if (!memrt__page_ladder_has_pool(ladder)) {
        return true;
    }
    memrt__mapping_table_ask_huge(mapping, true);
    memrt__pool_fork_note();
    size_t giant = 0;
    if (!climb_rung(map, MEMRT__RUNG_1G, mapping, bytes, &giant)) {
        return false;
    }
    size_t pool = giant;
    if (!climb_rung(map, MEMRT__RUNG_2M, mapping, bytes, &pool)) {
        return false;
    }
    size_t page = pool == giant ? MEMRT__GIANT_PAGE : MEMRT__HUGE_PAGE;
    bool demanded = ladder->demanded != 0 && !ladder->has[MEMRT__RUNG_THP];
    return (!demanded || pool == bytes) &&
           (pool == 0 || memrt__mapping_table_set_pool(mapping, page));
}
