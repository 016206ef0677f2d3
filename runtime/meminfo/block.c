#include "runtime/meminfo/block.h"

#include "runtime/base/size.h"
#include "runtime/event/block_observers.h"
#include "runtime/event/guard_sampling.h"
#include "runtime/meminfo/access/freeze.h"
#include "runtime/meminfo/arena/arena_block.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/meminfo/block_memory.h"
#include "runtime/meminfo/tiny.h"
#include "runtime/policy/memory_limit.h"
#include "runtime/policy/reclaim.h"

/// Return the flags of a block allocated by the slow path. If the layout is the
/// layout of a size class, the flags permit the fast path of a free.
static unsigned choose_flags(const memrt__block_request_t *request,
                             const memrt__block_layout_t *layout)
{
    bool data = memrt__has_data(request->kind);
    bool fast = request->policy->fast && request->external == NULL && request->reserve == 0 &&
                !layout->guarded && layout->align == MEMRT_HEADER_SIZE &&
                layout->lead == MEMRT_HEADER_SIZE && (!data || memrt__is_fast_size(request->size));
    unsigned data_block = (request->is_data_block ? MEMRT__FLAG_DATA_BLOCK : 0) |
                          (request->reserve != 0 ? MEMRT__FLAG_RESERVED : 0);
    unsigned guarded = layout->guarded ? MEMRT__FLAG_GUARDED : 0;
    if (fast) {
        return memrt__fast_flags(request->kind) | (data ? 0 : MEMRT__FLAG_BARE) | data_block;
    }
    return guarded | (request->kind == MEMRT_KIND_BLOCK ? data_block : MEMRT__FLAG_MEMINFO);
}

void memrt__block_set_bin(memrt_meminfo_t *mi)
{
    mi->bin = memrt__block_bin(mi);
}

static memrt_meminfo_t *write_header(char *start, const memrt__block_request_t *request,
                                     const memrt__block_layout_t *layout, size_t alignment)
{
    memrt_meminfo_t *mi = (memrt_meminfo_t *)(start + layout->lead - MEMRT_HEADER_SIZE);
    MEMRT__ASSERT(layout->lead >= MEMRT_HEADER_SIZE && layout->lead <= UINT32_MAX);
    MEMRT__ASSERT((size_t)mi % MEMRT__HEADER_ALIGN == 0);
    *mi = (memrt_meminfo_t){
        .refct = 0,
        .data = memrt__has_data(request->kind) ? start + layout->lead : NULL,
        .size = memrt__has_data(request->kind) ? request->size : 0,
        .external_allocator = request->external,
        .policy = (uint16_t)request->policy->account.index,
        .kind = (uint8_t)request->kind,
        .align_log2 = (uint8_t)memrt__log2(alignment),
        .lead = (uint32_t)layout->lead,
        .flags = choose_flags(request, layout),
    };
    memrt__block_set_bin(mi);
    if (request->external == NULL) {
        memrt__block_mark_shift(start, layout);
    }
    return mi;
}

/// Take an unpublished block from the bins of the thread cache. NULL: the bin is empty, or the
/// request has other needs. Data of a resizable MemInfo always has an explicit alignment, so such
/// requests get NULL.
static memrt_meminfo_t *take_cached_block(const memrt__block_request_t *request)
{
    memrt__thread_t *self = memrt__thread_or_null();
    if (self == NULL || !request->policy->fast || !memrt__has_data(request->kind) ||
        !memrt__is_fast_size(request->size) || request->alignment != 0 ||
        request->align_offset != 0 || request->zeroed || request->external != NULL ||
        request->event.guarded || memrt__is_slow(MEMRT__SLOW_FAILURE)) {
        return NULL;
    }
    memrt_meminfo_t *mi = memrt__bin_pop(self, memrt__class_of_data(request->size));
    if (mi != NULL) {
        memrt__fast_write(mi, request->kind,
                          memrt__state_of(request->policy->account.index, request->kind),
                          request->size, 0);
    }
    return mi;
}

memrt_meminfo_t *memrt__block_new_cached(memrt_policy_t *policy, size_t size, memrt_kind_t kind)
{
    memrt__thread_t *self = memrt__thread_or_null();
    if (self == NULL || !(policy->fast || policy->bump) || !memrt__is_fast_size(size) ||
        memrt__is_slow(MEMRT__SLOW_ALWAYS)) {
        return NULL;
    }
    memrt__account_t *account = &policy->account;
    memrt__tally_t tally = {account, memrt__thread_shard(self, account->index), true};
    if (policy->bump) {
        return tally.shard == NULL ? NULL : memrt__arena_block_new(&tally, policy, size, kind);
    }
    memrt_meminfo_t *mi =
        tally.shard == NULL ? NULL : memrt__thread_cache_take(self, memrt__class_of_data(size));
    if (mi != NULL && !memrt__limit_ensure(tally.shard, account, size)) {
        memrt__thread_cache_give(self, mi->bin, mi);
        mi = NULL;
    }
    if (mi != NULL) {
        memrt__fast_write(mi, kind, memrt__state_of(account->index, kind), size, 1);
        memrt__tally_made(&tally, kind, size, 1);
        memrt__tally_grow(&tally, size);
        memrt__probe_alloc(mi->data, size, account->index, kind);
    }
    return mi;
}

/// Allocate an unpublished block from the allocator. NULL: out of memory.
static memrt_meminfo_t *alloc_block(const memrt__block_request_t *request)
{
    size_t alignment = request->alignment == 0 ? request->policy->alignment : request->alignment;
    MEMRT__ASSERT(memrt__is_power_of_two(alignment) && alignment <= MEMRT_ALIGN_MAX);
    if (request->kind != MEMRT_KIND_BLOCK || alignment != MEMRT__ALIGN_OFFSET) {
        alignment = memrt__size_max(alignment, MEMRT_ALIGN_MIN);
    }
    memrt__block_layout_t layout;
    char *start = NULL;
    size_t shift = memrt__block_shift(alignment, request->align_offset);
    if (memrt__block_layout_compute(request->kind, request->size, alignment, shift, &layout)) {
        start = memrt__block_memory_alloc(request, &layout);
    }
    return start == NULL ? NULL : write_header(start, request, &layout, alignment);
}

/// Allocate an unpublished block that the limits admitted. NULL: out of memory.
static memrt_meminfo_t *alloc_admitted_block(const memrt__block_request_t *request)
{
    memrt_meminfo_t *mi = take_cached_block(request);
    mi = mi == NULL ? alloc_block(request) : mi;
    if (mi == NULL) {
        memrt__limit_drop(&request->policy->account, request->size);
    } else if (!memrt__block_admit(mi, request->event, request->size + request->behind)) {
        memrt__block_discard(mi);
        mi = NULL;
    }
    return mi;
}

static memrt_meminfo_t *attempt_block(const memrt__block_request_t *request)
{
    return memrt__limit_admit(&request->policy->account, request->size)
               ? alloc_admitted_block(request)
               : NULL;
}

/// Request to repeat, and the block of the last attempt.
typedef struct repeated_request {
    const memrt__block_request_t *request;
    memrt_meminfo_t *mi;
} repeated_request_t;

static bool repeat_request(void *context)
{
    repeated_request_t *repeated = context;
    repeated->mi = attempt_block(repeated->request);
    return repeated->mi != NULL;
}

/// Free memory and repeat a failed request, except for a header without data: callers do not expect
/// other code to run inside of such a request. NULL: out of memory.
MEMRT__COLD static memrt_meminfo_t *reclaim_block(const memrt__block_request_t *request)
{
    repeated_request_t repeated = {.request = request};
    bool reclaims = !request->once && memrt__has_data(request->kind);
    bool done = reclaims &&
                memrt__reclaim(&request->policy->account, request->size, repeat_request, &repeated);
    if (!done && !request->once) {
        memrt__block_refused(request->policy, request->size);
    }
    return repeated.mi;
}

memrt_meminfo_t *memrt__block_new(const memrt__block_request_t *request)
{
    memrt_meminfo_t *mi = attempt_block(request);
    return MEMRT__LIKELY(mi != NULL) ? mi : reclaim_block(request);
}

void memrt__block_refused(memrt_policy_t *policy, size_t size)
{
    memrt__block_emit_failure(policy, size);
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__tally_in(&tally, &tally.shard->failed, 1);
}

static void count_allocation(const memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(mi->kind < MEMRT__KINDS && memrt__policy_of(mi) != NULL);
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_made(&tally, mi->kind, mi->size, 1);
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_FAST) == 0) {
        memrt__tally_in(&tally, &tally.shard->extra_in,
                        memrt__block_extra_bytes(mi, memrt__block_layout_of(mi).bytes));
    }
    if (memrt__has_data((memrt_kind_t)mi->kind)) {
        memrt__tally_settle(&tally, mi->size);
        memrt__tally_grow(&tally, mi->size);
    }
}

memrt_meminfo_t *memrt__block_notify_alloc(memrt_meminfo_t *mi, uint32_t site)
{
    MEMRT__ASSERT(memrt__load_relaxed(&mi->refct) == 0); /* not published yet */
    count_allocation(mi);
    memrt__block_emit_allocate(mi, site);
    memrt__block_memory_forbid_header(mi);
    return memrt__block_publish(mi);
}

void memrt__block_discard(memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(memrt__load_relaxed(&mi->refct) == 0);
    memrt__block_emit_free(mi);
    if (memrt__has_data((memrt_kind_t)mi->kind)) {
        memrt__limit_drop(&memrt__policy_of(mi)->account, mi->size);
    }
    memrt__block_layout_t layout = memrt__block_layout_of(mi);
    memrt__block_memory_free(mi, layout.bytes, layout.align);
}

void memrt__block_promote(memrt_meminfo_t *mi)
{
    unsigned before = memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_MEMINFO);
    if ((before & MEMRT__FLAG_MEMINFO) == 0) {
        memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
        memrt__tally_in(&tally, &tally.shard->promoted_in, 1);
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_PROMOTED);
    }
}

/// Kind whose layout is a header alone: the layout of the MemInfo of a tiny block, although the
/// kind of the MemInfo is MEMRT_KIND_BLOCK.
#define KIND_HEADER MEMRT_KIND_ADOPTED

memrt_meminfo_t *memrt__block_new_tiny(memrt_policy_t *policy, void *data, size_t size)
{
    memrt__block_request_t request = {.policy = policy, .kind = KIND_HEADER};
    memrt__block_layout_t layout;
    char *start = NULL;
    if (memrt__block_layout_compute(request.kind, 0, policy->alignment, 0, &layout)) {
        start = memrt__block_memory_alloc(&request, &layout);
    }
    if (start == NULL) {
        memrt__block_refused(policy, 0);
        return NULL;
    }
    memrt_meminfo_t *mi = write_header(start, &request, &layout, policy->alignment);
    mi->kind = MEMRT_KIND_BLOCK;
    mi->flags = MEMRT__FLAG_MEMINFO | MEMRT__FLAG_PROMOTED | MEMRT__FLAG_TINY;
    memrt__block_set_data(mi, data, size);
    mi->refct = 2;
    MEMRT__ASSERT(memrt__is_tiny(data) && size - 1 < MEMRT_TINY_MAX);
    return mi;
}

void memrt__block_notify_alloc_tiny(const memrt_meminfo_t *mi)
{
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_in(&tally, &tally.shard->promoted_in, 1);
    memrt__tally_in(&tally, &tally.shard->extra_in, MEMRT_HEADER_SIZE);
}

void memrt__block_discard_tiny(memrt_meminfo_t *mi)
{
    memrt__block_layout_t layout;
    (void)memrt__block_layout_compute(KIND_HEADER, 0, (size_t)1 << mi->align_log2, 0, &layout);
    memrt__block_memory_free(mi, layout.bytes, layout.align);
}

/// Free the MemInfo of a tiny block, then the tiny block. The header must be freed first, because
/// the policy may be destroyed once the block is freed.
static void free_tiny_meminfo(memrt_meminfo_t *mi)
{
    void *data = mi->data;
    memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
    memrt__tally_out(&tally, &tally.shard->promoted_out, 1);
    memrt__tally_out(&tally, &tally.shard->extra_out, MEMRT_HEADER_SIZE);
    memrt__block_discard_tiny(mi);
    memrt__tiny_end(memrt__tiny_of(data));
}

/// Values of a freed block that its account still has to count.
typedef struct freed_block {
    memrt__account_t *account;
    uint32_t index; ///< index of the account
    const void *data;
    memrt_kind_t kind;
    bool promoted;
    size_t size, extra;
} freed_block_t;

/// Count a free. The counter `freed` must be the last access: the policy may be destroyed right
/// after the counter changed.
static void count_free(const freed_block_t *freed_block)
{
    memrt__tally_t tally = memrt__tally(freed_block->account);
    memrt__guard_note_free(&tally);
    memrt__tally_out(&tally, &tally.shard->promoted_out, freed_block->promoted);
    memrt__tally_out(&tally, &tally.shard->extra_out, freed_block->extra);
    if (memrt__has_data(freed_block->kind)) {
        memrt__tally_shrink(&tally, freed_block->size);
    } else if (freed_block->kind == MEMRT_KIND_ADOPTED) {
        memrt__tally_out(&tally, &tally.shard->adopted_out, freed_block->size);
    }
    memrt__tally_freed(&tally, freed_block->kind, freed_block->size);
    if (freed_block->kind != MEMRT_KIND_RESIZABLE) {
        memrt__probe_free(freed_block->data, freed_block->size, freed_block->index,
                          freed_block->kind);
    }
}

void memrt__block_delete(memrt_meminfo_t *mi)
{
    unsigned flags = memrt__flags_load_relaxed(&mi->flags);
    unsigned ends = MEMRT__FLAG_KNOWN | MEMRT__FLAG_FROZEN;
    if (MEMRT__UNLIKELY((flags & ends) != 0)) {
        if (!memrt__freeze_end(mi)) {
            return;
        }
        memrt__block_emit_free(mi);
        mi->flags = flags & ~ends; /* no other thread knows the block any more */
        memrt__block_set_bin(mi);
        if (memrt__block_delete_fast(mi)) {
            return;
        }
        flags &= ~ends;
    }
    if (memrt__arena_block_delete(mi, flags)) {
        return;
    }
    if (MEMRT__UNLIKELY((flags & MEMRT__FLAG_TINY) != 0)) {
        free_tiny_meminfo(mi);
        return;
    }
    memrt__thread_t *self = memrt__thread_self();
    bool fast = (flags & MEMRT__FLAG_FAST) != 0 && self != NULL;
    memrt__block_layout_t layout = {0};
    if (!fast) {
        layout = memrt__block_layout_of(mi);
    }
    freed_block_t freed_block = {
        .account = &memrt__policy_of(mi)->account,
        .index = mi->policy,
        .data = mi->data,
        .kind = (memrt_kind_t)mi->kind,
        .promoted = (flags & MEMRT__FLAG_PROMOTED) != 0,
        .size = mi->size,
        .extra = fast ? 0 : memrt__block_extra_bytes(mi, layout.bytes),
    };
    if (fast) {
        MEMRT__ASSERT(mi->bin == MEMRT__CLASS_HEADER || memrt__cached_header_is_valid(mi));
        memrt__store_relaxed(&mi->refct, 0);
        memrt__thread_cache_give(self, mi->bin, mi);
    } else {
        memrt__block_memory_free(mi, layout.bytes, layout.align);
    }
    count_free(&freed_block);
}
