#include "runtime/alloc/cache.h"

#include "runtime/alloc/central.h"
#include "runtime/base/lock.h"

#define BATCH_BYTES ((size_t)16 << 10)
#define BATCH_MIN 2u
#define BATCH_MAX 32u

/// Blocks that change hands at once.
static size_t batch_of(const memrt__bin_t *bin)
{
    return memrt__size_max(BATCH_MIN, memrt__size_min(BATCH_BYTES / bin->bytes, BATCH_MAX));
}

static void set_limit(memrt__thread_t *self, memrt__bin_t *bin, size_t limit)
{
    self->limits += (limit - bin->limit) * bin->bytes;
    bin->limit = limit;
}

/// Whether all limits together may allow that many blocks more.
static bool fits(const memrt__thread_t *self, const memrt__bin_t *bin, size_t more)
{
    return self->limits + more * bin->bytes <= MEMRT__CACHE_THREAD_MAX;
}

static void prepare(memrt__thread_t *thread)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        thread->bins[class].bytes = memrt__class_bytes(class);
    }
}

static void put_list(memrt__bin_t *bin, void *list, size_t count)
{
    memrt__store_release(&bin->head, (size_t)list);
    memrt__own_add(&bin->count, count);
}

void *memrt__cache_refill(memrt__thread_t *self, unsigned class)
{
    memrt__bin_t *bin = &self->bins[class];
    size_t taken, batch = batch_of(bin);
    if (bin->limit < batch && fits(self, bin, batch - bin->limit)) {
        set_limit(self, bin, batch);
    }
    size_t most = memrt__size_max(memrt__size_min(batch, bin->limit), 1);
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

/// All limits start again from what is left, half at most: the classes that are used now grow back.
static void start_again(memrt__thread_t *self)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        memrt__bin_t *bin = &self->bins[class];
        if (bin->count != 0) {
            give_away(bin, class, (bin->count + 1) / 2);
        }
        set_limit(self, bin, bin->count);
    }
}

/// A bin that is full for the first times grows, then it gives a batch away each time.
void memrt__cache_overflow(memrt__thread_t *self, unsigned class)
{
    memrt__bin_t *bin = &self->bins[class];
    size_t more = memrt__size_max(batch_of(bin), bin->limit / 2);
    if (more * bin->bytes > MEMRT__CACHE_THREAD_MAX / 2 || !fits(self, bin, more)) {
        more = batch_of(bin);
    }
    if (fits(self, bin, more)) {
        set_limit(self, bin, bin->limit + more);
    } else if (bin->limit * bin->bytes >= MEMRT__CACHE_THREAD_MAX / 2) {
        give_away(bin, class, batch_of(bin));
    } else {
        start_again(self);
        set_limit(self, bin, bin->limit + 1);
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
        set_limit(self, bin, 0);
    }
    return bytes;
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
