#include "runtime/alloc/placed/pool_map.h"

#include "runtime/alloc/placed/node_place.h"
#include "runtime/alloc/placed/pool_fork.h"
#include "runtime/alloc/placed/prefault.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

/// Put pages of the pool at the start of a range that has no contents. Returns 0, or the error
/// number of the system.
static int put_pool_pages(const memrt__pool_map_t *map, void *start, size_t bytes, size_t page)
{
    int error;
    void *pages = memrt__os_map_pool(bytes, page, &error);
    if (pages == NULL) {
        return error;
    }
    uint64_t nodes = memrt__node_place_set(map->nodes);
    error = memrt__node_place(map->nodes, pages, bytes, page);
    error = error == 0 ? memrt__prefault(pages, bytes, map->threads, nodes) : error;
    error = error == 0 ? memrt__os_hide_from_child(pages, bytes) : error;
    error = error == 0 ? memrt__os_move(pages, bytes, start) : error;
    if (error != 0) {
        (void)memrt__os_unmap(pages, bytes);
    }
    return error;
}

/// Put as many pages of a rung behind the first `done` bytes of a mapping as fit, or none. Returns
/// the bytes that have pages of the pool then.
static size_t climb_rung(const memrt__pool_map_t *map, memrt__rung_t rung, char *mapping,
                         size_t done, size_t bytes)
{
    size_t page = rung == MEMRT__RUNG_1G ? MEMRT__GIANT_PAGE : MEMRT__HUGE_PAGE;
    size_t size = (bytes - done) / page * page;
    if (!map->ladder->has[rung] || size == 0) {
        return done;
    }
    int error = put_pool_pages(map, mapping + done, size, page);
    return memrt__refusal_note(&map->ladder->refused[rung], error) ? done + size : done;
}

bool memrt__pool_map(const memrt__pool_map_t *map, char *mapping, size_t bytes)
{
    const memrt__page_ladder_t *ladder = map->ladder;
    if (!memrt__page_ladder_has_pool(ladder)) {
        return true;
    }
    memrt__mapping_table_ask_huge(mapping, true);
    size_t giant = climb_rung(map, MEMRT__RUNG_1G, mapping, 0, bytes);
    size_t pool = climb_rung(map, MEMRT__RUNG_2M, mapping, giant, bytes);
    size_t page = pool == giant ? MEMRT__GIANT_PAGE : MEMRT__HUGE_PAGE;
    bool demanded = ladder->demanded != 0 && !ladder->has[MEMRT__RUNG_THP];
    memrt__pool_fork_note();
    return (!demanded || pool == bytes) &&
           (pool == 0 || memrt__mapping_table_set_pool(mapping, page));
}
