#include "runtime/meminfo/block_memory.h"

#include <string.h>

#include "runtime/alloc/guard/guard.h"
#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"

static size_t external_bytes; /* any thread, relaxed add */

size_t memrt__block_memory_external(void)
{
    return memrt__load_relaxed(&external_bytes);
}

/// Allocate from an external allocator, which guarantees no alignment. Requests extra bytes and
/// aligns the data inside of the result.
static char *alloc_external(const memrt__block_request_t *request, memrt__block_layout_t *layout)
{
    size_t bytes;
    if (!memrt__size_add(layout->bytes, layout->align, &bytes)) {
        return NULL;
    }
    char *start = request->external->malloc(bytes, request->external->opaque_data);
    if (start == NULL) {
        return NULL;
    }
    size_t shift = (size_t)(-(uintptr_t)start & (layout->align - 1));
    MEMRT__ASSERT(shift < layout->align);
    layout->lead += shift;
    layout->bytes = bytes;
    memrt__fetch_add_relaxed(&external_bytes, bytes);
    if (request->zeroed) {
        memset(start + layout->lead, 0, request->size);
    }
    return start;
}

char *memrt__block_memory_alloc(const memrt__block_request_t *request,
                                memrt__block_layout_t *layout)
{
    if (memrt__fault_is_due()) {
        return NULL;
    }
    if (request->external != NULL) {
        return alloc_external(request, layout);
    }
    const memrt_allocator_t *allocator = &request->policy->allocator;
    if (memrt__is_guard(allocator)) {
        size_t padding = layout->lead - MEMRT_HEADER_SIZE;
        return memrt__guard_alloc(allocator, padding, layout->bytes, layout->align,
                                  request->zeroed);
    }
    return memrt__allocator_alloc(allocator, layout->bytes, layout->align, request->zeroed);
}

void memrt__block_memory_free(memrt_meminfo_t *mi, size_t bytes, size_t align)
{
    char *start = (char *)mi + MEMRT_HEADER_SIZE - mi->lead;
    MEMRT__ASSERT(mi->lead >= MEMRT_HEADER_SIZE && memrt__policy_of(mi) != NULL);
    if (mi->external_allocator != NULL) {
        memrt__fetch_add_relaxed(&external_bytes, (size_t)0 - bytes);
        mi->external_allocator->free(start, mi->external_allocator->opaque_data);
    } else {
        memrt__allocator_free(&memrt__policy_of(mi)->allocator, start, bytes, align);
    }
}
