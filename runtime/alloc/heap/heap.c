#include "runtime/alloc/heap/heap.h"

#include <string.h>

#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/handover.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/alloc/mapped.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"

/// The heap, the default allocator: small and medium blocks by size class from the calling thread's
/// cache, large blocks from a large-object cache. Size and alignment alone determine the path of a
/// block. The context is the large-object cache of a policy; NULL: the cache shared by all
/// policies.

void memrt__heap_start(void)
{
    memrt__link_start();
    memrt__thread_cache_start();
}

/// Compute the bytes of the class block for a block of `size` bytes at `align`. Returns false if
/// the block is large.
static bool compute_class_bytes(size_t size, size_t align, size_t *bytes)
{
    MEMRT__ASSERT(memrt__is_power_of_two(align));
    size_t slack = align > MEMRT_HEADER_SIZE ? align - MEMRT_HEADER_SIZE : 0;
    return memrt__size_add(size, slack, bytes) && *bytes <= MEMRT__CLASS_BYTES_MAX;
}

static void *align_pointer(void *block, size_t align)
{
    MEMRT__ASSERT(memrt__is_power_of_two(align));
    return (char *)block + (-(uintptr_t)block & (align - 1));
}

/// Return the start of the block that contains an aligned pointer.
static void *find_block_start(void *ptr, size_t align)
{
    if (align <= MEMRT_HEADER_SIZE) {
        return ptr;
    }
    const memrt__span_t *span = memrt__page_heap_span_of(ptr);
    MEMRT__ASSERT((char *)ptr >= span->base && (char *)ptr < span->end);
    size_t offset = (size_t)((char *)ptr - span->base);
    return span->base + offset / span->bytes * span->bytes;
}

static void *take_class_block(unsigned class)
{
    memrt__thread_t *self = memrt__thread_self();
    bool clean;
    return self != NULL ? memrt__thread_cache_take(self, class)
                        : memrt__central_list_take_one(class, &clean);
}

/// Minimum bytes of a class block for which asking the central list for a zero block is worth the
/// cost.
#define CLEAN_FROM ((size_t)32 << 10)

static void *take_zeroed_class_block(unsigned class)
{
    memrt__thread_t *self = memrt__thread_self();
    size_t bytes = memrt__class_bytes(class);
    bool clean = false;
    void *block;
    if (self == NULL || (bytes >= CLEAN_FROM && memrt__bin_count(self, class) == 0)) {
        block = memrt__central_list_take_one(class, &clean);
    } else {
        block = memrt__thread_cache_take(self, class);
    }
    return block == NULL ? NULL : memset(block, 0, clean ? MEMRT_HEADER_SIZE : bytes);
}

static memrt__large_cache_t *get_large_cache(void *ctx)
{
    return ctx == NULL ? &memrt__large_cache_shared : ctx;
}

/// Compute the bytes of the mapping for a large block. Without a large alignment, the block begins
/// memrt__start_offset() bytes after the start of the mapping.
static bool compute_mapping_bytes(size_t size, size_t align, size_t *bytes)
{
    size_t most = align <= MEMRT_HEADER_SIZE ? MEMRT__START_MAX : 0;
    return memrt__size_add(size, most, bytes) && memrt__large_cache_bytes(*bytes, bytes);
}

/// Return the bytes of the mapping of an existing block.
static size_t get_mapping_bytes(size_t size, size_t align)
{
    size_t bytes;
    bool fits = compute_mapping_bytes(size, align, &bytes);
    MEMRT__ASSERT(fits);
    (void)fits;
    return bytes;
}

static void *take_large_block(void *ctx, size_t size, size_t align, bool zeroed)
{
    size_t bytes;
    if (!compute_mapping_bytes(size, align, &bytes)) {
        return NULL;
    }
    char *mapping = memrt__large_cache_take(get_large_cache(ctx), bytes, align, zeroed);
    if (mapping == NULL || align > MEMRT_HEADER_SIZE) {
        return mapping;
    }
    return mapping + memrt__start_offset(mapping);
}

static void *heap_alloc(void *ctx, size_t size, size_t align)
{
    size_t bytes;
    if (!compute_class_bytes(size, align, &bytes)) {
        return take_large_block(ctx, size, align, false);
    }
    void *block = take_class_block(memrt__class_of_bytes(bytes));
    return block == NULL ? NULL : align_pointer(block, align);
}

static void *heap_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    size_t bytes;
    if (!compute_class_bytes(size, align, &bytes)) {
        return take_large_block(ctx, size, align, true);
    }
    void *block = take_zeroed_class_block(memrt__class_of_bytes(bytes));
    return block == NULL ? NULL : align_pointer(block, align);
}

static void heap_free(void *ctx, void *ptr, size_t size, size_t align)
{
    size_t bytes;
    if (compute_class_bytes(size, align, &bytes)) {
        unsigned class = memrt__class_of_bytes(bytes);
        void *block = find_block_start(ptr, align);
        MEMRT__ASSERT(memrt__page_heap_span_of(ptr)->class == class);
        memrt__cached_header_write(class, block);
        memrt__thread_cache_return(class, block);
    } else {
        bytes = get_mapping_bytes(size, align);
        memrt__large_cache_give(get_large_cache(ctx), memrt__start_of_pages(ptr), bytes);
        memrt__purger_wake();
    }
}

/// Resize the mapping of a large block, at the same address unless `may_move`. NULL: the system
/// refused, nothing changed.
static void *resize_large_block(void *ctx, void *ptr, size_t old_size, size_t new_size,
                                size_t align, bool may_move)
{
    size_t old_bytes = get_mapping_bytes(old_size, align), new_bytes;
    if (!compute_mapping_bytes(new_size, align, &new_bytes)) {
        return NULL;
    }
    if (old_bytes == new_bytes) {
        return ptr;
    }
    char *mapping = memrt__start_of_pages(ptr);
    size_t offset = (size_t)((char *)ptr - mapping);
    mapping =
        memrt__large_cache_resize(get_large_cache(ctx), mapping, old_bytes, new_bytes, may_move);
    return mapping == NULL ? NULL : mapping + offset;
}

/// Let a class block of `old_bytes` serve as one of `new_bytes`, at the same address. Returns
/// false, with nothing changed, if that is not possible.
static bool resize_class_block(void *ptr, size_t old_bytes, size_t new_bytes, size_t align)
{
    unsigned before = memrt__class_of_bytes(old_bytes), after = memrt__class_of_bytes(new_bytes);
    return before == after ||
           memrt__central_list_resize(find_block_start(ptr, align), before, after);
}

static int heap_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    size_t old_bytes, new_bytes;
    bool was_small = compute_class_bytes(old_size, align, &old_bytes);
    if (compute_class_bytes(new_size, align, &new_bytes)) {
        MEMRT__ASSERT(was_small);
        return resize_class_block(ptr, old_bytes, new_bytes, align);
    }
    return !was_small && resize_large_block(ctx, ptr, old_size, new_size, align, false) != NULL;
}

static size_t heap_good_size(void *ctx, size_t size, size_t align)
{
    size_t bytes;
    (void)ctx;
    if (compute_class_bytes(size, align, &bytes)) {
        return size + memrt__class_bytes(memrt__class_of_bytes(bytes)) - bytes;
    }
    size_t most = align <= MEMRT_HEADER_SIZE ? MEMRT__START_MAX : 0;
    return compute_mapping_bytes(size, align, &bytes) ? bytes - most : size;
}

static size_t heap_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ptr;
    return heap_good_size(ctx, size, align);
}

static void *heap_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    size_t old_bytes, new_bytes;
    MEMRT__ASSERT(((size_t)ptr & (align - 1)) == 0);
    bool was_small = compute_class_bytes(old_size, align, &old_bytes);
    bool is_small = compute_class_bytes(new_size, align, &new_bytes);
    if (was_small && is_small && resize_class_block(ptr, old_bytes, new_bytes, align)) {
        return ptr;
    }
    if (!was_small && !is_small) {
        bool may_move = align <= memrt__os_page_size();
        void *resized = resize_large_block(ctx, ptr, old_size, new_size, align, may_move);
        if (resized != NULL) {
            return resized;
        }
    }
    void *moved = heap_alloc(ctx, new_size, align);
    if (moved != NULL) {
        memcpy(moved, ptr, memrt__size_min(old_size, new_size));
        heap_free(ctx, ptr, old_size, align);
    }
    return moved;
}

static size_t heap_release_unused(void *ctx)
{
    if (ctx != NULL) {
        return memrt__large_cache_purge(ctx, UINT64_MAX);
    }
    memrt__thread_t *self = memrt__thread_or_null();
    memrt__thread_reap();
    memrt__thread_cache_drain_others(self);
    if (self != NULL) {
        memrt__thread_cache_drain(self);
    }
    memrt__handover_purge(true);
    return memrt__purge_all();
}

static void heap_usage(void *ctx, memrt_allocator_usage_t *out)
{
    out->cached = memrt__large_cache_cached(get_large_cache(ctx));
    if (ctx == NULL) {
        out->cached += memrt__thread_cache_cached() + memrt__handover_cached() +
                       memrt__central_list_cached() + memrt__page_heap_cached();
    }
}

static void heap_destroy(void *ctx)
{
    memrt__large_cache_delete(ctx);
}

const memrt_allocator_t memrt__heap_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "heap",
    .alloc = heap_alloc,
    .alloc_zeroed = heap_alloc_zeroed,
    .realloc = heap_realloc,
    .free = heap_free,
    .release_unused = heap_release_unused,
    .usage = heap_usage,
    .try_expand = heap_try_expand,
    .usable_size = heap_usable_size,
    .good_size = heap_good_size,
};

bool memrt__is_heap(const memrt_allocator_t *allocator)
{
    return allocator->alloc == heap_alloc;
}

const memrt_allocator_t *memrt__default_allocator(void)
{
    if (memrt__options.tools) {
        return &memrt__system_allocator;
    }
    return memrt__options.cache ? &memrt__heap_allocator : &memrt__uncached_allocator;
}

bool memrt__is_shared_heap(const memrt_allocator_t *allocator)
{
    return memrt__is_heap(allocator) && allocator->ctx == NULL;
}

/// Make an uncached allocator with limits. Without a cache, only the huge page mode applies, and
/// under a tool none of the limits.
static void make_limited_uncached(const memrt__limits_t *limits, memrt_allocator_t *out)
{
    *out = *memrt__default_allocator();
    if (!memrt__options.tools) {
        out->ctx = (void *)(uintptr_t)memrt__mapped_with(limits->huge_pages);
    }
}

static memrt_status_t make_limited_heap(const memrt__limits_t *limits, memrt_allocator_t *out)
{
    memrt__large_cache_t *cache = memrt__large_cache_new(limits);
    if (cache == NULL) {
        return MEMRT_ENOMEM;
    }
    *out = memrt__heap_allocator;
    out->ctx = cache;
    out->destroy = heap_destroy;
    memrt__purger_hurry();
    return MEMRT_OK;
}

memrt_status_t memrt__limited_allocator(const memrt__limits_t *limits, memrt_allocator_t *out)
{
    if (memrt__options.cache) {
        return make_limited_heap(limits, out);
    }
    make_limited_uncached(limits, out);
    return MEMRT_OK;
}

void memrt__heap_close(const memrt_allocator_t *allocator)
{
    if (memrt__is_heap(allocator) && allocator->ctx != NULL) {
        memrt__large_cache_close(allocator->ctx);
    }
}

bool memrt__has_limits(const memrt_allocator_t *allocator)
{
    bool ours = memrt__is_heap(allocator) || allocator->alloc == memrt__uncached_allocator.alloc;
    return ours && allocator->ctx != NULL;
}

bool memrt__heap_change_limits(const memrt_allocator_t *allocator, const memrt__limits_t *before,
                               const memrt__limits_t *limits)
{
    MEMRT__ASSERT(memrt__has_limits(allocator));
    if (!memrt__is_heap(allocator)) {
        return limits->huge_pages == before->huge_pages;
    }
    memrt__large_cache_change(allocator->ctx, limits);
    return true;
}

void memrt__heap_apply_limits(void)
{
    memrt__large_cache_trim();
    memrt__purger_hurry();
}

static void apply_huge_mode(memrt__huge_t before, memrt__huge_t now)
{
    memrt__large_cache_readvise();
    if ((before == MEMRT__HUGE_ADVISE) != (now == MEMRT__HUGE_ADVISE)) {
        memrt__page_heap_advise(now == MEMRT__HUGE_ADVISE);
    }
}

void memrt__heap_follow(memrt__huge_t before)
{
    memrt__huge_t now = memrt__huge_of(MEMRT__INHERIT);
    if (now != before) {
        apply_huge_mode(before, now);
    }
    memrt__heap_apply_limits();
}
