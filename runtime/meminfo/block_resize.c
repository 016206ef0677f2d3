#include "runtime/meminfo/block_resize.h"

#include <string.h>

#include "runtime/alloc/guard/guard.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/event/block_fault.h"
#include "runtime/event/block_observers.h"
#include "runtime/event/names_observer.h"
#include "runtime/meminfo/access/freeze.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/meminfo/block_memory.h"
#include "runtime/os/os.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/stats/pause.h"

/// No thread can find a block outside of the live set, so its count stays 1 without a CAS. Acquire
/// order: the writes of former holders happen before the block moves.
bool memrt__block_claim(memrt_meminfo_t *mi)
{
    return memrt__block_is_listed(mi) ? memrt__cas_acquire(&mi->refct, 1, 0)
                                      : memrt__load_acquire(&mi->refct) == 1;
}

/// Return whether the old address must leave the live set, or be reported to the observer, before
/// another thread can allocate there.
static bool is_known_by_address(const memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    return (flags & (MEMRT__FLAG_LISTED | MEMRT_FLAG_OBSERVED)) != 0;
}

static bool is_guarded(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_GUARDED) != 0;
}

static bool is_frozen(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_FROZEN) != 0;
}

static bool is_resize_to_fail(const memrt_meminfo_t *mi, size_t size)
{
    return memrt__block_fault_is_due(MEMRT_FAULT_RESIZE, size, memrt__policy_of(mi));
}

/// Resize by copying header and data to a new block, which is not frozen. Observers know the new
/// block before the old memory is freed. NULL: out of memory.
static memrt_meminfo_t *relocate_block(memrt_meminfo_t *mi, size_t size,
                                       memrt__block_layout_t *layout)
{
    memrt__block_request_t request = {.policy = memrt__policy_of(mi),
                                      .size = size,
                                      .moves = true,
                                      .event.guarded = is_guarded(mi)};
    char *start = memrt__block_memory_alloc(&request, layout);
    if (start == NULL) {
        return NULL;
    }
    memrt_meminfo_t *moved = (memrt_meminfo_t *)(start + layout->lead - MEMRT_HEADER_SIZE);
    memcpy(moved, mi, MEMRT_HEADER_SIZE + memrt__size_min(mi->size, size));
    moved->lead = (uint32_t)layout->lead;
    moved->flags &= ~MEMRT__FLAG_FROZEN & (layout->guarded ? UINT32_MAX : ~MEMRT__FLAG_GUARDED);
    memrt__block_set_data(moved, start + layout->lead, size);
    memrt__block_mark_shift(start, layout);
    if (!memrt__block_admit_moved(moved)) {
        memrt__block_memory_free(moved, layout->bytes, layout->align);
        return NULL;
    }
    memrt__block_before_t before = {mi, mi->data, mi->size};
    memrt__block_emit_resize(moved, &before);
    if (memrt__freeze_end(mi)) { /* else the old memory is lost */
        memrt__block_layout_t old = memrt__block_layout_of(mi);
        memrt__block_memory_free(mi, old.bytes, old.align);
    }
    return moved;
}

/// Resize with the realloc of the allocator, which moves the header together with the data.
static memrt_meminfo_t *realloc_block(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                                      const memrt__block_layout_t *layout, size_t size)
{
    if (is_resize_to_fail(mi, size)) {
        return NULL;
    }
    memrt__block_before_t before = {NULL, mi->data, mi->size};
    char *start = memrt__block_start(mi);
    start = memrt__allocator_realloc(&memrt__policy_of(mi)->allocator, start, old->bytes,
                                     layout->bytes, layout->align);
    if (start == NULL) {
        return NULL;
    }
    MEMRT__ASSERT(((size_t)start & (layout->align - 1)) == 0);
    memrt_meminfo_t *moved = (memrt_meminfo_t *)(start + layout->lead - MEMRT_HEADER_SIZE);
    memrt__block_set_data(moved, start + layout->lead, size);
    memrt__block_emit_resize(moved, &before);
    return moved;
}

/// Grow or shrink the memory of a block with reserved addresses, or grow other memory.
static bool resize_memory_in_place(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                                   const memrt__block_layout_t *layout)
{
    if (memrt__block_is_reserved(mi)) {
        return memrt__block_memory_resize_reserved(mi, old, layout);
    }
    return layout->bytes == old->bytes ||
           memrt__allocator_try_expand(&memrt__policy_of(mi)->allocator, memrt__block_start(mi),
                                       old->bytes, layout->bytes, layout->align);
}

/// Resize a block at its address: grow, or shrink with reserved addresses. Returns false, with
/// nothing changed, if the block has no room there.
static bool resize_in_place(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                            const memrt__block_layout_t *layout, size_t size)
{
    MEMRT__ASSERT(size > mi->size || memrt__block_is_reserved(mi));
    bool grows = size > mi->size;
    if ((grows && is_resize_to_fail(mi, size)) || !resize_memory_in_place(mi, old, layout)) {
        return false;
    }
    memrt__block_before_t before = {mi, mi->data, mi->size};
    memrt__block_set_size(mi, size);
    memrt__block_emit_resize(mi, &before);
    return true;
}

static void count_resize(const memrt_meminfo_t *mi, size_t old_size, size_t old_extra)
{
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_resized(&tally, mi->kind, old_size, mi->size);
    memrt__tally_in(&tally, &tally.shard->extra_in,
                    memrt__block_extra_bytes(mi, memrt__block_layout_of(mi).bytes));
    memrt__tally_out(&tally, &tally.shard->extra_out, old_extra);
    if (mi->size > old_size) {
        memrt__tally_settle(&tally, mi->size - old_size);
        memrt__tally_grow(&tally, mi->size - old_size);
    } else {
        memrt__tally_shrink(&tally, old_size - mi->size);
    }
}

/// Update the properties of a fast block that depend on its size.
static void update_class(memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    if ((flags & MEMRT__FLAG_FAST) == 0) {
        return;
    }
    if (!memrt__is_fast_size(mi->size)) {
        memrt__flags_clear_relaxed(&mi->flags, MEMRT__FLAG_FAST);
    }
    if ((flags & MEMRT__FLAG_TRACED) == 0) {
        memrt__block_set_bin(mi);
    }
}

/// Move header and data to a block of another size class, and free the old block to the thread
/// cache. NULL: the bin of the new class is empty.
static memrt_meminfo_t *move_block_fast(memrt__thread_t *self, memrt_meminfo_t *mi, unsigned class,
                                        size_t size)
{
    memrt_meminfo_t *moved = memrt__bin_pop(self, class);
    if (moved == NULL) {
        return NULL;
    }
    memcpy(moved, mi, MEMRT_HEADER_SIZE + memrt__size_min(mi->size, size));
    moved->data = moved + 1;
    moved->bin = class;
    memrt__store_relaxed(&mi->refct, 0);
    mi->dtor = NULL;
    memrt__thread_cache_give(self, memrt__class_of_data(mi->size), mi);
    return moved;
}

/// Return whether the heap may resize a block for another class without a copy.
static bool may_resize_in_place(const memrt_meminfo_t *mi, unsigned class)
{
    return memrt__class_has_own_spans(mi->bin) && memrt__class_has_own_spans(class);
}

memrt_meminfo_t *memrt__block_resize_fast(memrt_meminfo_t *mi, size_t size)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    memrt__thread_t *self = memrt__thread_or_null();
    unsigned special = MEMRT__FLAG_KNOWN | MEMRT__FLAG_FROZEN;
    if ((flags & (MEMRT__FLAG_FAST | special)) != MEMRT__FLAG_FAST || self == NULL ||
        !memrt__is_fast_size(size) || memrt__is_slow(MEMRT__SLOW_ALWAYS) ||
        (size > mi->size && memrt__limit_exists())) {
        return NULL;
    }
    memrt__account_t *account = &memrt__policy_of(mi)->account;
    memrt__shard_t *shard = memrt__thread_shard(self, account->index);
    unsigned class = memrt__class_of_data(size);
    const void *old_data = mi->data;
    size_t old_size = mi->size;
    if (shard != NULL && class != mi->bin) {
        mi = may_resize_in_place(mi, class) ? NULL : move_block_fast(self, mi, class, size);
    }
    if (shard == NULL || mi == NULL) {
        return NULL;
    }
    MEMRT__ASSERT(mi->bin == class && mi->data == mi + 1);
    mi->size = size;
    memrt__tally_t tally = {account, shard, true};
    memrt__tally_resized(&tally, mi->kind, old_size, size);
    if (size > old_size) {
        memrt__shard_grow(shard, account, size - old_size);
    } else {
        memrt__shard_shrink(shard, account, old_size - size);
    }
    memrt__probe_resize(old_data, mi->data, old_size, size);
    return mi;
}

/// Forget the named references of a claimed block. Only the claiming thread holds the block, so any
/// recorded name is left over from a reference released without its name.
static void clear_named_references(memrt_meminfo_t *mi)
{
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_HELD) != 0) {
        memrt__block_drop_names(mi);
        memrt__flags_clear_relaxed(&mi->flags, MEMRT__FLAG_HELD);
    }
}

/// Return whether a block has more padding before its header than data, with a minimum of one page.
/// The realloc of an allocator would copy the padding as well.
static bool is_mostly_padding(const memrt__block_layout_t *layout, size_t size)
{
    return layout->lead > memrt__size_max(size, memrt__os_page_size());
}

/// Resize a block whose old memory must stay until observers know the new address: grow the block
/// at its address, else copy. A guard always copies, so that uses of the old pointer are found, and
/// so does a frozen block. NULL: out of memory, nothing changed.
static memrt_meminfo_t *expand_or_relocate(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                                           memrt__block_layout_t *layout, size_t size)
{
    bool may_expand = size > mi->size && !is_guarded(mi) && !is_frozen(mi) &&
                      !memrt__is_guard(&memrt__policy_of(mi)->allocator);
    return may_expand && resize_in_place(mi, old, layout, size) ? mi
                                                                : relocate_block(mi, size, layout);
}

/// Resize a block in place or by a move. NULL: out of memory, nothing changed.
static memrt_meminfo_t *resize_memory(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                                      size_t size)
{
    memrt__block_layout_t layout;
    if (!memrt__block_layout_resize(mi, size, &layout)) {
        return NULL;
    }
    MEMRT__ASSERT(layout.lead == old->lead);
    if (memrt__block_is_reserved(mi)) {
        return resize_in_place(mi, old, &layout, size) ? mi : NULL;
    }
    return is_known_by_address(mi) || is_guarded(mi) || is_frozen(mi) ||
                   is_mostly_padding(old, mi->size)
               ? expand_or_relocate(mi, old, &layout, size)
               : realloc_block(mi, old, &layout, size);
}

/// Resize a block as far as the limits admit. NULL: a limit is reached or out of memory, nothing
/// changed.
static memrt_meminfo_t *resize_if_admitted(memrt_meminfo_t *mi, const memrt__block_layout_t *old,
                                           size_t size)
{
    memrt__account_t *account = &memrt__policy_of(mi)->account;
    size_t rise = size > mi->size ? size - mi->size : 0;
    if (rise != 0 && !memrt__limit_admit(account, rise)) {
        return NULL;
    }
    memrt_meminfo_t *moved = resize_memory(mi, old, size);
    if (moved == NULL && rise != 0) {
        memrt__limit_drop(account, rise);
    }
    return moved;
}

memrt_meminfo_t *memrt__block_resize(memrt_meminfo_t *mi, size_t size)
{
    MEMRT__ASSERT(mi->external_allocator == NULL && memrt__has_data((memrt_kind_t)mi->kind));
    memrt__stats_await_pause();
    size_t old_size = mi->size;
    clear_named_references(mi);
    memrt__block_layout_t old = memrt__block_layout_of(mi);
    size_t old_extra = memrt__block_extra_bytes(mi, old.bytes);
    memrt__block_memory_permit_header(mi); /* a copy of the header is an access */
    memrt_meminfo_t *moved = resize_if_admitted(mi, &old, size);
    memrt__block_memory_forbid_header(moved == NULL ? mi : moved);
    if (moved == NULL) {
        memrt__block_publish(mi);
        return NULL;
    }
    MEMRT__ASSERT(moved->size == size && memrt__block_of(moved->data) == moved);
    update_class(moved);
    count_resize(moved, old_size, old_extra);
    return memrt__block_publish(moved);
}

memrt_status_t memrt__block_try_expand(memrt_meminfo_t *mi, size_t size)
{
    memrt__account_t *account = &memrt__policy_of(mi)->account;
    memrt__block_layout_t old = memrt__block_layout_of(mi), layout;
    size_t old_size = mi->size, old_extra = memrt__block_extra_bytes(mi, old.bytes);
    if (size <= old_size) {
        return MEMRT_OK;
    }
    if (is_guarded(mi) || is_frozen(mi)) {
        return MEMRT_ENOMEM;
    }
    memrt__stats_await_pause();
    if (!memrt__block_layout_resize(mi, size, &layout) ||
        !memrt__limit_admit(account, size - old_size)) {
        return MEMRT_ENOMEM;
    }
    if (!resize_in_place(mi, &old, &layout, size)) {
        memrt__limit_drop(account, size - old_size);
        return MEMRT_ENOMEM;
    }
    update_class(mi);
    count_resize(mi, old_size, old_extra);
    return MEMRT_OK;
}

size_t memrt__block_usable_size(const memrt_meminfo_t *mi)
{
    memrt__block_layout_t layout = memrt__block_layout_of(mi);
    return memrt__block_memory_usable(mi, &layout);
}
