#include "runtime/alloc/cache.h"

#include <string.h>

#include "runtime/alloc/central.h"
#include "runtime/base/lock.h"
#include "runtime/stats/stats.h"

#define STEP_BYTES ((size_t)16 << 10)
#define BATCH_BYTES ((size_t)128 << 10)
#define BATCH_SHARE 32u /* of what the thread may keep */
#define BLOCKS_MIN 2u
#define BLOCKS_MAX 32u

static bool is_large(const memrt__bin_t *bin)
{
    return bin->bytes > MEMRT__CACHE_SMALL;
}

/// Others may make it 0 at any time.
static size_t limit_of(const memrt__bin_t *bin)
{
    return memrt__load_relaxed(&bin->limit);
}

static void set_limit(memrt__thread_t *self, memrt__bin_t *bin, size_t limit)
{
    self->limits[is_large(bin)] += (limit - limit_of(bin)) * bin->bytes;
    memrt__store_relaxed(&bin->limit, limit);
}

static size_t live_now(void)
{
    return memrt__load_relaxed(&memrt__process.flushed);
}

/// What the limits of all bins of its kind may allow together, by what the process has in use, or
/// had when the thread last took more than it had: blocks that come back all at once are wanted
/// again. One large block may be kept in any case.
static size_t allowance(const memrt__thread_t *self, const memrt__bin_t *bin)
{
    size_t live = memrt__size_max(self->live, live_now());
    if (!is_large(bin)) {
        return memrt__size_min(live, MEMRT__CACHE_SMALL_MAX - MEMRT__CACHE_SMALL_MIN) +
               MEMRT__CACHE_SMALL_MIN;
    }
    return memrt__size_max(bin->bytes, memrt__size_min(live / 4, MEMRT__CACHE_LARGE_MAX));
}

static size_t blocks_in(const memrt__bin_t *bin, size_t bytes)
{
    size_t least = is_large(bin) ? 1 : BLOCKS_MIN;
    return memrt__size_max(least, memrt__size_min(bytes / bin->bytes, BLOCKS_MAX));
}

/// Blocks by which a limit grows: few, so that no class takes room from others that it does not
/// need.
static size_t step_of(const memrt__bin_t *bin)
{
    return blocks_in(bin, STEP_BYTES);
}

/// Blocks that change hands at once, where the limit lets so many lie in the bin.
static size_t batch_of(const memrt__thread_t *self, const memrt__bin_t *bin)
{
    size_t share = allowance(self, bin) / BATCH_SHARE;
    return blocks_in(bin, memrt__size_max(STEP_BYTES, memrt__size_min(share, BATCH_BYTES)));
}

/// Whether all limits together may allow that many blocks more.
static bool fits(const memrt__thread_t *self, const memrt__bin_t *bin, size_t more)
{
    return self->limits[is_large(bin)] + more * bin->bytes <= allowance(self, bin);
}

static void prepare(memrt__thread_t *thread)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        thread->bins[class].bytes = (uint32_t)memrt__class_bytes(class);
    }
}

static void put_list(memrt__bin_t *bin, void *list, size_t count)
{
    memrt__store_release(&bin->head, (size_t)list);
    memrt__own_add(&bin->count, count);
}

/// Do what the thread was asked to do. Who asks holds the lock until all limits are 0, so that none
/// becomes 0 after its bytes were counted again.
static void heed(memrt__thread_t *self)
{
    if (MEMRT__UNLIKELY(memrt__load_relaxed(&self->asked) != 0)) {
        memrt__lock(MEMRT__RANK_THREADS);
        memrt__store_relaxed(&self->asked, 0);
        memrt__unlock(MEMRT__RANK_THREADS);
        memrt__cache_drain(self);
        memrt__stats_rest_gauges();
    }
}

void *memrt__cache_refill(memrt__thread_t *self, unsigned class)
{
    heed(self);
    memrt__bin_t *bin = &self->bins[class];
    size_t taken, batch = batch_of(self, bin);
    size_t limit = limit_of(bin);
    size_t doubled = memrt__size_min(step_of(bin), memrt__size_max(2 * limit, BLOCKS_MIN));
    bin->ran_empty = true;
    self->live = live_now();
    if (limit < doubled && fits(self, bin, doubled - limit)) {
        set_limit(self, bin, doubled);
    }
    size_t most = memrt__size_max(memrt__size_min(batch, limit_of(bin)), 1);
    void *block = memrt__central_take(class, most, &taken);
    if (block != NULL) {
        put_list(bin, *memrt__block_next(block), taken - 1);
    }
    return block;
}

/// Give the top `count` blocks of a bin away.
static void give_away(memrt__bin_t *bin, unsigned class, size_t count)
{
    void *list = (void *)memrt__load_relaxed(&bin->head);
    void *last = list;
    for (size_t i = 1; i < count; i++) {
        last = *memrt__block_next(last);
    }
    void *rest = *memrt__block_next(last);
    *memrt__block_next(last) = NULL;
    put_list(bin, rest, (size_t)0 - count);
    memrt__central_give(class, list);
}

/// All limits of such bins start again from what is left, half at most: the classes that are used
/// now grow back.
static void start_again(memrt__thread_t *self, bool large)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &self->bins[class];
        if (is_large(bin) != large) {
            continue;
        }
        if (bin->count != 0) {
            give_away(bin, class, (bin->count + 1) / 2);
        }
        set_limit(self, bin, bin->count);
    }
}

/// By how much the limit of a full bin should grow. One that has not run empty since it last grew
/// keeps more than its thread takes, and is left at a batch.
static size_t growth_of(const memrt__thread_t *self, const memrt__bin_t *bin)
{
    size_t batch = batch_of(self, bin), limit = limit_of(bin);
    if (!bin->ran_empty) {
        return limit < batch ? memrt__size_min(step_of(bin), batch - limit) : 0;
    }
    size_t more = memrt__size_max(step_of(bin), limit / 2);
    return more * bin->bytes > allowance(self, bin) / 2 ? step_of(bin) : more;
}

void memrt__cache_overflow(memrt__thread_t *self, unsigned class)
{
    heed(self);
    memrt__bin_t *bin = &self->bins[class];
    size_t more = growth_of(self, bin);
    if (!fits(self, bin, more)) {
        more = memrt__size_min(more, step_of(bin));
    }
    if (more != 0 && fits(self, bin, more)) {
        set_limit(self, bin, limit_of(bin) + more);
        bin->ran_empty = false;
    } else if (more == 0 || limit_of(bin) * bin->bytes >= allowance(self, bin) / 2) {
        give_away(bin, class, memrt__size_min(batch_of(self, bin), bin->count));
    } else {
        start_again(self, is_large(bin));
        set_limit(self, bin, limit_of(bin) + 1);
    }
}

void memrt__cache_return(unsigned class, void *block)
{
    memrt__thread_t *self = memrt__thread_self();
    if (self != NULL) {
        memrt__cache_give(self, class, block);
    } else {
        *memrt__block_next(block) = NULL;
        memrt__central_give(class, block);
    }
}

size_t memrt__cache_drain(memrt__thread_t *self)
{
    size_t bytes = 0;
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &self->bins[class];
        if (bin->count != 0) {
            bytes += bin->count * bin->bytes;
            give_away(bin, class, bin->count);
        }
        memrt__store_relaxed(&bin->limit, 0);
    }
    memset(self->limits, 0, sizeof(self->limits));
    self->live = 0;
    return bytes;
}

static void ask(memrt__thread_t *thread)
{
    memrt__store_relaxed(&thread->asked, 1);
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__store_relaxed(&thread->bins[class].limit, 0);
    }
}

void memrt__cache_ask_others(const memrt__thread_t *self)
{
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        if (t != self && t->in_use) {
            ask(t);
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void drain(memrt__thread_t *thread)
{
    memrt__cache_drain(thread);
}

void memrt__cache_start(void)
{
    memrt__thread_hooks(prepare, drain);
}

size_t memrt__cache_cached(void)
{
    size_t bytes = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
            bytes += memrt__load_relaxed(&t->bins[class].count) * t->bins[class].bytes;
        }
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return bytes;
}
