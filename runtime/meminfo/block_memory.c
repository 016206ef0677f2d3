#include "runtime/meminfo/block_memory.h"

#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/reserved.h"
#include "runtime/base/atomics.h"
#include "runtime/base/memory_tool.h"
#include "runtime/base/size.h"
#include "runtime/event/block_fault.h"

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

static char *alloc_reserved(const memrt__block_request_t *request,
                            const memrt__block_layout_t *layout)
{
    size_t reserve;
    if (!memrt__size_add(layout->lead, request->reserve, &reserve)) {
        return NULL;
    }
    memrt_allocator_t allocator = memrt__reserved_allocator(reserve);
    char *start = memrt__allocator_alloc(&allocator, layout->bytes, layout->align, true);
    if (start != NULL) {
        memrt__fetch_add_relaxed(&external_bytes, layout->bytes);
    }
    return start;
}

/// Return whether memory comes from the default allocator. Memory of another allocator may be of a
/// special kind.
static bool is_default(const memrt_allocator_t *allocator)
{
    return allocator->alloc == memrt__default_allocator()->alloc;
}

/// Allocate a block between guard pages. NULL: the block is not due, or gets no guard pages.
static char *alloc_guarded(const memrt__block_request_t *request, memrt__block_layout_t *layout)
{
    const memrt_allocator_t *allocator = &request->policy->allocator;
    if (!request->event.guarded || !is_default(allocator)) {
        return NULL;
    }
    char *start = memrt__guard_pages_alloc(layout->bytes, layout->lead, layout->align);
    layout->guarded = start != NULL;
    if (start != NULL && memrt__is_heap(allocator)) {
        memrt__fetch_add_relaxed(&external_bytes, layout->bytes);
    }
    return start;
}

static void free_guarded(const memrt_meminfo_t *mi, char *start, size_t bytes)
{
    if (memrt__is_heap(&memrt__policy_of(mi)->allocator)) {
        memrt__fetch_add_relaxed(&external_bytes, (size_t)0 - bytes);
    }
    memrt__guard_pages_free(start);
}

/// Return the kind of a request for fault injection.
static unsigned fault_kind_of(const memrt__block_request_t *request)
{
    if (request->moves) {
        return MEMRT_FAULT_RESIZE;
    }
    return request->kind == MEMRT_KIND_BLOCK ? MEMRT_FAULT_BLOCK : MEMRT_FAULT_MEMINFO;
}

char *memrt__block_memory_alloc(const memrt__block_request_t *request,
                                memrt__block_layout_t *layout)
{
    if (memrt__block_fault_is_due(fault_kind_of(request), request->size, request->policy)) {
        return NULL;
    }
    if (request->external != NULL) {
        return alloc_external(request, layout);
    }
    if (request->reserve != 0) {
        return alloc_reserved(request, layout);
    }
    const memrt_allocator_t *allocator = &request->policy->allocator;
    if (memrt__is_guard(allocator)) {
        size_t padding = layout->lead - MEMRT_HEADER_SIZE;
        return memrt__guard_alloc(allocator, padding, layout->bytes, layout->align,
                                  request->zeroed);
    }
    char *guarded = alloc_guarded(request, layout);
    if (MEMRT__UNLIKELY(guarded != NULL)) {
        return guarded;
    }
    return memrt__allocator_alloc(allocator, layout->bytes, layout->align, request->zeroed);
}

/// Bytes at the end of a header that no public header declares to be read: `lead` and `bin`.
#define FORBIDDEN 8

_Static_assert(offsetof(memrt_meminfo_t, lead) == MEMRT_HEADER_SIZE - FORBIDDEN,
               "compiled code reads no member from here on");

/// Return whether the memory of a block is a block of malloc, as the default allocator's is under a
/// tool. Other memory would stay forbidden after the free.
static bool is_of_malloc(const memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    return memrt__has_data((memrt_kind_t)mi->kind) && mi->external_allocator == NULL &&
           (flags & (MEMRT__FLAG_GUARDED | MEMRT__FLAG_RESERVED)) == 0 &&
           is_default(&memrt__policy_of(mi)->allocator);
}

void memrt__block_memory_mark_header(const memrt_meminfo_t *mi, bool forbid)
{
    if (!is_of_malloc(mi)) {
        return;
    }
    if (forbid) {
        memrt__memory_tool_forbid(&mi->lead, FORBIDDEN);
    } else {
        memrt__memory_tool_permit(&mi->lead, FORBIDDEN);
    }
}

bool memrt__block_memory_resize_reserved(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                                         const memrt__block_layout_t *layout)
{
    memrt_allocator_t allocator = memrt__reserved_allocator(0);
    MEMRT__ASSERT(memrt__block_is_reserved(mi));
    if (layout->bytes <= old->bytes) { /* a shrink stays in place and never fails */
        (void)memrt__allocator_realloc(&allocator, memrt__block_start(mi), old->bytes,
                                       layout->bytes, layout->align);
    } else if (!memrt__allocator_try_expand(&allocator, memrt__block_start(mi), old->bytes,
                                            layout->bytes, layout->align)) {
        return false;
    }
    memrt__fetch_add_relaxed(&external_bytes, layout->bytes - old->bytes);
    return true;
}

size_t memrt__block_memory_usable(const memrt_meminfo_t *mi, const memrt__block_layout_t *layout)
{
    bool guarded = (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_GUARDED) != 0;
    if (mi->external_allocator != NULL || guarded) {
        return mi->size;
    }
    memrt_allocator_t reserved = memrt__reserved_allocator(0);
    const memrt_allocator_t *allocator =
        memrt__block_is_reserved(mi) ? &reserved : &memrt__policy_of(mi)->allocator;
    return memrt__allocator_usable_size(allocator, memrt__block_start(mi), layout->bytes,
                                        layout->align) -
           layout->lead;
}

void memrt__block_memory_free(memrt_meminfo_t *mi, size_t bytes, size_t align)
{
    char *start = memrt__block_start(mi);
    MEMRT__ASSERT(mi->lead >= MEMRT_HEADER_SIZE && memrt__policy_of(mi) != NULL);
    if (MEMRT__UNLIKELY((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_GUARDED) != 0)) {
        free_guarded(mi, start, bytes);
    } else if (mi->external_allocator != NULL) {
        memrt__fetch_add_relaxed(&external_bytes, (size_t)0 - bytes);
        mi->external_allocator->free(start, mi->external_allocator->opaque_data);
    } else if (memrt__block_is_reserved(mi)) {
        memrt_allocator_t allocator = memrt__reserved_allocator(0);
        memrt__fetch_add_relaxed(&external_bytes, (size_t)0 - bytes);
        memrt__allocator_free(&allocator, start, bytes, align);
    } else {
        memrt__allocator_free(&memrt__policy_of(mi)->allocator, start, bytes, align);
    }
}
