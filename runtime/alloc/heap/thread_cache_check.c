#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/os/lock.h"

/// Invariants of the thread caches.

#if MEMRT_DEBUG

/// Return whether `block` is the start of a block of the class. The fields that the check reads do
/// not change while a block of the span is outside of the central list.
static bool is_block_of_class(void *block, unsigned class)
{
    const memrt__span_t *span = memrt__page_heap_span_of(block);
    return span->class == class && (const char *)block >= span->base &&
           (const char *)block < span->end &&
           (size_t)((const char *)block - span->base) % span->bytes == 0;
}

/// Return whether a bin of the calling thread is a list of `count` blocks of the class.
static bool is_bin_list_valid(const memrt__thread_t *self, unsigned class)
{
    void *block = (void *)self->cache.bins.head[class];
    size_t left = memrt__bin_count(self, class);
    while (block != NULL && left != 0) {
        if (!MEMRT__HOLDS(is_block_of_class(block, class))) {
            return false;
        }
        block = memrt__block_next(block);
        left--;
    }
    return MEMRT__HOLDS(block == NULL && left == 0);
}

/// Check the bins of the calling thread. Under the lock of rank THREADS, which excludes requests.
static bool are_own_bins_valid(const memrt__thread_t *self)
{
    size_t sums[2] = {0};
    bool must_empty = self->cache.must_empty != 0;
    const memrt__bins_t *bins = &self->cache.bins;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        if (!MEMRT__HOLDS(memrt__bin_count(self, class) <= bins->limit[class]) ||
            !MEMRT__HOLDS(must_empty ||
                          memrt__load_relaxed(&bins->room[class]) <= bins->limit[class]) ||
            !is_bin_list_valid(self, class)) {
            return false;
        }
        sums[memrt__class_has_medium_blocks(class)] +=
            bins->limit[class] * memrt__class_bytes(class);
    }
    return MEMRT__HOLDS(self->cache.limits[0] == sums[0]) &&
           MEMRT__HOLDS(self->cache.limits[1] == sums[1]);
}

/// Check the bins of any record: without a thread, the bins are empty.
static bool are_bins_valid(const memrt__thread_t *thread)
{
    const memrt__bins_t *bins = &thread->cache.bins;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        bool empty = memrt__load_relaxed(&bins->head[class]) == 0 &&
                     memrt__bin_count_of_any_thread(thread, class) == 0;
        if (!MEMRT__HOLDS(thread->in_use || empty)) {
            return false;
        }
    }
    return true;
}

bool memrt__thread_cache_is_valid(void)
{
    bool valid = true;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); valid && t != NULL; t = t->next) {
        valid = are_bins_valid(t) && (t != memrt__self || are_own_bins_valid(t));
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return valid;
}

#endif
