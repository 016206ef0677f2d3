#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/pool.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/size.h"

/// A guarded block lies between two fences in a block of the upstream:
///
///     | front fence, max(64, align) | size bytes | rear fence, 64 |

#define REAR 64u

static size_t front_of(size_t align)
{
    return memrt__size_max(64, align);
}

static bool outer_size(size_t size, size_t align, size_t *outer)
{
    return memrt__size_add(size, front_of(align) + REAR, outer);
}

static void write_fences(unsigned char *ptr, size_t size, size_t align)
{
    memset(ptr - front_of(align), MEMRT__POISON_FENCE, front_of(align));
    memset(ptr + size, MEMRT__POISON_FENCE, REAR);
}

static bool is_fence(unsigned char byte)
{
    return byte == MEMRT__POISON_FENCE;
}

ptrdiff_t memrt__guard_overrun(const void *ptr, size_t size, size_t align)
{
    const unsigned char *start = ptr;
    for (size_t before = front_of(align); before > 0; before--) {
        if (!is_fence(*(start - before))) {
            return -(ptrdiff_t)before;
        }
    }
    for (size_t past = 1; past <= REAR; past++) {
        if (!is_fence(start[size + past - 1])) {
            return (ptrdiff_t)past;
        }
    }
    return 0;
}

static void verify_fences(const unsigned char *ptr, size_t size, size_t align)
{
    ptrdiff_t overrun = memrt__guard_overrun(ptr, size, align);
    if (overrun != 0) {
        memrt__abort("block at %p of %zu bytes: a write %td bytes %s was found", (const void *)ptr,
                     size, overrun < 0 ? -overrun : overrun,
                     overrun < 0 ? "before its start" : "past its end");
    }
}

static void *guard_make(void *ctx, size_t size, size_t align, bool zeroed)
{
    size_t outer;
    if (!outer_size(size, align, &outer)) {
        return NULL;
    }
    unsigned char *start = memrt__allocator_alloc(ctx, outer, align, zeroed);
    if (start == NULL) {
        return NULL;
    }
    unsigned char *ptr = start + front_of(align);
    write_fences(ptr, size, align);
    if (!zeroed) {
        memset(ptr, MEMRT__POISON_FRESH, size);
    }
    return ptr;
}

static void *guard_alloc(void *ctx, size_t size, size_t align)
{
    return guard_make(ctx, size, align, false);
}

static void *guard_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return guard_make(ctx, size, align, true);
}

static void guard_free(void *ctx, void *ptr, size_t size, size_t align)
{
    verify_fences(ptr, size, align);
    memset(ptr, MEMRT__POISON_FREED, size);
    size_t outer;
    if (outer_size(size, align, &outer)) {
        memrt__allocator_free(ctx, (unsigned char *)ptr - front_of(align), outer, align);
    }
}

/// Always moves, so that a pointer kept across a resize shows.
static void *guard_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    verify_fences(ptr, old_size, align);
    void *moved = guard_alloc(ctx, new_size, align);
    if (moved != NULL) {
        memcpy(moved, ptr, memrt__size_min(old_size, new_size));
        guard_free(ctx, ptr, old_size, align);
    }
    return moved;
}

bool memrt__is_guard(const memrt_allocator_t *allocator)
{
    return allocator->alloc == guard_alloc;
}

static size_t guard_release_unused(void *ctx)
{
    return memrt__allocator_release_unused(ctx);
}

static void guard_usage(void *ctx, memrt_allocator_usage_t *out)
{
    out->cached = memrt__is_shared_pool(ctx) ? 0 : memrt__allocator_cached(ctx); /* it is shared */
}

static void guard_destroy(void *ctx)
{
    memrt__allocator_destroy(ctx);
    free(ctx);
}

memrt_status_t memrt__guard_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    memrt_allocator_t copy;
    memrt_status_t status = memrt__allocator_copy(upstream, &copy);
    if (status != MEMRT_OK) {
        return status;
    }
    memrt_allocator_t *ctx = memrt__failure_due() ? NULL : malloc(sizeof(*ctx));
    if (ctx == NULL) {
        return MEMRT_ENOMEM;
    }
    *ctx = copy;
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "guard",
        .ctx = ctx,
        .alloc = guard_alloc,
        .alloc_zeroed = guard_alloc_zeroed,
        .realloc = guard_realloc,
        .free = guard_free,
        .release_unused = guard_release_unused,
        .usage = guard_usage,
        .destroy = guard_destroy,
    };
    return MEMRT_OK;
}
