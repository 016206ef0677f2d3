#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
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

/// Index of the first byte that is not the fence's, or `length`.
static size_t first_damage(const unsigned char *fence, size_t length)
{
    size_t i = 0;
    while (i < length && fence[i] == MEMRT__POISON_FENCE) {
        i++;
    }
    return i;
}

static void verify_fences(const unsigned char *ptr, size_t size, size_t align)
{
    size_t front = front_of(align);
    size_t damage = first_damage(ptr - front, front);
    if (damage != front) {
        memrt__abort("block at %p of %zu bytes: a write %zu bytes before its start was found",
                     (const void *)ptr, size, front - damage);
    }
    damage = first_damage(ptr + size, REAR);
    if (damage != REAR) {
        memrt__abort("block at %p of %zu bytes: a write %zu bytes past its end was found",
                     (const void *)ptr, size, damage + 1);
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

static size_t guard_release_unused(void *ctx)
{
    return memrt__allocator_release_unused(ctx);
}

static void guard_usage(void *ctx, memrt_allocator_usage_t *out)
{
    out->cached = memrt__allocator_cached(ctx);
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
