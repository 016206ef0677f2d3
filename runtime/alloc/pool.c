#include "runtime/alloc/pool.h"

#include <string.h>

#include "runtime/alloc/cache.h"
#include "runtime/alloc/central.h"
#include "runtime/alloc/mapped.h"
#include "runtime/alloc/purger.h"
#include "runtime/alloc/warm.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"

/// The allocator of policies that name none: blocks by size class from the calling thread's cache,
/// large ones on mappings kept warm. Which way a block went follows from its size and alignment.
/// The context says where large ones are kept; NULL: where those of all policies are.

void memrt__pool_start(void)
{
    memrt__cache_start();
}

/// Bytes of the class block in which a block of that size can be placed at that alignment. False:
/// there is none, the block is large.
static bool class_bytes(size_t size, size_t align, size_t *bytes)
{
    size_t slack = align > MEMRT_HEADER_SIZE ? align - MEMRT_HEADER_SIZE : 0;
    return memrt__size_add(size, slack, bytes) && *bytes <= MEMRT__CLASS_BYTES_MAX;
}

static void *align_up(void *block, size_t align)
{
    return (char *)block + (-(uintptr_t)block & (align - 1));
}

/// Where the block begins that an aligned pointer lies in.
static void *block_around(void *ptr, size_t align)
{
    if (align <= MEMRT_HEADER_SIZE) {
        return ptr;
    }
    const memrt__span_t *span = memrt__pages_span_of(ptr);
    size_t offset = (size_t)((char *)ptr - span->base);
    return span->base + offset / span->bytes * span->bytes;
}

static void *take_class(unsigned class)
{
    memrt__thread_t *self = memrt__thread_self();
    bool clean;
    return self != NULL ? memrt__cache_take(self, class) : memrt__central_take_one(class, &clean);
}

/// From here on it is worth while to look whether a block is zero already.
#define CLEAN_FROM ((size_t)32 << 10)

static void *take_class_zeroed(unsigned class)
{
    memrt__thread_t *self = memrt__thread_self();
    size_t bytes = memrt__class_bytes(class);
    bool clean = false;
    void *block;
    if (self == NULL || (bytes >= CLEAN_FROM && self->bins[class].count == 0)) {
        block = memrt__central_take_one(class, &clean);
    } else {
        block = memrt__cache_take(self, class);
    }
    return block == NULL || clean ? block : memset(block, 0, bytes);
}

static memrt__warm_t *warm_in(void *ctx)
{
    return ctx == NULL ? &memrt__warm_shared : ctx;
}

static void *take_large(void *ctx, size_t size, size_t align, bool zeroed)
{
    size_t bytes;
    return memrt__warm_bytes(size, &bytes) ? memrt__warm_take(warm_in(ctx), bytes, align, zeroed)
                                           : NULL;
}

static void *pool_alloc(void *ctx, size_t size, size_t align)
{
    size_t bytes;
    if (!class_bytes(size, align, &bytes)) {
        return take_large(ctx, size, align, false);
    }
    void *block = take_class(memrt__class_of_bytes(bytes));
    return block == NULL ? NULL : align_up(block, align);
}

static void *pool_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    size_t bytes;
    if (!class_bytes(size, align, &bytes)) {
        return take_large(ctx, size, align, true);
    }
    void *block = take_class_zeroed(memrt__class_of_bytes(bytes));
    return block == NULL ? NULL : align_up(block, align);
}

static void pool_free(void *ctx, void *ptr, size_t size, size_t align)
{
    size_t bytes;
    if (class_bytes(size, align, &bytes)) {
        memrt__cache_return(memrt__class_of_bytes(bytes), block_around(ptr, align));
    } else if (memrt__warm_bytes(size, &bytes)) {
        memrt__warm_give(warm_in(ctx), ptr, bytes);
        memrt__purger_wake();
    }
}

static void *resize_large(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    size_t old_bytes, new_bytes;
    if (!memrt__warm_bytes(old_size, &old_bytes) || !memrt__warm_bytes(new_size, &new_bytes)) {
        return NULL;
    }
    return old_bytes == new_bytes
               ? ptr
               : memrt__warm_resize(warm_in(ctx), ptr, old_bytes, new_bytes, align);
}

static void *pool_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    size_t old_bytes, new_bytes;
    bool was_small = class_bytes(old_size, align, &old_bytes);
    bool is_small = class_bytes(new_size, align, &new_bytes);
    if (was_small && is_small &&
        memrt__class_of_bytes(old_bytes) == memrt__class_of_bytes(new_bytes)) {
        return ptr;
    }
    if (!was_small && !is_small) {
        void *resized = resize_large(ctx, ptr, old_size, new_size, align);
        if (resized != NULL) {
            return resized;
        }
    }
    void *moved = pool_alloc(ctx, new_size, align);
    if (moved != NULL) {
        memcpy(moved, ptr, memrt__size_min(old_size, new_size));
        pool_free(ctx, ptr, old_size, align);
    }
    return moved;
}

static size_t pool_release_unused(void *ctx)
{
    if (ctx != NULL) {
        return memrt__warm_purge(ctx, UINT64_MAX);
    }
    memrt__thread_t *self = memrt__self;
    memrt__cache_ask_others(self);
    if (self != NULL) {
        memrt__cache_drain(self);
    }
    return memrt__purge_all();
}

static void pool_usage(void *ctx, memrt_allocator_usage_t *out)
{
    out->cached = memrt__warm_cached(warm_in(ctx));
    if (ctx == NULL) {
        out->cached += memrt__cache_cached() + memrt__central_cached() + memrt__pages_cached();
    }
}

static void pool_destroy(void *ctx)
{
    memrt__warm_delete(ctx);
}

const memrt_allocator_t memrt__pool_allocator = {
    .struct_size = sizeof(memrt_allocator_t),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "pool",
    .alloc = pool_alloc,
    .alloc_zeroed = pool_alloc_zeroed,
    .realloc = pool_realloc,
    .free = pool_free,
    .release_unused = pool_release_unused,
    .usage = pool_usage,
};

bool memrt__is_pool(const memrt_allocator_t *allocator)
{
    return allocator->alloc == pool_alloc;
}

const memrt_allocator_t *memrt__default_allocator(void)
{
    return memrt__options.cache ? &memrt__pool_allocator : &memrt__plain_allocator;
}

bool memrt__is_shared_pool(const memrt_allocator_t *allocator)
{
    return memrt__is_pool(allocator) && allocator->ctx == NULL;
}

/// Without a cache there is nothing to limit but the advice on fresh mappings.
static void limit_plain(const memrt__limits_t *limits, memrt_allocator_t *out)
{
    *out = memrt__plain_allocator;
    out->ctx = (void *)(uintptr_t)memrt__mapped_with(limits->huge_pages);
}

static memrt_status_t limit_pool(const memrt__limits_t *limits, memrt_allocator_t *out)
{
    memrt__warm_t *warm = memrt__warm_new(limits);
    if (warm == NULL) {
        return MEMRT_ENOMEM;
    }
    *out = memrt__pool_allocator;
    out->ctx = warm;
    out->destroy = pool_destroy;
    memrt__purger_hurry();
    return MEMRT_OK;
}

memrt_status_t memrt__limited_allocator(const memrt__limits_t *limits, memrt_allocator_t *out)
{
    if (memrt__options.cache) {
        return limit_pool(limits, out);
    }
    limit_plain(limits, out);
    return MEMRT_OK;
}

void memrt__pool_close(const memrt_allocator_t *allocator)
{
    if (memrt__is_pool(allocator) && allocator->ctx != NULL) {
        memrt__warm_close(allocator->ctx);
    }
}

static void follow_mode(memrt__huge_t before, memrt__huge_t now)
{
    memrt__warm_readvise();
    if ((before == MEMRT__HUGE_ADVISE) != (now == MEMRT__HUGE_ADVISE)) {
        memrt__pages_advise(now == MEMRT__HUGE_ADVISE);
    }
}

void memrt__pool_follow(memrt__huge_t before)
{
    memrt__huge_t now = memrt__huge_of(MEMRT__INHERIT);
    if (now != before) {
        follow_mode(before, now);
    }
    memrt__warm_trim();
    memrt__purger_hurry();
}
