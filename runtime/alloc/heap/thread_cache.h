#ifndef MEMRT_ALLOC_HEAP_THREAD_CACHE_H
#define MEMRT_ALLOC_HEAP_THREAD_CACHE_H

#include "runtime/alloc/heap/span.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/stats/tally.h"

/// Thread cache: free blocks that a thread keeps for itself. Taking or giving a block touches no
/// memory shared between threads. An empty or full bin exchanges blocks with the central list. The
/// limit of a bin grows with the traffic of the bin, within the limits of the thread.

/// Limits for the bins of one thread together, in bytes: for blocks up to MEMRT__THREAD_CACHE_SMALL
/// bytes, and for larger blocks.
#define MEMRT__THREAD_CACHE_SMALL ((size_t)66 << 10)
#define MEMRT__THREAD_CACHE_SMALL_MIN ((size_t)512 << 10)
#define MEMRT__THREAD_CACHE_SMALL_MAX ((size_t)4 << 20)
#define MEMRT__THREAD_CACHE_LARGE_MAX ((size_t)2 << 20)
#define MEMRT__THREAD_CACHE_MAX (MEMRT__THREAD_CACHE_SMALL_MAX + MEMRT__THREAD_CACHE_LARGE_MAX)

/// Care for the bins of records: new records get empty bins, and bins are drained when threads end.
void memrt__thread_cache_start(void);

/// Take a block of the class after the bin was found empty. Failure: returns NULL when out of
/// memory.
MEMRT__COLD void *memrt__thread_cache_refill(memrt__thread_t *self, unsigned class);

/// Give a block back to the calling thread's bin, or to the central list if there was no memory for
/// a thread record.
void memrt__thread_cache_return(unsigned class, void *block);

/// Make room in a full bin.
MEMRT__COLD void memrt__thread_cache_overflow(memrt__thread_t *self, unsigned class);

/// Give all blocks in the bins of a record to the central list; returns bytes. Threads: the thread
/// that has the record.
size_t memrt__thread_cache_drain(memrt__thread_t *self);

/// Request that all threads but `self` drain their bins. Each thread does so when it next frees a
/// block or finds a bin empty. Only the owner takes from a bin, because the owner uses the bin
/// without a lock. A thread that does neither keeps its blocks, at most MEMRT__THREAD_CACHE_MAX
/// bytes.
void memrt__thread_cache_ask_others(const memrt__thread_t *self);

/// Return the bytes in the bins of all threads.
size_t memrt__thread_cache_cached(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the thread caches hold: completely for the calling thread and
/// for records without a thread. Takes the lock of rank THREADS.
bool memrt__thread_cache_is_valid(void);
#endif

/// Return the top block of a bin. NULL: the bin is empty.
static inline void *memrt__bin_top(const memrt__bin_t *bin)
{
    void *block = (void *)memrt__own_load(&bin->head);
    MEMRT__ASSERT((block != NULL) == (bin->count != 0));
    return block;
}

/// Remove the top block of a bin.
static inline void memrt__bin_remove(memrt__bin_t *bin, void *top)
{
    MEMRT__ASSERT(top != NULL && top == memrt__bin_top(bin));
    memrt__store_release(&bin->head, (size_t)*memrt__block_next(top));
    memrt__own_add(&bin->count, (size_t)-1);
}

/// Pop the top block of a bin. Returns NULL if the bin is empty.
static inline void *memrt__bin_pop(memrt__bin_t *bin)
{
    void *block = memrt__bin_top(bin);
    if (MEMRT__LIKELY(block != NULL)) {
        memrt__bin_remove(bin, block);
    }
    return block;
}

static inline void memrt__bin_push(memrt__bin_t *bin, void *block)
{
    MEMRT__ASSERT((size_t)block % sizeof(void *) == 0 && (size_t)block != bin->head);
    *memrt__block_next(block) = (void *)memrt__own_load(&bin->head);
    memrt__store_release(&bin->head, (size_t)block);
    memrt__own_add(&bin->count, 1);
}

/// Take a block of the class. Failure: returns NULL when out of memory.
static inline void *memrt__thread_cache_take(memrt__thread_t *self, unsigned class)
{
    void *block = memrt__bin_pop(&self->cache.bins[class]);
    return MEMRT__LIKELY(block != NULL) ? block : memrt__thread_cache_refill(self, class);
}

static inline bool memrt__bin_is_full(const memrt__bin_t *bin)
{
    return bin->count >= memrt__load_relaxed(&bin->limit);
}

static inline void memrt__thread_cache_give(memrt__thread_t *self, unsigned class, void *block)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    memrt__bin_t *bin = &self->cache.bins[class];
    if (MEMRT__UNLIKELY(memrt__bin_is_full(bin))) {
        memrt__thread_cache_overflow(self, class);
    }
    memrt__bin_push(bin, block);
}

/// Fast path of an allocation: take a block of the class from the thread's bin. The counter slot
/// `home` counts the block as `kind` with `size` bytes.
///
/// Failure: returns NULL, with nothing changed, if the fast path is not available.
static inline void *memrt__thread_cache_take_counted(memrt__thread_t *self, memrt__home_t home,
                                                     unsigned class, unsigned kind, size_t size)
{
    memrt__shard_t *shard = home.shard;
    if (MEMRT__UNLIKELY(shard == NULL)) {
        return NULL; /* the thread may have no record */
    }
    memrt__bin_t *bin = &self->cache.bins[class];
    MEMRT__KEEP_ADDRESS(bin);
    void *block = memrt__bin_top(bin);
    if (MEMRT__UNLIKELY(block == NULL || !memrt__shard_grow_fast(shard, size))) {
        return NULL;
    }
    memrt__count_in(&shard->made[kind], 1);
    if (home.account != 0) {
        memrt__count_size(shard, size);
    }
    memrt__bin_remove(bin, block);
    return block;
}

/// Fast path of a free: put a block into the thread's bin and count the free. The update of `freed`
/// is the last access to the account.
///
/// Failure: returns false, with nothing changed, if the fast path is not available.
static inline bool memrt__thread_cache_give_counted(memrt__thread_t *self, uint32_t account,
                                                    unsigned class, unsigned kind, size_t size,
                                                    void *block)
{
    memrt__shard_t *shard = memrt__thread_shard(self, account);
    memrt__bin_t *bin = &self->cache.bins[class];
    MEMRT__KEEP_ADDRESS(bin);
    if (MEMRT__UNLIKELY(shard == NULL || memrt__bin_is_full(bin) ||
                        !memrt__shard_shrink_fast(shard, size))) {
        return false;
    }
    memrt__bin_push(bin, block);
    memrt__count_out(&shard->freed[kind], 1);
    return true;
}

#endif
