#include "runtime/meminfo/block_api.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/event/guard_sampling.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/block_alloc.h"
#include "runtime/meminfo/block_resize.h"
#include "runtime/meminfo/references.h"
#include "runtime/meminfo/tiny.h"
#include "runtime/meminfo/tiny_api.h"
#include "runtime/policy/reclaim.h"

/// Resize a block that has other holders: the caller gets a copy, and the other holders keep the
/// old block unchanged. The copy of the data of a resizable MemInfo is also only data. `once`: one
/// attempt, as in memrt__block_request_t. NULL: out of memory, and the caller keeps its reference.
static void *copy_shared_block(memrt_meminfo_t *mi, size_t size, bool once)
{
    if (memrt__meminfo_refcount(mi) == 0) { /* check first: the new block may reuse the memory */
        memrt__meminfo_refuse_release(mi);
    }
    if (memrt__block_is_reserved(mi)) { /* the data of the block must not move */
        return NULL;
    }
    bool is_data_block = (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_DATA_BLOCK) != 0;
    memrt__alloc_event_t event =
        is_data_block ? memrt__tracking_data_block() : memrt__tracking_alloc(size);
    event.guarded = memrt__guard_is_due(memrt__policy_of(mi), size);
    uint32_t site = is_data_block ? memrt__tracking_traced_site() : event.site;
    memrt__block_request_t request = {.policy = memrt__policy_of(mi),
                                      .size = size,
                                      .alignment = (size_t)1 << mi->align_log2,
                                      .kind = MEMRT_KIND_BLOCK,
                                      .is_data_block = is_data_block,
                                      .once = once,
                                      .event = event};
    memrt_meminfo_t *own = memrt__block_new(&request);
    if (own == NULL) {
        return NULL;
    }
    memcpy(memrt__block_notify_alloc(own, site)->data, mi->data, memrt__size_min(mi->size, size));
    memrt__meminfo_release(mi);
    return own->data;
}

/// Resize to repeat, and the data of the last attempt.
typedef struct repeated_resize {
    memrt_meminfo_t *mi;
    size_t size;
    void *data;
} repeated_resize_t;

/// Repeat a resize. Other threads may have acquired references to the block since the last attempt.
static bool repeat_resize(void *context)
{
    repeated_resize_t *repeated = context;
    if (!memrt__block_claim(repeated->mi)) {
        repeated->data = copy_shared_block(repeated->mi, repeated->size, true);
    } else {
        memrt_meminfo_t *resized = memrt__block_resize(repeated->mi, repeated->size);
        repeated->data = resized == NULL ? NULL : resized->data;
    }
    return repeated->data != NULL;
}

/// Resize a claimed block, and free memory before a failure. NULL: out of memory.
static void *resize_claimed_block(memrt_meminfo_t *mi, size_t size)
{
    memrt_policy_t *policy = memrt__policy_of(mi);
    memrt_meminfo_t *resized = memrt__block_resize(mi, size);
    if (MEMRT__LIKELY(resized != NULL)) {
        return resized->data;
    }
    repeated_resize_t repeated = {.mi = mi, .size = size};
    size_t rise = size - memrt__size_min(mi->size, size);
    if (!memrt__reclaim(&policy->account, rise, repeat_resize, &repeated)) {
        memrt__block_refused(policy, size);
    }
    return repeated.data;
}

void *memrt__block_api_realloc(void *policy, void *data, size_t size)
{
    if (data == NULL) {
        return memrt__block_alloc(policy, size);
    }
    if (memrt__is_tiny(data)) {
        return memrt__tiny_api_realloc(data, size);
    }
    memrt_meminfo_t *mi = memrt__block_of(data);
    if (!memrt__block_claim(mi)) {
        return copy_shared_block(mi, size, false);
    }
    memrt_meminfo_t *resized = memrt__block_resize_fast(mi, size);
    return resized == NULL ? resize_claimed_block(mi, size) : resized->data;
}

memrt_status_t memrt__block_api_try_expand(void *data, size_t size)
{
    if (memrt__is_tiny(data)) {
        return memrt__tiny_api_try_expand(data, size);
    }
    memrt_meminfo_t *mi = memrt__block_of(data);
    if (mi->external_allocator != NULL) {
        return MEMRT_ENOTSUP;
    }
    if (!memrt__block_claim(mi)) {
        if (memrt__meminfo_refcount(mi) == 0) {
            memrt__meminfo_refuse_release(mi);
        }
        return MEMRT_EBUSY;
    }
    memrt_status_t status = memrt__block_try_expand(mi, size);
    memrt__block_publish(mi);
    return status;
}

size_t memrt__block_api_usable_size(const void *data)
{
    return memrt__is_tiny(data) ? memrt__tiny_api_usable_size(data)
                                : memrt__block_usable_size(memrt__block_of(data));
}

/// Free a block that never was a MemInfo, after its fast path did not apply: the gauge must report,
/// or the bin is full. The caller has the only reference.
MEMRT__APART static void free_plain_slow(memrt_meminfo_t *mi)
{
    memrt__store_relaxed(&mi->refct, 0);
    memrt__block_delete(mi);
}

/// Free a block of another account than the first home's. The flags of a new block show that
/// the block never was a MemInfo, and has no destructor.
MEMRT__APART static void free_of_account(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = memrt__self;
    const memrt__home_t *second = &self->homes[1];
    memrt__shard_t *shard = second->shard;
    if (MEMRT__UNLIKELY(!memrt__state_equals(mi, memrt__home_state(second, MEMRT_KIND_BLOCK)))) {
        bool is_plain = memrt__flags_equal(&mi->flags, memrt__fast_flags(MEMRT_KIND_BLOCK)) &&
                        memrt__thread_or_null() != NULL;
        shard = is_plain ? memrt__thread_shard(self, mi->policy) : NULL;
    }
    if (MEMRT__UNLIKELY(shard == NULL ||
                        !memrt__block_delete_at(self, shard, mi, MEMRT_KIND_BLOCK))) {
        memrt__meminfo_release(mi);
    }
}

static MEMRT__INLINE void free_block(memrt_meminfo_t *mi)
{
    memrt__thread_t *self = memrt__self;
    const memrt__home_t *home = &self->homes[0];
    if (MEMRT__UNLIKELY(!memrt__word_equals_acquire(&mi->refct, 1))) {
        memrt__meminfo_release(mi);
    } else if (MEMRT__UNLIKELY(
                   !memrt__state_equals(mi, memrt__home_state(home, MEMRT_KIND_BLOCK)))) {
        free_of_account(mi);
    } else if (MEMRT__UNLIKELY(!memrt__block_delete_at(self, home->shard, mi, MEMRT_KIND_BLOCK))) {
        free_plain_slow(mi);
    }
}

void memrt__block_api_free(void *policy, void *data, size_t size)
{
    (void)size;
    if (memrt__may_be_tiny(data)) {
        memrt__tiny_api_free(policy, data);
    } else if (MEMRT__LIKELY(data != NULL)) {
        free_block(memrt__block_of(data));
    }
}

memrt_status_t memrt__block_api_meminfo(void *data, memrt_meminfo_t **out)
{
    if (memrt__is_tiny(data)) {
        return memrt__tiny_api_meminfo(data, out);
    }
    memrt_meminfo_t *mi = memrt__block_of(data);
    MEMRT__ASSERT(mi->kind == MEMRT_KIND_BLOCK || mi->kind == MEMRT_KIND_INLINE);
    memrt__meminfo_acquire(mi);
    memrt__block_promote(mi);
    *out = mi;
    return MEMRT_OK;
}
