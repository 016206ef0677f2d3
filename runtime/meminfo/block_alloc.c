#include "runtime/meminfo/block_alloc.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/event/guard_sampling.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/tiny.h"

static void *alloc_data(const memrt__block_request_t *request)
{
    memrt_meminfo_t *mi = memrt__block_new(request);
    return mi == NULL ? NULL : memrt__block_notify_alloc(mi, request->event.site)->data;
}

/// Fast path of an allocation: a tiny block or a block from the thread cache, for the policy of
/// `home`. NULL: no fast path applies.
static MEMRT__INLINE void *alloc_at(memrt__thread_t *self, const memrt__home_t *home, size_t size)
{
    if (size - 1 < home->tiny_max) {
        return memrt__tiny_alloc_fast(self, home, size);
    }
    memrt_meminfo_t *mi = memrt__block_new_fast(self, home, size, MEMRT_KIND_BLOCK);
    return mi == NULL ? NULL : mi + 1;
}

/// Allocate from the thread cache, for a policy in force, and refill the cache if necessary. NULL:
/// the policy or the size has no thread cache, tracking, fault injection or the event trace is on,
/// or the system is out of memory.
static void *alloc_from_cache(memrt_policy_t *policy, size_t size)
{
    if (memrt__tiny_fits(policy, size) && !memrt__is_slow(MEMRT__SLOW_ALWAYS)) {
        return memrt__tiny_alloc(policy, size);
    }
    memrt_meminfo_t *mi = memrt__block_new_cached(policy, size, MEMRT_KIND_BLOCK);
    return mi == NULL ? NULL : mi + 1;
}

/// Allocate from a policy in force. `once` as in memrt__block_request_t.
static void *alloc_from_policy(memrt_policy_t *policy, size_t size, memrt__alloc_event_t event,
                               bool once)
{
    event.guarded = memrt__guard_is_due(policy, size);
    void *data = event.weight != 0 || event.guarded ? NULL : alloc_from_cache(policy, size);
    if (MEMRT__LIKELY(data != NULL)) {
        return data;
    }
    memrt__block_request_t request = {
        .policy = policy, .size = size, .kind = MEMRT_KIND_BLOCK, .once = once, .event = event};
    return alloc_data(&request);
}

/// Slow path: no home is set for the policy, an observer is on, or a cache is empty.
MEMRT__APART static void *alloc_slow(memrt_policy_t *policy, size_t size)
{
    return alloc_from_policy(memrt__home_policy(policy), size, memrt__tracking_alloc(size), false);
}

/// Allocate by the second home; otherwise by the slow path.
MEMRT__APART static void *alloc_second(void *policy, size_t size)
{
    memrt__thread_t *self = memrt__self;
    const memrt__home_t *home = &self->homes[1];
    void *data = NULL;
    if (MEMRT__LIKELY(memrt__home_is_set_for(home, policy) && !memrt__is_observed())) {
        data = alloc_at(self, home, size);
    }
    return MEMRT__LIKELY(data != NULL) ? data : alloc_slow(policy, size);
}

void *memrt__block_alloc_from(memrt_policy_t *policy, size_t size)
{
    return alloc_from_policy(policy, size, memrt__tracking_alloc(size), true);
}

void *memrt__block_alloc_moved(memrt_policy_t *policy, size_t size)
{
    return alloc_from_policy(policy, size,
                             (memrt__alloc_event_t){.site = memrt__tracking_traced_site()}, true);
}

void *memrt__block_alloc(void *policy, size_t size)
{
    memrt__thread_t *self = memrt__self;
    const memrt__home_t *home = &self->homes[0];
    void *data = NULL;
    if (MEMRT__LIKELY(memrt__home_is_set_for(home, policy) && !memrt__is_observed())) {
        data = alloc_at(self, home, size);
    }
    return MEMRT__LIKELY(data != NULL) ? data : alloc_second(policy, size);
}

/// Slow path of memrt__block_calloc(), also for the second home and for sizes that are not zeroed
/// by memset.
MEMRT__APART static void *alloc_zeroed_slow(memrt_policy_t *policy, size_t count, size_t size)
{
    memrt__block_request_t request = {
        .policy = memrt__home_policy(policy), .kind = MEMRT_KIND_BLOCK, .zeroed = true};
    if (!memrt__size_mul(count, size, &request.size)) {
        memrt__block_refused(request.policy, SIZE_MAX);
        return NULL;
    }
    request.event = memrt__tracking_alloc(request.size);
    request.event.guarded = memrt__guard_is_due(request.policy, request.size);
    if (request.size <= MEMRT__FAST_ZERO && request.event.weight == 0 && !request.event.guarded) {
        void *data = alloc_from_cache(request.policy, request.size);
        if (data != NULL) {
            return memset(data, 0, request.size);
        }
    }
    return alloc_data(&request);
}

/// Once the product is known, the slow path gets the product, so that no register holds `size`.
void *memrt__block_calloc(void *policy, size_t count, size_t size)
{
    memrt__thread_t *self = memrt__self;
    const memrt__home_t *home = &self->homes[0];
    size_t bytes;
    if (MEMRT__UNLIKELY(!memrt__home_is_set_for(home, policy) || memrt__is_observed())) {
        return alloc_zeroed_slow(policy, count, size);
    }
    if (MEMRT__UNLIKELY(!memrt__size_mul(count, size, &bytes))) {
        return alloc_zeroed_slow(policy, SIZE_MAX, SIZE_MAX); /* a product that is too large, too */
    }
    if (bytes - 1 < home->tiny_max) {
        void *data = memrt__tiny_alloc_fast(self, home, bytes);
        if (MEMRT__LIKELY(data != NULL)) {
            return memrt__tiny_zero(data, bytes);
        }
    } else if (bytes <= MEMRT__FAST_ZERO) {
        memrt_meminfo_t *mi = memrt__block_new_fast(self, home, bytes, MEMRT_KIND_BLOCK);
        if (MEMRT__LIKELY(mi != NULL)) {
            return memset(mi + 1, 0, bytes);
        }
    }
    return alloc_zeroed_slow(policy, bytes, 1);
}

size_t memrt__block_good_size(const memrt_policy_t *policy, size_t size)
{
    const memrt_policy_t *source = memrt__policy_or_default((memrt_policy_t *)(uintptr_t)policy);
    memrt__block_layout_t layout;
    if (memrt__tiny_fits(source, size) && !memrt__is_slow(MEMRT__SLOW_ALWAYS)) {
        return memrt__tiny_good_size(size);
    }
    if (!memrt__block_layout_compute(MEMRT_KIND_BLOCK, size, source->alignment,
                                     memrt__block_shift(source->alignment, 0), &layout)) {
        return size;
    }
    return memrt__allocator_good_size(&source->allocator, layout.bytes, layout.align) - layout.lead;
}
