#ifndef MEMRT_ALLOC_HEAP_THREAD_CACHE_H
#define MEMRT_ALLOC_HEAP_THREAD_CACHE_H

#include "runtime/alloc/heap/fast_header.h"
#include "runtime/alloc/heap/span.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/stats/tally.h"

/// Thread cache: free blocks that a thread keeps for its next allocations, in one bin for each size
/// class. Taking or giving a block accesses no memory that is shared between threads. An empty bin
/// takes blocks from other threads or the central list, and a full bin gives blocks to them. The
/// limit of a bin grows with the traffic of the bin, within the limits of the thread.
///
/// Invariant: a bin is a linked stack of `limit - room` free blocks of one class. The owner of the
/// record alone takes and gives blocks, without a lock. Another thread only subtracts from `room`:
/// the bin then counts as full, and the owner drains the bins (bin_layout.h).

/// Limits for the bins of one thread together, in bytes: minimum and maximum for small blocks, and
/// maximum for medium blocks.
#define MEMRT__THREAD_CACHE_SMALL_MIN ((size_t)512 << 10)
#define MEMRT__THREAD_CACHE_SMALL_MAX ((size_t)4 << 20)
#define MEMRT__THREAD_CACHE_MEDIUM_MAX ((size_t)2 << 20)
#define MEMRT__THREAD_CACHE_MAX (MEMRT__THREAD_CACHE_SMALL_MAX + MEMRT__THREAD_CACHE_MEDIUM_MAX)

/// Register the module of thread records: bins are drained when a thread ends, and are emptied in a
/// forked child for threads that the fork did not copy.
void memrt__thread_cache_start(void);

/// Slow path of memrt__thread_cache_take(): fill the empty bin with a batch, and return a block of
/// the batch. Aborts if the bin is not empty, because the top of the bin is then an overwritten
/// link. Failure: returns NULL when out of memory.
MEMRT__COLD void *memrt__thread_cache_refill(memrt__thread_t *self, unsigned class);

/// Give a block back to the calling thread's bin, or to the central list if there was no memory for
/// a thread record.
void memrt__thread_cache_return(unsigned class, void *block);

/// Slow path of memrt__thread_cache_give(): make room in a full bin. Raises the limit of the bin,
/// or gives blocks away.
MEMRT__COLD void memrt__thread_cache_overflow(memrt__thread_t *self, unsigned class);

/// Give all blocks in the bins of a record to the central list. Returns the bytes of the blocks.
/// Threads: the owner of the record.
size_t memrt__thread_cache_drain(memrt__thread_t *self);

/// Request a drain from all threads but `self`. A thread drains its bins at its next free of a
/// block, or when a bin is empty. A thread without frees and allocations keeps its blocks, at most
/// MEMRT__THREAD_CACHE_MAX bytes.
void memrt__thread_cache_drain_others(const memrt__thread_t *self);

/// Return the bytes in the bins of all threads.
size_t memrt__thread_cache_cached(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the thread caches hold: completely for the calling thread and
/// for records without a thread. Takes the lock of rank THREADS.
bool memrt__thread_cache_is_valid(void);
#endif

/// Return the number of cached blocks of a bin of the calling thread.
static inline size_t memrt__bin_count(const memrt__thread_t *self, unsigned class)
{
    return (uint32_t)(memrt__own_load(&self->cache.bins.limit[class]) -
                      memrt__load_relaxed(&self->cache.bins.room[class]));
}

/// Return the number of cached blocks of a bin of any thread. While the owner changes the limit,
/// the result may be wrong by the change.
static inline size_t memrt__bin_count_of_any_thread(const memrt__thread_t *thread, unsigned class)
{
    size_t limit = memrt__load_relaxed(&thread->cache.bins.limit[class]);
    size_t count = (uint32_t)(limit - memrt__load_relaxed(&thread->cache.bins.room[class]));
    return count <= limit ? count : 0;
}

/// Return the top of a bin: a block, NULL for an empty bin, or an overwritten link. A link is
/// decoded when its block is taken, so an overwritten link becomes the top
/// (memrt__link_is_valid()).
static MEMRT__INLINE void *memrt__bin_top(const memrt__thread_t *self, size_t class)
{
    void *block = (void *)memrt__own_load(&self->cache.bins.head[class]);
    MEMRT__ASSERT((block != NULL) == (memrt__bin_count(self, (unsigned)class) != 0));
    return block;
}

/// Return whether the top of a bin is a block. NULL is 0, and an overwritten link is negative.
static MEMRT__INLINE bool memrt__is_block(const void *top)
{
    return (ptrdiff_t)(uintptr_t)top > 0;
}

/// Remove the top block of a bin. MEMRT__KEEP_IN_BRANCH has the compiler address head and room
/// separately, each with the class as a scaled index.
static MEMRT__INLINE void memrt__bin_remove(memrt__thread_t *self, size_t class, void *top)
{
    MEMRT__ASSERT(memrt__is_block(top) && top == memrt__bin_top(self, class));
    MEMRT__KEEP_IN_BRANCH(class);
    memrt__own_store_release(&self->cache.bins.head[class], (size_t)memrt__link_read(top));
    MEMRT__KEEP_IN_BRANCH(class);
    memrt__own_add(&self->cache.bins.room[class], 1);
}

/// Pop the top block of a bin. Returns NULL if the top is no block.
static inline void *memrt__bin_pop(memrt__thread_t *self, unsigned class)
{
    void *block = memrt__bin_top(self, class);
    if (MEMRT__UNLIKELY(!memrt__is_block(block))) {
        return NULL;
    }
    memrt__bin_remove(self, class, block);
    return block;
}

/// Link a block to a bin whose `room` is already lower by 1.
static MEMRT__INLINE void memrt__bin_link(memrt__thread_t *self, size_t class, void *block)
{
    MEMRT__KEEP_IN_BRANCH(class);
    size_t top = memrt__own_load(&self->cache.bins.head[class]);
    MEMRT__ASSERT((size_t)block % sizeof(void *) == 0 && (size_t)block != top);
    memrt__block_set_next(block, (const void *)top);
    memrt__own_store_release(&self->cache.bins.head[class], (size_t)block);
}

/// Push a block onto a bin, which may be full.
static inline void memrt__bin_push(memrt__thread_t *self, unsigned class, void *block)
{
    memrt__own_add(&self->cache.bins.room[class], (size_t)-1);
    memrt__bin_link(self, class, block);
}

/// Take a block of the class. Failure: returns NULL when out of memory.
static inline void *memrt__thread_cache_take(memrt__thread_t *self, unsigned class)
{
    void *block = memrt__bin_pop(self, class);
    return MEMRT__LIKELY(block != NULL) ? block : memrt__thread_cache_refill(self, class);
}

/// Return whether a bin has no room, or another thread requested a drain.
static inline bool memrt__bin_is_full(const memrt__thread_t *thread, unsigned class)
{
    return (ptrdiff_t)memrt__load_relaxed(&thread->cache.bins.room[class]) <= 0;
}

/// Give a block of the class back to the bin.
static inline void memrt__thread_cache_give(memrt__thread_t *self, unsigned class, void *block)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    if (MEMRT__UNLIKELY(memrt__bin_is_full(self, class))) {
        memrt__thread_cache_overflow(self, class);
    }
    memrt__bin_push(self, class, block);
}

/// Return whether data of `size` bytes belongs to a linear class. False for size 0, which wraps
/// around.
static MEMRT__INLINE bool memrt__is_linear_data(size_t size)
{
    return size - 1 < MEMRT__LINEAR_DATA_MAX;
}

/// Return the linear class of data of `size` bytes.
static MEMRT__INLINE size_t memrt__class_of_linear_data(size_t size)
{
    size_t last = size - 1;
    MEMRT__ASSERT(last / 64 == memrt__class_of_data(size));
    return last / 64;
}

/// Fast path of an allocation: take a block from a bin of the calling thread. `shard` counts the
/// block as `kind` with `size` bytes.
///
/// Failure: returns NULL, with nothing changed, if the top of the bin is no block or `shard` must
/// report to its aggregates. The slow path follows.
static MEMRT__INLINE void *memrt__bin_take_counted(memrt__thread_t *self, size_t class,
                                                   memrt__shard_t *shard, unsigned kind,
                                                   size_t size)
{
    void *block = memrt__bin_top(self, class);
    if (MEMRT__UNLIKELY(!memrt__is_block(block) || !memrt__shard_grow_fast(shard, size))) {
        return NULL;
    }
    memrt__count_in(&shard->made[memrt__count_of_usual_block(kind, size)], 1);
    memrt__bin_remove(self, class, block);
    return block;
}

/// Fast path of a free: put a block into a bin of the calling thread, which has a record, and count
/// the free. The update of `freed` is the last access to the account.
///
/// Failure: returns false, with nothing changed, if the bin is full or `shard` must report to its
/// aggregates. The slow path follows.
static MEMRT__INLINE bool memrt__bin_give_counted(memrt__thread_t *self, size_t class,
                                                  memrt__shard_t *shard, unsigned kind, size_t size,
                                                  void *block)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    if (MEMRT__UNLIKELY(memrt__own_sub_below_0(&self->cache.bins.room[class], 1) ||
                        !memrt__shard_shrink_fast(shard, size))) {
        MEMRT__KEEP_IN_BRANCH(class);
        memrt__own_add(&self->cache.bins.room[class], 1);
        return false;
    }
    memrt__bin_link(self, class, block);
    memrt__count_out(&shard->freed[memrt__count_of_usual_block(kind, size)], 1);
    return true;
}

#endif
