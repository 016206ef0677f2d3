#include "runtime/report/memory_stats.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/heap/footprint.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/base/size.h"
#include "runtime/meminfo/block_memory.h"
#include "runtime/observe/intern_table.h"
#include "runtime/observe/live_set.h"
#include "runtime/os/lock.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/stats.h"

/// Sums over the mappings of memrt, in bytes.
typedef struct sums {
    size_t segments, records, resident;
    uint64_t huge_asked, huge_got;
    int page_map;    ///< file; -1: not open
    bool knows_huge; ///< the system reports huge pages
} sums_t;

/// Add the huge pages of a mapping that asks for huge pages. Pages of the pool are known without
/// the system.
static void add_huge(sums_t *sums, uintptr_t address, size_t bytes)
{
    if (!memrt__mapping_table_asks_huge((void *)address)) {
        return;
    }
    uintptr_t first = (address + MEMRT__HUGE_PAGE - 1) / MEMRT__HUGE_PAGE;
    uintptr_t end = (address + bytes) / MEMRT__HUGE_PAGE;
    size_t pool = memrt__mapping_table_pool((void *)address);
    sums->huge_asked += end > first ? (end - first) * MEMRT__HUGE_PAGE : 0;
    sums->huge_got += pool;
    if (pool != bytes && sums->knows_huge) {
        sums->knows_huge =
            memrt__os_huge_part(sums->page_map, address + pool, bytes - pool, &sums->huge_got);
    }
}

static void add_mapping(void *context, uintptr_t address, size_t bytes, memrt__mapping_use_t use)
{
    sums_t *sums = context;
    sums->segments += use == MEMRT__USE_SEGMENT ? bytes : 0;
    sums->records += use == MEMRT__USE_RECORDS ? bytes : 0;
    sums->resident += memrt__os_resident_part(address, bytes);
    add_huge(sums, address, bytes);
}

/// Return the upstream of a guard or arena, or NULL for another allocator.
static const memrt_allocator_t *find_upstream(const memrt_allocator_t *allocator)
{
    if (memrt__is_guard(allocator)) {
        return memrt__guard_upstream(allocator);
    }
    return memrt__is_arena(allocator) ? memrt__arena_upstream(allocator) : NULL;
}

/// Return whether blocks of an allocator come from the heap, directly or through guards and arenas.
static bool uses_heap(const memrt_allocator_t *allocator)
{
    const memrt_allocator_t *upstream;
    while ((upstream = find_upstream(allocator)) != NULL) {
        allocator = upstream;
    }
    return memrt__is_heap(allocator);
}

/// Return the bytes of live blocks that do not come from the heap. Under the lock of rank POLICIES.
static size_t read_outside(void)
{
    size_t bytes = memrt__block_memory_external();
    for (uint32_t index = 0; index < memrt__policy_table_end; index++) {
        const memrt_policy_t *policy = memrt__policies[index];
        if (policy != NULL && policy->base == policy && !uses_heap(&policy->allocator)) {
            memrt_stats_t stats;
            memrt__stats_read(&policy->level, &stats);
            bytes += stats.reserved;
        }
    }
    return bytes;
}

/// Return the bytes of policies and scopes. Under the lock of rank POLICIES.
static size_t read_policy_records(void)
{
    size_t policies = 0;
    for (uint32_t index = 0; index < memrt__policy_table_end; index++) {
        policies += memrt__policies[index] != NULL;
    }
    return policies * sizeof(memrt_policy_t) + memrt__scope_tree_count() * sizeof(memrt_scope_t);
}

/// Set the figures of blocks and pages. Each figure is at least the figure before, also while other
/// threads work.
static void set_block_figures(memrt_memory_stats_t *out)
{
    memrt_stats_t stats;
    memrt__stats_read(&memrt__process, &stats);
    memrt__footprint_t heap = memrt__footprint_read();
    out->requested = stats.live;
    out->headers = memrt__size_at_least_zero(stats.reserved - stats.live);
    out->allocated = memrt__size_max(heap.allocated + out->outside, out->requested);
    out->active = memrt__size_max(heap.active + out->outside, out->allocated);
    out->cached = heap.cached;
}

/// Set the figures of addresses and tables. A segment begins with its table, and its units are in
/// spans, cached or retained.
static void set_mapping_figures(memrt_memory_stats_t *out)
{
    sums_t sums = {.page_map = memrt__os_page_map_open()};
    sums.knows_huge = sums.page_map >= 0;
    memrt__mapping_table_visit(add_mapping, &sums);
    if (sums.page_map >= 0) {
        memrt__os_file_close(sums.page_map);
    }
    size_t tables = sums.segments / MEMRT__SEGMENT * MEMRT__SEGMENT_TABLE * MEMRT__UNIT;
    size_t units = memrt__page_heap_used() + memrt__page_heap_cached();
    out->tables = sums.records + tables;
    out->mapped = out->active + out->cached + out->tables;
    out->retained = memrt__size_at_least_zero(sums.segments - tables - units);
    out->resident = sums.resident;
    out->huge_asked = sums.huge_asked;
    out->huge_got = sums.knows_huge || sums.huge_asked == 0 ? sums.huge_got : UINT64_MAX;
}

memrt_status_t memrt__memory_stats_read(memrt_memory_stats_t *out)
{
    if (out->struct_size < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    memrt_memory_stats_t all = {.struct_size = out->struct_size};
    memrt__lock(MEMRT__RANK_POLICIES);
    all.outside = read_outside();
    all.records = read_policy_records();
    memrt__unlock(MEMRT__RANK_POLICIES);
    set_block_figures(&all);
    set_mapping_figures(&all);
    all.records += memrt__thread_record_bytes() + memrt__live_bytes() + memrt__interned_bytes();
    all.metadata = all.tables + all.records;
    memcpy(out, &all, memrt__size_min(all.struct_size, sizeof(all)));
    return MEMRT_OK;
}
