/// Thread-safe adaptor: serializes the calls to an upstream that only one thread may call at once.
///
/// All thread-safe adaptors share one lock. Adaptors over the same functions may share data, for
/// example two policies over a library with one static arena, and no order of several locks can
/// deadlock. The lock has no rank in runtime/os/lock.h, because foreign code runs under the lock.
/// A thread may take the lock again: an upstream may allocate from a policy, and a function of a
/// retrying adaptor below may free blocks.

#include "runtime/alloc/adaptors/thread_safe.h"

#include <pthread.h>

#include "runtime/alloc/adaptors/adaptor_functions.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static MEMRT__THREAD_LOCAL size_t depth; /* how often the calling thread holds the lock */

static void lock_upstreams(void)
{
    if (depth == 0) {
        pthread_mutex_lock(&mutex);
    }
    depth++;
}

static void unlock_upstreams(void)
{
    MEMRT__ASSERT(depth != 0);
    depth--;
    if (depth == 0) {
        pthread_mutex_unlock(&mutex);
    }
}

void memrt__thread_safe_hold(void)
{
    lock_upstreams();
}

/// A thread that forks inside of an upstream still holds the lock afterwards, also in the child.
void memrt__thread_safe_release(void)
{
    unlock_upstreams();
}

static const memrt_allocator_t *get_upstream(const void *ctx)
{
    return &((const memrt__adaptor_t *)ctx)->upstream;
}

static void *alloc_serialized(const void *ctx, size_t size, size_t align, bool zeroed)
{
    lock_upstreams();
    void *ptr = memrt__allocator_alloc(get_upstream(ctx), size, align, zeroed);
    unlock_upstreams();
    return ptr;
}

static void *thread_safe_alloc(void *ctx, size_t size, size_t align)
{
    return alloc_serialized(ctx, size, align, false);
}

static void *thread_safe_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return alloc_serialized(ctx, size, align, true);
}

static void *thread_safe_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size,
                                 size_t align)
{
    lock_upstreams();
    void *moved = memrt__allocator_realloc(get_upstream(ctx), ptr, old_size, new_size, align);
    unlock_upstreams();
    return moved;
}

static void thread_safe_free(void *ctx, void *ptr, size_t size, size_t align)
{
    lock_upstreams();
    memrt__allocator_free(get_upstream(ctx), ptr, size, align);
    unlock_upstreams();
}

static size_t thread_safe_release_unused(void *ctx)
{
    lock_upstreams();
    size_t bytes = memrt__allocator_release_unused(get_upstream(ctx));
    unlock_upstreams();
    return bytes;
}

static void thread_safe_usage(void *ctx, memrt_allocator_usage_t *out)
{
    lock_upstreams();
    out->cached = memrt__allocator_cached(get_upstream(ctx));
    unlock_upstreams();
}

static int thread_safe_try_expand(void *ctx, void *ptr, size_t old_size, size_t new_size,
                                  size_t align)
{
    lock_upstreams();
    bool grew = memrt__allocator_try_expand(get_upstream(ctx), ptr, old_size, new_size, align);
    unlock_upstreams();
    return grew;
}

static size_t thread_safe_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    lock_upstreams();
    size_t usable = memrt__allocator_usable_size(get_upstream(ctx), ptr, size, align);
    unlock_upstreams();
    return usable;
}

static size_t thread_safe_good_size(void *ctx, size_t size, size_t align)
{
    lock_upstreams();
    size_t good = memrt__allocator_good_size(get_upstream(ctx), size, align);
    unlock_upstreams();
    return good;
}

const memrt__adaptor_functions_t memrt__thread_safe_functions = {
    .name = "thread_safe",
    .alloc = thread_safe_alloc,
    .alloc_zeroed = thread_safe_alloc_zeroed,
    .realloc = thread_safe_realloc,
    .free = thread_safe_free,
    .release_unused = thread_safe_release_unused,
    .usage = thread_safe_usage,
    .try_expand = thread_safe_try_expand,
    .usable_size = thread_safe_usable_size,
    .good_size = thread_safe_good_size,
};
