#include "runtime/meminfo/block_alloc.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/tiny.h"

static void *alloc_data(const memrt__block_request_t *request)
{
    memrt_meminfo_t *mi = memrt__block_new(request);
    return mi == NULL ? NULL : memrt__block_notify_alloc(mi, request->event.site)->data;
}

/// Fast paths of an allocation: a tiny block or a block from the thread cache, with the settings of
/// `policy`, counted in the account of `home`. NULL: no fast path applies.
static MEMRT__INLINE void *alloc_fast(memrt__thread_t *self, memrt__home_t home,
                                      const memrt_policy_t *policy, size_t size)
{
    MEMRT__ASSERT(policy != NULL);
    if (memrt__tiny_fits(policy, size)) {
        return memrt__tiny_alloc_fast(self, home, size);
    }
    memrt_meminfo_t *mi = memrt__block_new_fast(self, home, size, MEMRT_KIND_BLOCK);
    return mi == NULL ? NULL : mi + 1;
}

/// Allocate without the allocator, from a policy returned by memrt__policy_here(). NULL: tracking,
/// fault injection or the event trace is on, or no fast path applies. Refills the bin of a tiny
/// class.
static MEMRT__INLINE void *alloc_from_cache(memrt_policy_t *policy, size_t size)
{
    memrt__thread_t *self = memrt__self;
    if (memrt__is_slow(MEMRT__SLOW_ALWAYS)) {
        return NULL;
    }
    void *data = alloc_fast(self, memrt__home_of(self, policy), policy, size);
    return data == NULL && memrt__tiny_fits(policy, size) ? memrt__tiny_alloc(policy, size) : data;
}

static void *alloc_slow(memrt_policy_t *policy, size_t size, memrt__alloc_event_t event)
{
    memrt__block_request_t request = {
        .policy = policy, .size = size, .kind = MEMRT_KIND_BLOCK, .event = event};
    return alloc_data(&request);
}

static MEMRT__INLINE void *alloc_from_policy(memrt_policy_t *policy, size_t size,
                                             memrt__alloc_event_t event)
{
    void *data = event.weight != 0 ? NULL : alloc_from_cache(policy, size);
    return MEMRT__LIKELY(data != NULL) ? data : alloc_slow(policy, size, event);
}

/// Slow path: an observer is on, or a cache is empty.
MEMRT__APART static void *alloc_observed(memrt_policy_t *policy, size_t size)
{
    return alloc_from_policy(memrt__policy_here(policy), size, memrt__tracking_alloc(size));
}

/// Fast path inside of a scope; otherwise continues with alloc_observed().
MEMRT__APART static void *alloc_in_scope(memrt_policy_t *policy, size_t size)
{
    memrt__thread_t *self = memrt__self;
    void *data = NULL;
    if (MEMRT__LIKELY(memrt__is_slow_for_scopes_only())) {
        data = alloc_fast(self, memrt__home_here(self, policy), policy, size);
    }
    return MEMRT__LIKELY(data != NULL) ? data : alloc_observed(policy, size);
}

void *memrt__block_alloc_from(memrt_policy_t *policy, size_t size)
{
    return alloc_from_policy(policy, size, memrt__tracking_alloc(size));
}

void *memrt__block_alloc_moved(memrt_policy_t *policy, size_t size)
{
    return alloc_from_policy(policy, size,
                             (memrt__alloc_event_t){0, memrt__tracking_traced_site()});
}

void *memrt__block_alloc(void *policy, size_t size)
{
    memrt_policy_t *from = memrt__policy_or_default(policy);
    memrt__thread_t *self = memrt__self;
    void *data = NULL;
    if (MEMRT__LIKELY(!memrt__is_slow(MEMRT__SLOW_ANY))) {
        data = alloc_fast(self, memrt__home_of(self, from), from, size);
    }
    return MEMRT__LIKELY(data != NULL) ? data : alloc_in_scope(from, size);
}

void *memrt__block_calloc(void *policy, size_t count, size_t size)
{
    memrt__block_request_t request = {
        .policy = memrt__policy_here(policy), .kind = MEMRT_KIND_BLOCK, .zeroed = true};
    if (!memrt__size_mul(count, size, &request.size)) {
        memrt__block_refused(request.policy, SIZE_MAX);
        return NULL;
    }
    request.event = memrt__tracking_alloc(request.size);
    if (request.size <= MEMRT__FAST_ZERO && request.event.weight == 0) {
        void *data = alloc_from_cache(request.policy, request.size);
        if (data != NULL) {
            return memset(data, 0, request.size);
        }
    }
    return alloc_data(&request);
}
