#include "runtime/alloc/heap/thread_cache.h"

#include <string.h>

#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/handover.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/os/latency.h"
#include "runtime/os/lock.h"
#include "runtime/stats/gauges.h"

#define STEP_BYTES ((size_t)16 << 10)
#define BATCH_BYTES ((size_t)128 << 10)
#define BATCH_SHARE 32u /* a batch is at most this fraction of the allowance */
#define BLOCKS_MIN 2u
#define BLOCKS_MAX 32u
#define DRAIN_REQUESTS 8

_Static_assert(BLOCKS_MAX <= MEMRT__HANDOVER_BLOCKS, "each batch fits a slot of the handover");

static void set_limit(memrt__thread_t *self, unsigned class, size_t limit)
{
    MEMRT__ASSERT(self == memrt__self);
    size_t more = limit - self->cache.bins.limit[class];
    self->cache.limits[memrt__class_has_medium_blocks(class)] += more * memrt__class_bytes(class);
    memrt__own_add(&self->cache.bins.room[class], more);
    memrt__own_add(&self->cache.bins.limit[class], more);
}

static size_t read_live_bytes(void)
{
    return memrt__load_relaxed(&memrt__process.flushed);
}

/// Return the bytes that the limits of all bins of the same kind may allow together. The result
/// depends on the bytes in use by the process: now, or when a bin last ran empty, whichever is
/// larger. Blocks freed all at once are likely to be needed again. A single medium block is always
/// allowed.
static size_t compute_allowance(const memrt__thread_t *self, unsigned class)
{
    size_t live = memrt__size_max(self->cache.live, read_live_bytes());
    if (!memrt__class_has_medium_blocks(class)) {
        return memrt__size_min(live,
                               MEMRT__THREAD_CACHE_SMALL_MAX - MEMRT__THREAD_CACHE_SMALL_MIN) +
               MEMRT__THREAD_CACHE_SMALL_MIN;
    }
    return memrt__size_max(memrt__class_bytes(class),
                           memrt__size_min(live / 4, MEMRT__THREAD_CACHE_MEDIUM_MAX));
}

static size_t convert_bytes_to_blocks(unsigned class, size_t bytes)
{
    size_t least = memrt__class_has_medium_blocks(class) ? 1 : BLOCKS_MIN;
    return memrt__size_max(least, memrt__size_min(bytes / memrt__class_bytes(class), BLOCKS_MAX));
}

/// Return the growth step of a limit, in blocks. A small step keeps a class from taking room that
/// other classes need.
static size_t get_growth_step(unsigned class)
{
    return convert_bytes_to_blocks(class, STEP_BYTES);
}

/// Return the number of medium blocks that move at once: half of what the bin may keep.
static size_t get_medium_batch_size(const memrt__thread_t *self, unsigned class)
{
    return memrt__size_max(self->cache.bins.limit[class] / 2, 1);
}

/// Return the number of blocks that move at once, if the limit allows as many in the bin.
static size_t get_batch_size(const memrt__thread_t *self, unsigned class)
{
    if (memrt__class_has_medium_blocks(class)) {
        return get_medium_batch_size(self, class);
    }
    size_t share = compute_allowance(self, class) / BATCH_SHARE;
    return convert_bytes_to_blocks(
        class, memrt__size_max(STEP_BYTES, memrt__size_min(share, BATCH_BYTES)));
}

/// Return true if all limits together may allow `more` further blocks.
static bool can_allow_blocks(const memrt__thread_t *self, unsigned class, size_t more)
{
    return self->cache.limits[memrt__class_has_medium_blocks(class)] +
               more * memrt__class_bytes(class) <=
           compute_allowance(self, class);
}

static void set_bin_list(memrt__thread_t *self, unsigned class, void *list, size_t count)
{
    memrt__store_release(&self->cache.bins.head[class], (size_t)list);
    memrt__own_add(&self->cache.bins.room[class], (size_t)0 - count);
}

/// Serve a request to drain the bins. The requesting thread holds the lock until it has changed all
/// bins. Taking the lock here ensures that the drain comes after the request.
static void serve_drain_request(memrt__thread_t *self)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&self->cache.must_empty) != 0) &&
        memrt__lock_or_fork(MEMRT__RANK_THREADS)) {
        memrt__store_relaxed(&self->cache.must_empty, 0);
        memrt__unlock(MEMRT__RANK_THREADS);
        memrt__thread_cache_drain(self);
        memrt__stats_rest_gauges();
    }
}

/// Return the number of blocks that move at once to another thread: the largest batch.
static size_t get_handover_size(const memrt__thread_t *self, unsigned class)
{
    return memrt__class_has_medium_blocks(class) ? get_medium_batch_size(self, class)
                                                 : convert_bytes_to_blocks(class, BATCH_BYTES);
}

/// Take a batch that another thread freed. The batch may be larger than the limit of the bin, which
/// a thread that frees no blocks never raises.
static void *take_handed_over(memrt__thread_t *self, unsigned class, size_t *taken)
{
    size_t limit = self->cache.bins.limit[class],
           batch = memrt__size_max(get_handover_size(self, class), limit);
    bool allowed = can_allow_blocks(self, class, batch - limit);
    void *list = memrt__handover_pop(class, memrt__size_max(allowed ? batch : limit, 1), taken);
    if (list != NULL && allowed && *taken > limit) {
        set_limit(self, class, *taken);
    }
    return list;
}

void *memrt__thread_cache_refill(memrt__thread_t *self, unsigned class)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    MEMRT__TIMED(MEMRT_LATENCY_REFILL);
    serve_drain_request(self);
    if (MEMRT__UNLIKELY(memrt__bin_top(self, class) != NULL)) {
        memrt__link_refuse(memrt__bin_top(self, class));
    }
    MEMRT__ASSERT(memrt__bin_count(self, class) == 0);
    size_t taken, batch = get_batch_size(self, class);
    size_t limit = self->cache.bins.limit[class];
    size_t doubled =
        memrt__size_min(get_growth_step(class), memrt__size_max(2 * limit, BLOCKS_MIN));
    self->cache.bins.ran_empty[class] = true;
    self->cache.live = read_live_bytes();
    if (limit < doubled && can_allow_blocks(self, class, doubled - limit)) {
        set_limit(self, class, doubled);
    }
    void *block = take_handed_over(self, class, &taken);
    if (block == NULL) {
        size_t most = memrt__size_max(memrt__size_min(batch, self->cache.bins.limit[class]), 1);
        block = memrt__central_list_take(class, most, &taken);
    }
    if (block != NULL) {
        MEMRT__ASSERT(taken != 0);
        set_bin_list(self, class, memrt__block_next(block), taken - 1);
    }
    return block;
}

/// Cut the top `count` blocks from a bin, as a list that ends in NULL.
static void *cut_list(memrt__thread_t *self, unsigned class, size_t count)
{
    MEMRT__ASSERT(count != 0 && count <= memrt__bin_count(self, class));
    void *list = (void *)memrt__load_relaxed(&self->cache.bins.head[class]);
    void *last = list;
    for (size_t i = 1; i < count; i++) {
        last = memrt__block_next(last);
    }
    void *rest = memrt__block_next(last);
    MEMRT__ASSERT((rest == NULL) == (count == memrt__bin_count(self, class)));
    memrt__block_set_next(last, NULL);
    set_bin_list(self, class, rest, (size_t)0 - count);
    return list;
}

/// Give the top `count` blocks of a bin to the central list.
static void return_blocks_to_central(memrt__thread_t *self, unsigned class, size_t count)
{
    memrt__central_list_give(class, cut_list(self, class, count));
}

/// Give a batch of a full bin to a thread that needs blocks of the class, or to the central list.
static void hand_over_batch(memrt__thread_t *self, unsigned class)
{
    size_t count = memrt__size_min(get_handover_size(self, class), memrt__bin_count(self, class));
    void *list = cut_list(self, class, count);
    if (!memrt__handover_push(class, list, count)) {
        memrt__central_list_give(class, list);
    }
}

/// Restart the limits of the bins of all small, or of all medium, blocks at the blocks that are
/// left, half at most. Classes in use grow back.
static void restart_limits(memrt__thread_t *self, bool medium)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        if (memrt__class_has_medium_blocks(class) != medium) {
            continue;
        }
        if (memrt__bin_count(self, class) != 0) {
            return_blocks_to_central(self, class, (memrt__bin_count(self, class) + 1) / 2);
        }
        set_limit(self, class, memrt__bin_count(self, class));
    }
}

/// Return the growth for the limit of a full bin. A bin that has not run empty since the last
/// growth keeps more blocks than its thread takes, and stays at one batch.
static size_t compute_limit_growth(const memrt__thread_t *self, unsigned class)
{
    size_t batch = get_batch_size(self, class), limit = self->cache.bins.limit[class];
    if (!self->cache.bins.ran_empty[class]) {
        return limit < batch ? memrt__size_min(get_growth_step(class), batch - limit) : 0;
    }
    size_t more = memrt__size_max(get_growth_step(class), limit / 2);
    return more * memrt__class_bytes(class) > compute_allowance(self, class) / 2
               ? get_growth_step(class)
               : more;
}

void memrt__thread_cache_overflow(memrt__thread_t *self, unsigned class)
{
    MEMRT__TIMED(MEMRT_LATENCY_OVERFLOW);
    serve_drain_request(self);
    if (memrt__bin_count(self, class) < self->cache.bins.limit[class]) {
        return; /* a fork kept the lock away, so that the request is still open */
    }
    size_t more = compute_limit_growth(self, class);
    if (!can_allow_blocks(self, class, more)) {
        more = memrt__size_min(more, get_growth_step(class));
    }
    if (more != 0 && can_allow_blocks(self, class, more)) {
        set_limit(self, class, self->cache.bins.limit[class] + more);
        self->cache.bins.ran_empty[class] = false;
    } else if (more == 0 || self->cache.bins.limit[class] * memrt__class_bytes(class) >=
                                compute_allowance(self, class) / 2) {
        hand_over_batch(self, class);
    } else {
        restart_limits(self, memrt__class_has_medium_blocks(class));
        set_limit(self, class, self->cache.bins.limit[class] + 1);
    }
    MEMRT__ASSERT(!memrt__bin_is_full(self, class) ||
                  memrt__load_relaxed(&self->cache.must_empty) != 0);
}

void memrt__thread_cache_return(unsigned class, void *block)
{
    memrt__thread_t *self = memrt__thread_self();
    if (self != NULL) {
        memrt__thread_cache_give(self, class, block);
    } else {
        memrt__block_set_next(block, NULL);
        memrt__central_list_give(class, block);
    }
}

size_t memrt__thread_cache_drain(memrt__thread_t *self)
{
    MEMRT__TIMED(MEMRT_LATENCY_DRAIN);
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        if (memrt__bin_count(self, class) != 0) {
            bytes += memrt__bin_count(self, class) * memrt__class_bytes(class);
            return_blocks_to_central(self, class, memrt__bin_count(self, class));
        }
        memrt__store_relaxed(&self->cache.bins.limit[class], 0);
        memrt__store_relaxed(&self->cache.bins.room[class], 0);
    }
    memset(self->cache.limits, 0, sizeof(self->cache.limits));
    self->cache.live = 0;
    return bytes;
}

/// Have the next free into a bin call the overflow function. A change of the owner at the same time
/// may undo the request, so a lost request is repeated. If all are lost, the owner finds the
/// request when the bin is full or empty.
static void request_drain_of_bin(memrt__thread_t *thread, unsigned class)
{
    for (int attempt = 0; attempt < DRAIN_REQUESTS && !memrt__bin_is_full(thread, class);
         attempt++) {
        memrt__fetch_add_relaxed(&thread->cache.bins.room[class], (size_t)0 - MEMRT__DRAIN_REQUEST);
    }
}

static void request_drain(memrt__thread_t *thread)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&thread->cache.must_empty, 1);
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        request_drain_of_bin(thread, class);
    }
}

void memrt__thread_cache_drain_others(const memrt__thread_t *self)
{
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        if (t != self && t->in_use) {
            request_drain(t);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void drain_ended_thread(memrt__thread_t *thread)
{
    memrt__thread_cache_drain(thread);
}

/// Empty the bins of a record after a fork. The owner may have been in the middle of a change, so
/// the members of a bin may be inconsistent.
static void clear_bins(memrt__thread_t *thread)
{
    memset(&thread->cache.bins, 0, sizeof(thread->cache.bins));
    memset(thread->cache.limits, 0, sizeof(thread->cache.limits));
    thread->cache.must_empty = 0;
}

void memrt__thread_cache_start(void)
{
    static const memrt__thread_module_t module = {
        {[MEMRT__THREAD_ENDED] = drain_ended_thread, [MEMRT__THREAD_LOST] = clear_bins}};
    memrt__thread_add_module(&module);
    memrt__handover_start();
}

size_t memrt__thread_cache_cached(void)
{
    size_t bytes = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
            bytes += memrt__bin_count_of_any_thread(t, class) * memrt__class_bytes(class);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return bytes;
}
