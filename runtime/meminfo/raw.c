#include "runtime/meminfo/raw.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/debug/live.h"
#include "runtime/meminfo/tiny.h"

static void *new_data(const memrt__block_request_t *request)
{
    memrt_meminfo_t *mi = memrt__block_new(request);
    return mi == NULL ? NULL : memrt__block_born(mi, request->birth.site)->data;
}

/// The short ways of a policy, or of a part of it, which is counted at home. NULL: none is open.
static MEMRT__INLINE void *alloc_quick(memrt__thread_t *self, memrt__home_t home,
                                       const memrt_policy_t *policy, size_t size)
{
    if (memrt__tiny_fits(policy, size)) {
        return memrt__tiny_alloc_quick(self, home, size);
    }
    memrt_meminfo_t *mi = memrt__block_new_quick(self, home, size, MEMRT_KIND_BLOCK);
    return mi == NULL ? NULL : mi + 1;
}

/// The same for memrt__policy_here(), whoever watches.
static MEMRT__INLINE void *alloc_plain(memrt_policy_t *policy, size_t size)
{
    memrt__thread_t *self = memrt__self;
    if (memrt__is_watched(MEMRT__WATCH_SLOWLY)) {
        return NULL;
    }
    void *data = alloc_quick(self, memrt__home_of(self, policy), policy, size);
    return data == NULL && memrt__tiny_fits(policy, size) ? memrt__tiny_alloc(policy, size) : data;
}

static void *alloc_slowly(memrt_policy_t *policy, size_t size, memrt__birth_t birth)
{
    memrt__block_request_t request = {
        .policy = policy, .size = size, .kind = MEMRT_KIND_BLOCK, .birth = birth};
    return new_data(&request);
}

static MEMRT__INLINE void *alloc_from(memrt_policy_t *policy, size_t size)
{
    memrt__birth_t birth = memrt__tracking_birth(size);
    void *data = birth.share != 0 ? NULL : alloc_plain(policy, size);
    return MEMRT__LIKELY(data != NULL) ? data : alloc_slowly(policy, size, birth);
}

/// Whoever watches.
MEMRT__APART static void *alloc_watched(memrt_policy_t *policy, size_t size)
{
    return alloc_from(memrt__policy_here(policy), size);
}

/// In a scope, perhaps.
MEMRT__APART static void *alloc_here(memrt_policy_t *policy, size_t size)
{
    memrt__thread_t *self = memrt__self;
    void *data = NULL;
    if (MEMRT__LIKELY(memrt__is_watched_for_scopes_alone())) {
        data = alloc_quick(self, memrt__home_here(self, policy), policy, size);
    }
    return MEMRT__LIKELY(data != NULL) ? data : alloc_watched(policy, size);
}

void *memrt__raw_alloc_from(memrt_policy_t *policy, size_t size)
{
    return alloc_from(policy, size);
}

void *memrt__raw_alloc(void *policy, size_t size)
{
    memrt_policy_t *from = memrt__policy_or_default(policy);
    memrt__thread_t *self = memrt__self;
    void *data = NULL;
    if (MEMRT__LIKELY(!memrt__is_watched(MEMRT__WATCH_ANY))) {
        data = alloc_quick(self, memrt__home_of(self, from), from, size);
    }
    return MEMRT__LIKELY(data != NULL) ? data : alloc_here(from, size);
}

void *memrt__raw_calloc(void *policy, size_t count, size_t size)
{
    memrt__block_request_t request = {
        .policy = memrt__policy_here(policy), .kind = MEMRT_KIND_BLOCK, .zeroed = true};
    if (!memrt__size_mul(count, size, &request.size)) {
        memrt__block_refused(request.policy, SIZE_MAX);
        return NULL;
    }
    request.birth = memrt__tracking_birth(request.size);
    if (request.size <= MEMRT__QUICK_ZERO && request.birth.share == 0) {
        void *data = alloc_plain(request.policy, request.size);
        if (data != NULL) {
            return memset(data, 0, request.size);
        }
    }
    return new_data(&request);
}

/// Others hold the block: the caller gets its own, they keep theirs.
static void *part_from_shared(memrt_meminfo_t *mi, size_t size)
{
    memrt__block_request_t request = {.policy = memrt__policy_of(mi),
                                      .size = size,
                                      .alignment = (size_t)1 << mi->align_log2,
                                      .kind = MEMRT_KIND_BLOCK,
                                      .birth = memrt__tracking_birth(size)};
    void *own = new_data(&request);
    if (own != NULL) {
        memcpy(own, mi->data, memrt__size_min(mi->size, size));
        memrt__meminfo_release(mi);
    }
    return own;
}

void *memrt__raw_realloc(void *policy, void *data, size_t size)
{
    if (data == NULL) {
        return memrt__raw_alloc(policy, size);
    }
    if (memrt__is_tiny(data)) {
        return memrt__tiny_realloc(data, size);
    }
    memrt_meminfo_t *mi = memrt__block_of(data);
    if (!memrt__block_claim(mi)) {
        return part_from_shared(mi, size);
    }
    memrt_meminfo_t *resized = memrt__block_resize_quick(mi, size);
    if (resized == NULL) {
        resized = memrt__block_resize(mi, size);
    }
    return resized == NULL ? NULL : resized->data;
}

void memrt__raw_free(void *policy, void *data, size_t size)
{
    (void)policy;
    (void)size;
    if (MEMRT__UNLIKELY(data == NULL)) {
        return;
    }
    if (memrt__is_tiny(data)) {
        memrt__tiny_free(data);
    } else {
        memrt__meminfo_release(memrt__block_of(data));
    }
}

memrt_status_t memrt__raw_meminfo(void *data, memrt_meminfo_t **out)
{
    if (memrt__is_tiny(data)) {
        return memrt__tiny_meminfo(data, out);
    }
    memrt_meminfo_t *mi = memrt__block_of(data);
    memrt__meminfo_acquire(mi);
    memrt__block_promote(mi);
    *out = mi;
    return MEMRT_OK;
}
