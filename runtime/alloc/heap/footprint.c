#include "runtime/alloc/heap/footprint.h"

#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/handover.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/base/size.h"

memrt__footprint_t memrt__footprint_read(void)
{
    size_t mapped, cached_mappings;
    size_t taken = memrt__central_list_taken();
    size_t idle = memrt__thread_cache_cached() + memrt__handover_cached();
    memrt__large_cache_sums(&mapped, &cached_mappings);
    memrt__footprint_t out = {
        .allocated = mapped + memrt__size_at_least_zero(taken - idle),
        .active = mapped + memrt__page_heap_used(),
        .cached = cached_mappings + memrt__page_heap_cached(),
    };
    out.active = memrt__size_max(out.active, out.allocated);
    return out;
}
