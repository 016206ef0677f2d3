#include "runtime/alloc/guard.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/fence.h"
#include "runtime/alloc/pool.h"
#include "runtime/alloc/quarantine.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/base/place.h"
#include "runtime/base/size.h"
#include "runtime/debug/live.h"

typedef struct guard {
    memrt_allocator_t upstream;
    memrt__quarantine_t freed;
} guard_t;

static void verify(const char *call, const void *ptr, size_t size, size_t align)
{
    char fault[128], places[MEMRT__PLACES_TEXT];
    bool buried = memrt__fence_is_buried(ptr);
    if (buried || memrt__fence_fault(ptr, size, align, fault, sizeof(fault))) {
        memrt__fence_tell(ptr, places, sizeof(places));
        memrt__abort("%s of block at %p of %zu bytes: %s%s", call, ptr, size,
                     buried ? "it was freed already" : fault, places);
    }
}

/// What stood in a block that was freed, as far as that is remembered.
static void tell_contents(const void *ptr, size_t size, char *text, size_t length)
{
    memrt__live_left_t left;
    text[0] = '\0';
    if (memrt__live_left_within((uintptr_t)ptr, size, &left)) {
        snprintf(text, length, " (%s%s%s%zu bytes at %#zx, policy %s)",
                 left.name[0] == '\0' ? "" : "\"", left.name, left.name[0] == '\0' ? "" : "\", ",
                 left.size, (size_t)left.data, left.policy);
    }
}

static bool verify_dead(void *ptr, void *context)
{
    char fault[128], contents[256], places[MEMRT__PLACES_TEXT];
    (void)context;
    if (memrt__fence_dead_fault(ptr, fault, sizeof(fault))) {
        size_t size = memrt__fence_size(ptr);
        tell_contents(ptr, size, contents, sizeof(contents));
        memrt__fence_tell(ptr, places, sizeof(places));
        memrt__abort("freed block at %p of %zu bytes%s: %s%s", ptr, size, contents, fault, places);
    }
    return false;
}

/// The front has words in it.
static size_t outer_align(size_t align)
{
    return memrt__size_max(align, _Alignof(size_t));
}

static void give_back(const guard_t *guard, unsigned char *ptr, size_t size, size_t align)
{
    size_t outer;
    if (memrt__fence_outer(size, align, &outer)) {
        memrt__allocator_free(&guard->upstream, ptr - memrt__fence_front(align), outer,
                              outer_align(align));
    }
}

/// Free the block for good that was freed longest ago. False: there is none.
static bool give_back_oldest(guard_t *guard)
{
    unsigned char *ptr = memrt__quarantine_take(&guard->freed);
    if (ptr == NULL) {
        return false;
    }
    verify_dead(ptr, NULL);
    give_back(guard, ptr, memrt__fence_size(ptr), memrt__fence_align(ptr));
    return true;
}

static void *guard_make(const guard_t *guard, size_t size, size_t align, bool zeroed)
{
    size_t outer;
    if (!memrt__fence_outer(size, align, &outer)) {
        return NULL;
    }
    unsigned char *start =
        memrt__allocator_alloc(&guard->upstream, outer, outer_align(align), zeroed);
    if (start == NULL) {
        return NULL;
    }
    unsigned char *ptr = start + memrt__fence_front(align);
    memrt__fence_put_up(ptr, size, align);
    if (!zeroed) {
        memset(ptr, MEMRT_POISON_FRESH, size);
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
    guard_t *guard = ctx;
    verify("free", ptr, size, align);
    memrt__fence_bury(ptr);
    while (!memrt__quarantine_put(&guard->freed, ptr, size)) {
        if (!give_back_oldest(guard)) {
            give_back(guard, ptr, size, align); /* it is larger than all that may be kept */
            return;
        }
    }
}

/// Always moves, so that a pointer kept across a resize shows.
static void *guard_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    verify("realloc", ptr, old_size, align);
    void *moved = guard_alloc(ctx, new_size, align);
    if (moved != NULL) {
        memcpy(moved, ptr, memrt__size_min(old_size, new_size));
        guard_free(ctx, ptr, old_size, align);
    }
    return moved;
}

static size_t guard_release_unused(void *ctx)
{
    guard_t *guard = ctx;
    while (give_back_oldest(guard)) {
    }
    return memrt__allocator_release_unused(&guard->upstream);
}

/// What was freed and is kept is not kept for reuse.
static void guard_usage(void *ctx, memrt_allocator_usage_t *out)
{
    const guard_t *guard = ctx;
    bool shared = memrt__is_shared_pool(&guard->upstream);
    out->cached = shared ? 0 : memrt__allocator_cached(&guard->upstream);
}

static void guard_destroy(void *ctx)
{
    guard_t *guard = ctx;
    while (give_back_oldest(guard)) {
    }
    memrt__allocator_destroy(&guard->upstream);
    free(guard);
}

memrt_status_t memrt__guard_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    memrt_allocator_t copy;
    memrt_status_t status = memrt__allocator_copy(upstream, &copy);
    if (status != MEMRT_OK) {
        return status;
    }
    guard_t *guard = memrt__failure_due() ? NULL : calloc(1, sizeof(*guard));
    if (guard == NULL) {
        return MEMRT_ENOMEM;
    }
    guard->upstream = copy;
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "guard",
        .ctx = guard,
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

bool memrt__is_guard(const memrt_allocator_t *allocator)
{
    return allocator->alloc == guard_alloc;
}

const memrt_allocator_t *memrt__guard_upstream(const memrt_allocator_t *guard)
{
    return &((const guard_t *)guard->ctx)->upstream;
}

bool memrt__guard_fault(const void *ptr, size_t size, size_t align, char *text, size_t length)
{
    return memrt__fence_fault(ptr, size, align, text, length);
}

void memrt__guard_tell(const void *ptr, char *text, size_t length)
{
    memrt__fence_tell(ptr, text, length);
}

typedef struct search {
    uintptr_t address;
    char *text;
    size_t length;
} search_t;

static bool tell_if_within(void *ptr, void *context)
{
    const search_t *search = context;
    if (search->address - (uintptr_t)ptr >= memrt__fence_size(ptr)) {
        return false;
    }
    memrt__fence_tell(ptr, search->text, search->length);
    return true;
}

bool memrt__guard_tell_dead(const memrt_allocator_t *guard, uintptr_t address, char *text,
                            size_t length)
{
    const guard_t *self = guard->ctx;
    search_t search = {address, text, length};
    return memrt__quarantine_visit(&self->freed, tell_if_within, &search);
}

void memrt__guard_verify_dead(const memrt_allocator_t *guard)
{
    const guard_t *self = guard->ctx;
    memrt__quarantine_visit(&self->freed, verify_dead, NULL);
}

void memrt__guard_empty(const memrt_allocator_t *guard)
{
    while (give_back_oldest(guard->ctx)) {
    }
}
