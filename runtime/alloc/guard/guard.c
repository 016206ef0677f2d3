#include "runtime/alloc/guard/guard.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/file_backed.h"
#include "runtime/alloc/guard/quarantine.h"
#include "runtime/alloc/guard/redzone.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/observe/call_stack.h"
#include "runtime/observe/live_set.h"

typedef struct guard {
    memrt_allocator_t upstream;
    memrt__quarantine_t freed;
} guard_t;

static void verify_live_block(const char *call, const void *ptr, size_t size, size_t align)
{
    char fault[128], stacks[MEMRT__CALL_STACKS_TEXT];
    bool freed_before = memrt__redzone_is_dead(ptr);
    if (freed_before || memrt__redzone_fault(ptr, size, align, fault, sizeof(fault))) {
        memrt__redzone_explain(ptr, stacks, sizeof(stacks));
        memrt__abort("%s of block at %p of %zu bytes: %s%s", call, ptr, size,
                     freed_before ? "the block was freed before" : fault, stacks);
    }
}

/// Describe the last buffer in a freed block, if the live set still remembers the buffer. Otherwise
/// the text is empty.
static void describe_last_buffer(const void *ptr, size_t size, char *text, size_t length)
{
    memrt__live_removed_t removed;
    text[0] = '\0';
    if (memrt__live_find_removed_within((uintptr_t)ptr, size, &removed)) {
        snprintf(text, length, " (%s%s%s%zu bytes at %#zx, policy %s)",
                 removed.name[0] == '\0' ? "" : "\"", removed.name,
                 removed.name[0] == '\0' ? "" : "\", ", removed.size, (size_t)removed.data,
                 removed.policy);
    }
}

static void verify_freed_block(void *ptr)
{
    char fault[128], contents[256], stacks[MEMRT__CALL_STACKS_TEXT];
    if (memrt__redzone_dead_fault(ptr, fault, sizeof(fault))) {
        size_t size = memrt__redzone_size(ptr);
        describe_last_buffer(ptr, size, contents, sizeof(contents));
        memrt__redzone_explain(ptr, stacks, sizeof(stacks));
        memrt__abort("freed block at %p of %zu bytes%s: %s%s", ptr, size, contents, fault, stacks);
    }
}

/// Return whether a freed block is damaged, and store the block in `context`, a pointer.
static bool find_damaged_block(void *ptr, void *context)
{
    char fault[128];
    *(void **)context = ptr;
    return memrt__redzone_dead_fault(ptr, fault, sizeof(fault));
}

/// Return the alignment for the upstream: at least the alignment of the words in the record.
static size_t get_outer_align(size_t align)
{
    return memrt__size_max(align, _Alignof(size_t));
}

static void free_to_upstream(const guard_t *guard, unsigned char *ptr, size_t size, size_t align)
{
    size_t outer;
    if (memrt__redzone_outer(size, align, &outer)) {
        memrt__allocator_free(&guard->upstream, ptr - memrt__redzone_front(align), outer,
                              get_outer_align(align));
    }
}

/// Verify the oldest block of the quarantine and give the block to the upstream. Returns false if
/// the quarantine is empty, or while a fork takes long.
static bool evict_oldest_block(guard_t *guard)
{
    unsigned char *ptr = memrt__quarantine_take(&guard->freed);
    if (ptr == NULL) {
        return false;
    }
    verify_freed_block(ptr);
    free_to_upstream(guard, ptr, memrt__redzone_size(ptr), memrt__redzone_align(ptr));
    return true;
}

static void *alloc_guarded_block(const guard_t *guard, size_t unused, size_t size, size_t align,
                                 bool zeroed)
{
    size_t outer;
    MEMRT__ASSERT(unused <= size && memrt__is_power_of_two(align));
    if (!memrt__redzone_outer(size, align, &outer)) {
        return NULL;
    }
    unsigned char *start =
        memrt__allocator_alloc(&guard->upstream, outer, get_outer_align(align), zeroed);
    if (start == NULL) {
        return NULL;
    }
    unsigned char *ptr = start + memrt__redzone_front(align);
    memrt__redzone_write(ptr, unused, size, align);
    if (!zeroed) {
        memset(ptr + unused, MEMRT_POISON_FRESH, size - unused);
    }
    return ptr;
}

static void *guard_alloc(void *ctx, size_t size, size_t align)
{
    return alloc_guarded_block(ctx, 0, size, align, false);
}

static void *guard_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return alloc_guarded_block(ctx, 0, size, align, true);
}

static void guard_free(void *ctx, void *ptr, size_t size, size_t align)
{
    guard_t *guard = ctx;
    verify_live_block("free", ptr, size, align);
    memrt__redzone_write_dead(ptr);
    while (!memrt__quarantine_put(&guard->freed, ptr, size)) {
        if (!evict_oldest_block(guard)) { /* exceeds the quarantine, or a fork takes long */
            free_to_upstream(guard, ptr, size, align);
            return;
        }
    }
}

/// Resize a block. Always moves the block, so that uses of the old pointer are found.
static void *guard_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    verify_live_block("realloc", ptr, old_size, align);
    size_t both = memrt__size_min(old_size, new_size);
    MEMRT__ASSERT(memrt__redzone_unused(ptr) <= old_size);
    size_t unused = memrt__size_min(memrt__redzone_unused(ptr), both);
    char *moved = alloc_guarded_block(ctx, unused, new_size, align, false);
    if (moved != NULL) {
        memcpy(moved + unused, (const char *)ptr + unused, both - unused);
        guard_free(ctx, ptr, old_size, align);
    }
    return moved;
}

/// Grow a block at its address, and fill the new bytes in place of the old rear redzone.
static int guard_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    const guard_t *guard = ctx;
    unsigned char *start = (unsigned char *)ptr - memrt__redzone_front(align);
    size_t old_outer, new_outer;
    verify_live_block("try_expand", ptr, old_size, align);
    if (!memrt__redzone_outer(old_size, align, &old_outer) ||
        !memrt__redzone_outer(new_size, align, &new_outer) ||
        !memrt__allocator_try_expand(&guard->upstream, start, old_outer, new_outer,
                                     get_outer_align(align))) {
        return 0;
    }
    memset((unsigned char *)ptr + old_size, MEMRT_POISON_FRESH, new_size - old_size);
    memrt__redzone_grow(ptr, new_size);
    return 1;
}

static size_t guard_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    const guard_t *guard = ctx;
    size_t outer;
    if (!memrt__redzone_outer(size, align, &outer)) {
        return size;
    }
    const unsigned char *start = (const unsigned char *)ptr - memrt__redzone_front(align);
    return size - outer +
           memrt__allocator_usable_size(&guard->upstream, start, outer, get_outer_align(align));
}

static size_t guard_good_size(void *ctx, size_t size, size_t align)
{
    const guard_t *guard = ctx;
    size_t outer;
    return memrt__redzone_outer(size, align, &outer)
               ? size - outer +
                     memrt__allocator_good_size(&guard->upstream, outer, get_outer_align(align))
               : size;
}

static size_t guard_release_unused(void *ctx)
{
    guard_t *guard = ctx;
    while (evict_oldest_block(guard)) {
    }
    return memrt__allocator_release_unused(&guard->upstream);
}

/// Report cached bytes. Blocks in the quarantine do not count, because no allocation reuses them.
static void guard_usage(void *ctx, memrt_allocator_usage_t *out)
{
    const guard_t *guard = ctx;
    bool shared = memrt__is_shared_heap(&guard->upstream);
    out->cached = shared ? 0 : memrt__allocator_cached(&guard->upstream);
}

static void guard_destroy(void *ctx)
{
    guard_t *guard = ctx;
    while (evict_oldest_block(guard)) {
    }
    memrt__allocator_destroy(&guard->upstream);
    free(guard);
}

memrt_status_t memrt__guard_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    memrt_allocator_t copy;
    memrt_status_t status = memrt__upstream_copy(upstream, &copy);
    if (status != MEMRT_OK) {
        return status;
    }
    guard_t *guard = memrt__fault_is_due() ? NULL : calloc(1, sizeof(*guard));
    if (guard == NULL) {
        return MEMRT_ENOMEM;
    }
    guard->upstream = copy;
    MEMRT__ASSERT(guard->upstream.alloc != NULL && guard->upstream.free != NULL);
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
        .try_expand = guard_try_expand,
        .usable_size = guard_usable_size,
        .good_size = guard_good_size,
    };
    return MEMRT_OK;
}

bool memrt__is_guard(const memrt_allocator_t *allocator)
{
    return allocator->alloc == guard_alloc;
}

void *memrt__guard_alloc(const memrt_allocator_t *guard, size_t unused, size_t size, size_t align,
                         bool zeroed)
{
    return alloc_guarded_block(guard->ctx, unused, size, align, zeroed);
}

const memrt_allocator_t *memrt__guard_upstream(const memrt_allocator_t *guard)
{
    MEMRT__ASSERT(memrt__is_guard(guard));
    return &((const guard_t *)guard->ctx)->upstream;
}

bool memrt__guard_fault(const void *ptr, size_t size, size_t align, char *text, size_t length)
{
    return memrt__redzone_fault(ptr, size, align, text, length);
}

void memrt__guard_explain(const void *ptr, char *text, size_t length)
{
    memrt__redzone_explain(ptr, text, length);
}

typedef struct search {
    uintptr_t address;
    char *text;
    size_t length;
} search_t;

static bool write_stacks_if_within(void *ptr, void *context)
{
    const search_t *search = context;
    if (search->address - (uintptr_t)ptr >= memrt__redzone_size(ptr)) {
        return false;
    }
    memrt__redzone_explain(ptr, search->text, search->length);
    return true;
}

bool memrt__guard_explain_dead(const memrt_allocator_t *guard, uintptr_t address, char *text,
                               size_t length)
{
    const guard_t *self = guard->ctx;
    search_t search = {address, text, length};
    return memrt__quarantine_visit(&self->freed, write_stacks_if_within, &search);
}

void memrt__guard_verify_dead(const memrt_allocator_t *guard)
{
    const guard_t *self = guard->ctx;
    void *damaged = NULL;
    /* The message takes locks that must not follow the lock of the quarantines. Until the abort, no
       thread frees the block: each thread verifies the block first. */
    if (memrt__quarantine_visit(&self->freed, find_damaged_block, &damaged)) {
        verify_freed_block(damaged);
    }
}

void memrt__guard_empty(const memrt_allocator_t *guard)
{
    while (evict_oldest_block(guard->ctx)) {
    }
}

#if MEMRT_DEBUG

bool memrt__guard_is_valid(const memrt_allocator_t *guard)
{
    const guard_t *self = guard->ctx;
    return MEMRT__HOLDS(memrt__is_guard(guard)) && MEMRT__HOLDS(self->upstream.alloc != NULL) &&
           MEMRT__HOLDS(self->upstream.free != NULL) && memrt__quarantine_is_valid(&self->freed);
}

#endif
