#include "runtime/alloc/heap/thread_cache.h"

#include <string.h>

#include "runtime/alloc/heap/central_list.h"
#include "runtime/alloc/heap/handover.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/os/lock.h"
#include "runtime/stats/gauges.h"

#define STEP_BYTES ((size_t)16 << 10)
#define BATCH_BYTES ((size_t)128 << 10)
#define BATCH_SHARE 32u /* a batch is at most this fraction of the allowance */
#define BLOCKS_MIN 2u
#define BLOCKS_MAX 32u
#define DRAIN_REQUESTS 8

_Static_assert(BLOCKS_MAX <= MEMRT__HANDOVER_BLOCKS, "each batch fits a slot of the handover");

static void set_limit(memrt__thread_t *self, memrt__bin_t *bin, size_t limit)
{
    MEMRT__ASSERT(self == memrt__self);
    size_t more = limit - bin->limit;
    self->cache.limits[memrt__bin_has_large_blocks(bin)] += more * bin->bytes;
    memrt__own_add(&bin->room, more);
    memrt__own_add(&bin->limit, more);
}

static size_t read_live_bytes(void)
{
    return memrt__load_relaxed(&memrt__process.flushed);
}

/// Return the bytes that the limits of all bins of the same kind may allow together. The result
/// depends on the bytes in use by the process: now, or when a bin last ran empty, whichever is
/// larger. Blocks freed all at once are likely to be needed again. A single large block is always
/// allowed.
static size_t compute_allowance(const memrt__thread_t *self, const memrt__bin_t *bin)
{
    size_t live = memrt__size_max(self->cache.live, read_live_bytes());
    if (!memrt__bin_has_large_blocks(bin)) {
        return memrt__size_min(live,
                               MEMRT__THREAD_CACHE_SMALL_MAX - MEMRT__THREAD_CACHE_SMALL_MIN) +
               MEMRT__THREAD_CACHE_SMALL_MIN;
    }
    return memrt__size_max(bin->bytes, memrt__size_min(live / 4, MEMRT__THREAD_CACHE_LARGE_MAX));
}

static size_t convert_bytes_to_blocks(const memrt__bin_t *bin, size_t bytes)
{
    size_t least = memrt__bin_has_large_blocks(bin) ? 1 : BLOCKS_MIN;
    return memrt__size_max(least, memrt__size_min(bytes / bin->bytes, BLOCKS_MAX));
}

/// Return the growth step of a limit, in blocks. A small step keeps a class from taking room that
/// other classes need.
static size_t get_growth_step(const memrt__bin_t *bin)
{
    return convert_bytes_to_blocks(bin, STEP_BYTES);
}

/// Return the number of large blocks that move at once: half of what the bin may keep.
static size_t get_large_batch_size(const memrt__bin_t *bin)
{
    return memrt__size_max(bin->limit / 2, 1);
}

/// Return the number of blocks that move at once, if the limit allows as many in the bin.
static size_t get_batch_size(const memrt__thread_t *self, const memrt__bin_t *bin)
{
    MEMRT__ASSERT(bin->bytes != 0);
    if (memrt__bin_has_large_blocks(bin)) {
        return get_large_batch_size(bin);
    }
    size_t share = compute_allowance(self, bin) / BATCH_SHARE;
    return convert_bytes_to_blocks(
        bin, memrt__size_max(STEP_BYTES, memrt__size_min(share, BATCH_BYTES)));
}

/// Return true if all limits together may allow `more` further blocks.
static bool can_allow_blocks(const memrt__thread_t *self, const memrt__bin_t *bin, size_t more)
{
    return self->cache.limits[memrt__bin_has_large_blocks(bin)] + more * bin->bytes <=
           compute_allowance(self, bin);
}

static void prepare_bins(memrt__thread_t *thread)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        thread->cache.bins[class].bytes = (uint32_t)memrt__class_bytes(class);
    }
}

static void set_bin_list(memrt__bin_t *bin, void *list, size_t count)
{
    memrt__store_release(&bin->head, (size_t)list);
    memrt__own_add(&bin->room, (size_t)0 - count);
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
static size_t get_handover_size(const memrt__bin_t *bin)
{
    return memrt__bin_has_large_blocks(bin) ? get_large_batch_size(bin)
                                            : convert_bytes_to_blocks(bin, BATCH_BYTES);
}

/// Take a batch that another thread freed. The batch may be larger than the limit of the bin, which
/// a thread that frees no blocks never raises.
static void *take_handed_over(memrt__thread_t *self, unsigned class, size_t *taken)
{
    memrt__bin_t *bin = &self->cache.bins[class];
    size_t limit = bin->limit, batch = memrt__size_max(get_handover_size(bin), limit);
    bool allowed = can_allow_blocks(self, bin, batch - limit);
    void *list = memrt__handover_pop(class, memrt__size_max(allowed ? batch : limit, 1), taken);
    if (list != NULL && allowed && *taken > limit) {
        set_limit(self, bin, *taken);
    }
    return list;
}

void *memrt__thread_cache_refill(memrt__thread_t *self, unsigned class)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    serve_drain_request(self);
    memrt__bin_t *bin = &self->cache.bins[class];
    if (MEMRT__UNLIKELY(memrt__bin_top(bin) != NULL)) {
        memrt__link_refuse(memrt__bin_top(bin));
    }
    MEMRT__ASSERT(memrt__bin_count(bin) == 0);
    size_t taken, batch = get_batch_size(self, bin);
    size_t limit = bin->limit;
    size_t doubled = memrt__size_min(get_growth_step(bin), memrt__size_max(2 * limit, BLOCKS_MIN));
    bin->ran_empty = true;
    self->cache.live = read_live_bytes();
    if (limit < doubled && can_allow_blocks(self, bin, doubled - limit)) {
        set_limit(self, bin, doubled);
    }
    void *block = take_handed_over(self, class, &taken);
    if (block == NULL) {
        size_t most = memrt__size_max(memrt__size_min(batch, bin->limit), 1);
        block = memrt__central_list_take(class, most, &taken);
    }
    if (block != NULL) {
        MEMRT__ASSERT(taken != 0);
        set_bin_list(bin, memrt__block_next(block), taken - 1);
    }
    return block;
}

/// Cut the top `count` blocks from a bin, as a list that ends in NULL.
static void *cut_list(memrt__bin_t *bin, size_t count)
{
    MEMRT__ASSERT(count != 0 && count <= memrt__bin_count(bin));
    void *list = (void *)memrt__load_relaxed(&bin->head);
    void *last = list;
    for (size_t i = 1; i < count; i++) {
        last = memrt__block_next(last);
    }
    void *rest = memrt__block_next(last);
    MEMRT__ASSERT((rest == NULL) == (count == memrt__bin_count(bin)));
    memrt__block_set_next(last, NULL);
    set_bin_list(bin, rest, (size_t)0 - count);
    return list;
}

/// Give the top `count` blocks of a bin to the central list.
static void return_blocks_to_central(memrt__bin_t *bin, unsigned class, size_t count)
{
    memrt__central_list_give(class, cut_list(bin, count));
}

/// Give a batch of a full bin to a thread that needs blocks of the class, or to the central list.
static void hand_over_batch(memrt__bin_t *bin, unsigned class)
{
    size_t count = memrt__size_min(get_handover_size(bin), memrt__bin_count(bin));
    void *list = cut_list(bin, count);
    if (!memrt__handover_push(class, list, count)) {
        memrt__central_list_give(class, list);
    }
}

/// Restart the limits of all small or all large bins at the blocks that are left, half at most.
/// Classes in use grow back.
static void restart_limits(memrt__thread_t *self, bool large)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &self->cache.bins[class];
        if (memrt__bin_has_large_blocks(bin) != large) {
            continue;
        }
        if (memrt__bin_count(bin) != 0) {
            return_blocks_to_central(bin, class, (memrt__bin_count(bin) + 1) / 2);
        }
        set_limit(self, bin, memrt__bin_count(bin));
    }
}

/// Return the growth for the limit of a full bin. A bin that has not run empty since the last
/// growth keeps more blocks than its thread takes, and stays at one batch.
static size_t compute_limit_growth(const memrt__thread_t *self, const memrt__bin_t *bin)
{
    size_t batch = get_batch_size(self, bin), limit = bin->limit;
    if (!bin->ran_empty) {
        return limit < batch ? memrt__size_min(get_growth_step(bin), batch - limit) : 0;
    }
    size_t more = memrt__size_max(get_growth_step(bin), limit / 2);
    return more * bin->bytes > compute_allowance(self, bin) / 2 ? get_growth_step(bin) : more;
}

void memrt__thread_cache_overflow(memrt__thread_t *self, unsigned class)
{
    serve_drain_request(self);
    memrt__bin_t *bin = &self->cache.bins[class];
    if (memrt__bin_count(bin) < bin->limit) {
        return; /* a fork kept the lock away, so that the request is still open */
    }
    size_t more = compute_limit_growth(self, bin);
    if (!can_allow_blocks(self, bin, more)) {
        more = memrt__size_min(more, get_growth_step(bin));
    }
    if (more != 0 && can_allow_blocks(self, bin, more)) {
        set_limit(self, bin, bin->limit + more);
        bin->ran_empty = false;
    } else if (more == 0 || bin->limit * bin->bytes >= compute_allowance(self, bin) / 2) {
        hand_over_batch(bin, class);
    } else {
        restart_limits(self, memrt__bin_has_large_blocks(bin));
        set_limit(self, bin, bin->limit + 1);
    }
    MEMRT__ASSERT(!memrt__bin_is_full(bin) || memrt__load_relaxed(&self->cache.must_empty) != 0);
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
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &self->cache.bins[class];
        if (memrt__bin_count(bin) != 0) {
            bytes += memrt__bin_count(bin) * bin->bytes;
            return_blocks_to_central(bin, class, memrt__bin_count(bin));
        }
        memrt__store_relaxed(&bin->limit, 0);
        memrt__store_relaxed(&bin->room, 0);
    }
    memset(self->cache.limits, 0, sizeof(self->cache.limits));
    self->cache.live = 0;
    return bytes;
}

/// Have the next free into a bin call the overflow function. A change of the owner at the same time
/// may undo the request, so a lost request is repeated. If all are lost, the owner finds the
/// request when the bin is full or empty.
static void request_drain_of_bin(memrt__bin_t *bin)
{
    for (int attempt = 0; attempt < DRAIN_REQUESTS && !memrt__bin_is_full(bin); attempt++) {
        memrt__fetch_add_relaxed(&bin->room, (size_t)0 - MEMRT__DRAIN_REQUEST);
    }
}

static void request_drain(memrt__thread_t *thread)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    memrt__store_relaxed(&thread->cache.must_empty, 1);
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        request_drain_of_bin(&thread->cache.bins[class]);
    }
}

void memrt__thread_cache_ask_others(const memrt__thread_t *self)
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
    for (size_t class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &thread->cache.bins[class];
        *bin = (memrt__bin_t){.bytes = bin->bytes};
    }
    memset(thread->cache.limits, 0, sizeof(thread->cache.limits));
    thread->cache.must_empty = 0;
}

void memrt__thread_cache_start(void)
{
    static const memrt__thread_module_t module = {{[MEMRT__THREAD_NEW] = prepare_bins,
                                                   [MEMRT__THREAD_ENDED] = drain_ended_thread,
                                                   [MEMRT__THREAD_LOST] = clear_bins}};
    memrt__thread_add_module(&module);
    memrt__handover_start();
}

size_t memrt__thread_cache_cached(void)
{
    size_t bytes = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
            bytes +=
                memrt__bin_count_of_any_thread(&t->cache.bins[class]) * t->cache.bins[class].bytes;
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return bytes;
}
