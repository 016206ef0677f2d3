#include "runtime/meminfo/arena/arena_block.h"

#include "runtime/base/usdt.h"
#include "runtime/event/guard_sampling.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/policy/memory_limit.h"

enum { LEAD = MEMRT_HEADER_SIZE, ALIGN = MEMRT_HEADER_SIZE };

memrt_meminfo_t *memrt__arena_block_new(const memrt__tally_t *tally, const memrt_policy_t *policy,
                                        size_t size, memrt_kind_t kind)
{
    const memrt_allocator_t *arena = &policy->allocator;
    MEMRT__ASSERT(policy->bump && size != 0 && memrt__has_data(kind));
    memrt_meminfo_t *mi = arena->alloc(arena->ctx, LEAD + size, ALIGN);
    if (mi == NULL) {
        return NULL;
    }
    if (!memrt__limit_ensure(tally->shard, tally->account, size)) {
        arena->free(arena->ctx, mi, LEAD + size, ALIGN);
        return NULL;
    }
    *mi = (memrt_meminfo_t){
        .refct = 1,
        .data = mi + 1,
        .size = size,
        .policy = (uint16_t)tally->account->index,
        .kind = (uint8_t)kind,
        .align_log2 = MEMRT__FAST_ALIGN_LOG2,
        .flags = kind == MEMRT_KIND_BLOCK ? 0 : MEMRT__FLAG_MEMINFO,
        .lead = LEAD,
        .bin = MEMRT__NO_BIN,
    };
    memrt__tally_made(tally, kind, size, 1);
    memrt__tally_grow(tally, size);
    memrt__probe_alloc(mi->data, size, tally->account->index, kind);
    return mi;
}

/// Return whether a block has the layout of memrt__arena_block_new(), which a resize keeps.
static bool has_plain_layout(const memrt_meminfo_t *mi, unsigned flags)
{
    unsigned plain = MEMRT__FLAG_MEMINFO | MEMRT__FLAG_PROMOTED | MEMRT__FLAG_DATA_BLOCK;
    return (flags & ~plain) == 0 && memrt__has_data((memrt_kind_t)mi->kind) && mi->size != 0 &&
           mi->align_log2 == MEMRT__FAST_ALIGN_LOG2 && mi->external_allocator == NULL;
}

/// The count `freed` is the last access to the policy, which may be destroyed right after.
bool memrt__arena_block_delete(const memrt_meminfo_t *mi, unsigned flags)
{
    memrt_policy_t *policy = memrt__policy_of(mi);
    if (!policy->bump || !has_plain_layout(mi, flags)) {
        return false;
    }
    const memrt_allocator_t *arena = &policy->allocator;
    const void *data = mi->data;
    size_t size = mi->size;
    unsigned kind = mi->kind;
    uint32_t index = mi->policy;
    MEMRT__ASSERT(mi->lead == LEAD);
    arena->free(arena->ctx, (void *)(uintptr_t)mi, LEAD + size, ALIGN);
    memrt__tally_t tally = memrt__tally(&policy->account);
    memrt__guard_note_free(&tally);
    memrt__tally_out(&tally, &tally.shard->promoted_out, (flags & MEMRT__FLAG_PROMOTED) != 0);
    memrt__tally_shrink(&tally, size);
    memrt__tally_freed(&tally, kind, size);
    memrt__probe_free(data, size, index, kind);
    return true;
}
