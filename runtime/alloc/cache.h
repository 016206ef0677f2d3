#ifndef MEMRT_ALLOC_CACHE_H
#define MEMRT_ALLOC_CACHE_H

#include "runtime/alloc/pages.h"
#include "runtime/alloc/size_class.h"

/// Blocks that each thread keeps to itself: taking and giving one touches nothing that threads
/// share. A bin that runs empty or full trades some with memrt__central; its limit grows with its
/// traffic, within what one thread may keep.

/// What the bins of one thread may hold together, bytes: those of blocks up to MEMRT__CACHE_SMALL
/// bytes, and those of larger ones.
#define MEMRT__CACHE_SMALL ((size_t)66 << 10)
#define MEMRT__CACHE_SMALL_MIN ((size_t)512 << 10)
#define MEMRT__CACHE_SMALL_MAX ((size_t)4 << 20)
#define MEMRT__CACHE_LARGE_MAX ((size_t)2 << 20)
#define MEMRT__CACHE_THREAD_MAX (MEMRT__CACHE_SMALL_MAX + MEMRT__CACHE_LARGE_MAX)

/// Have records of threads come with empty bins, and bins be emptied when threads end.
void memrt__cache_start(void);

/// Take a block of the class after its bin was found empty. NULL: out of memory.
MEMRT__COLD void *memrt__cache_refill(memrt__thread_t *self, unsigned class);

/// Give a block back: to the calling thread's bin, or, where there was no memory for its record, to
/// what all threads share.
void memrt__cache_return(unsigned class, void *block);

/// Make room in a bin that is full.
MEMRT__COLD void memrt__cache_overflow(memrt__thread_t *self, unsigned class);

/// Give away all that the calling thread keeps; returns bytes.
size_t memrt__cache_drain(memrt__thread_t *self);

/// Ask all threads but `self` to do the same. Each does when it next frees a block or finds a bin
/// empty: nobody can take from a bin but its owner, who uses it without any lock. A thread that
/// does neither keeps what it has, MEMRT__CACHE_THREAD_MAX at most.
void memrt__cache_ask_others(const memrt__thread_t *self);

/// Bytes in the bins of all threads.
size_t memrt__cache_cached(void);

/// The block on top of a bin, or NULL.
static inline void *memrt__bin_pop(memrt__bin_t *bin)
{
    void *block = (void *)memrt__own_load(&bin->head);
    if (MEMRT__LIKELY(block != NULL)) {
        memrt__store_release(&bin->head, (size_t)*memrt__block_next(block));
        memrt__own_add(&bin->count, (size_t)-1);
    }
    return block;
}

static inline void memrt__bin_push(memrt__bin_t *bin, void *block)
{
    *memrt__block_next(block) = (void *)memrt__own_load(&bin->head);
    memrt__store_release(&bin->head, (size_t)block);
    memrt__own_add(&bin->count, 1);
}

/// New block of the class. NULL: out of memory.
static inline void *memrt__cache_take(memrt__thread_t *self, unsigned class)
{
    void *block = memrt__bin_pop(&self->bins[class]);
    return MEMRT__LIKELY(block != NULL) ? block : memrt__cache_refill(self, class);
}

static inline bool memrt__bin_is_full(const memrt__bin_t *bin)
{
    return bin->count >= memrt__load_relaxed(&bin->limit);
}

static inline void memrt__cache_give(memrt__thread_t *self, unsigned class, void *block)
{
    memrt__bin_t *bin = &self->bins[class];
    if (MEMRT__UNLIKELY(memrt__bin_is_full(bin))) {
        memrt__cache_overflow(self, class);
    }
    memrt__bin_push(bin, block);
}

/// The short way of a birth: a block of the class from the thread's bin, counted at home as one of
/// `kind` with `size` bytes. NULL: it is not open, nothing happened.
static inline void *memrt__cache_take_counted(memrt__thread_t *self, memrt__home_t home,
                                              unsigned class, unsigned kind, size_t size)
{
    memrt__shard_t *shard = home.shard;
    if (MEMRT__UNLIKELY(shard == NULL || !memrt__shard_can_grow(shard, size))) {
        return NULL;
    }
    void *block = memrt__bin_pop(&self->bins[class]);
    if (MEMRT__LIKELY(block != NULL)) {
        memrt__count_in(&shard->made[kind], 1);
        memrt__count_in(&shard->bytes_in, size);
        if (home.account != 0) {
            memrt__count_size(shard, size);
        }
    }
    return block;
}

/// The short way of a death, likewise; `freed` is the last that is touched of the account. False:
/// it is not open, nothing happened.
static inline bool memrt__cache_give_counted(memrt__thread_t *self, uint32_t account,
                                             unsigned class, unsigned kind, size_t size,
                                             void *block)
{
    memrt__shard_t *shard = memrt__thread_shard(self, account);
    memrt__bin_t *bin = &self->bins[class];
    if (MEMRT__UNLIKELY(shard == NULL || !memrt__shard_can_shrink(shard, size) ||
                        memrt__bin_is_full(bin))) {
        return false;
    }
    memrt__bin_push(bin, block);
    memrt__count_out(&shard->bytes_out, size);
    memrt__count_out(&shard->freed[kind], 1);
    return true;
}

#endif
