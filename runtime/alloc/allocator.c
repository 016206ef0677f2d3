#include "runtime/alloc/allocator.h"

#include <string.h>

#include "runtime/base/size.h"

memrt_status_t memrt__allocator_copy(const memrt_allocator_t *from, memrt_allocator_t *to)
{
    memrt_allocator_t copy = {0};
    if (from->struct_size < offsetof(memrt_allocator_t, alloc) ||
        from->version != MEMRT_ALLOCATOR_VERSION) {
        return MEMRT_EINVAL;
    }
    memcpy(&copy, from, memrt__size_min(from->struct_size, sizeof(copy)));
    if (copy.alloc == NULL || copy.free == NULL) {
        return MEMRT_EINVAL;
    }
    copy.struct_size = sizeof(copy);
    if (copy.name == NULL) {
        copy.name = "unnamed";
    }
    MEMRT__ASSERT(copy.version == MEMRT_ALLOCATOR_VERSION);
    *to = copy;
    return MEMRT_OK;
}

void *memrt__allocator_alloc(const memrt_allocator_t *allocator, size_t size, size_t align,
                             bool zeroed)
{
    MEMRT__ASSERT(size != 0 && memrt__is_power_of_two(align));
    if (!zeroed) {
        return allocator->alloc(allocator->ctx, size, align);
    }
    if (allocator->alloc_zeroed != NULL) {
        return allocator->alloc_zeroed(allocator->ctx, size, align);
    }
    void *ptr = allocator->alloc(allocator->ctx, size, align);
    if (ptr != NULL) {
        memset(ptr, 0, size);
    }
    return ptr;
}

void *memrt__allocator_move(const memrt_allocator_t *from, const memrt_allocator_t *to, void *ptr,
                            size_t old_size, size_t new_size, size_t align)
{
    MEMRT__ASSERT(ptr != NULL);
    void *moved = memrt__allocator_alloc(to, new_size, align, false);
    if (moved != NULL) {
        memcpy(moved, ptr, memrt__size_min(old_size, new_size));
        memrt__allocator_free(from, ptr, old_size, align);
    }
    return moved;
}

void *memrt__allocator_realloc(const memrt_allocator_t *allocator, void *ptr, size_t old_size,
                               size_t new_size, size_t align)
{
    MEMRT__ASSERT(ptr != NULL && memrt__is_power_of_two(align));
    if (allocator->realloc != NULL) {
        return allocator->realloc(allocator->ctx, ptr, old_size, new_size, align);
    }
    if (new_size > old_size &&
        memrt__allocator_try_expand(allocator, ptr, old_size, new_size, align)) {
        return ptr;
    }
    return memrt__allocator_move(allocator, allocator, ptr, old_size, new_size, align);
}

bool memrt__allocator_try_expand(const memrt_allocator_t *allocator, void *ptr, size_t old_size,
                                 size_t new_size, size_t align)
{
    MEMRT__ASSERT(ptr != NULL && new_size > old_size && memrt__is_power_of_two(align));
    return allocator->try_expand != NULL &&
           allocator->try_expand(allocator->ctx, ptr, old_size, new_size, align);
}

size_t memrt__allocator_usable_size(const memrt_allocator_t *allocator, const void *ptr,
                                    size_t size, size_t align)
{
    MEMRT__ASSERT(ptr != NULL && size != 0);
    return allocator->usable_size == NULL
               ? size
               : allocator->usable_size(allocator->ctx, ptr, size, align);
}

size_t memrt__allocator_good_size(const memrt_allocator_t *allocator, size_t size, size_t align)
{
    MEMRT__ASSERT(size != 0 && memrt__is_power_of_two(align));
    return allocator->good_size == NULL ? size : allocator->good_size(allocator->ctx, size, align);
}

void memrt__allocator_free(const memrt_allocator_t *allocator, void *ptr, size_t size, size_t align)
{
    MEMRT__ASSERT(ptr != NULL && ((size_t)ptr & (align - 1)) == 0);
    allocator->free(allocator->ctx, ptr, size, align);
}

size_t memrt__allocator_release_unused(const memrt_allocator_t *allocator)
{
    return allocator->release_unused == NULL ? 0 : allocator->release_unused(allocator->ctx);
}

size_t memrt__allocator_cached(const memrt_allocator_t *allocator)
{
    memrt_allocator_usage_t usage = {0};
    if (allocator->usage != NULL) {
        allocator->usage(allocator->ctx, &usage);
    }
    return usage.cached;
}

void memrt__allocator_destroy(const memrt_allocator_t *allocator)
{
    if (allocator->destroy != NULL) {
        allocator->destroy(allocator->ctx);
    }
}
