#include "runtime/alloc/heap/handover.h"

#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/alloc/heap/span.h"
#include "runtime/base/atomics.h"
#include "runtime/os/lock.h"
#include "runtime/thread/thread.h"

/// Maximum of bytes in the slots of a class.
#define BYTES_MAX ((size_t)512 << 10)

/// Values of `state` modulo 4. The other bits count the batches, so that a purge can see whether a
/// batch is the same as before.
#define EMPTY 0u
#define BUSY 1u ///< one thread reads or writes the slot
#define FULL 2u
#define STATES 4u

/// Place for one batch. A thread makes the slot busy by compare-and-swap, acquire, and leaves by a
/// store, release. So no thread waits for another, and a busy slot belongs to one thread.
typedef struct slot {
    _Alignas(MEMRT__CACHE_LINE) size_t state;
    size_t count;                         ///< relaxed; blocks of the batch
    void *blocks[MEMRT__HANDOVER_BLOCKS]; ///< the blocks, in the order of the list
    size_t seen;                          ///< relaxed; state at the previous purge
} slot_t;

/// Slots of a class.
typedef struct relay {
    _Alignas(MEMRT__CACHE_LINE) size_t taker; ///< relaxed; record of the thread that popped last
    size_t used;                              ///< relaxed; 1: a slot may have a batch
    slot_t slots[MEMRT__HANDOVER_SLOTS];
} relay_t;

/// Once used, a class stays used: the purge of a class without batches costs little.
static relay_t relays[MEMRT__CLASSES];

static bool try_enter(slot_t *slot, size_t state)
{
    size_t now = memrt__load_relaxed(&slot->state);
    return now % STATES == state && memrt__cas_acquire(&slot->state, now, now - state + BUSY);
}

/// Leave a busy slot. A full slot has a new batch.
static void leave(slot_t *slot, size_t state)
{
    size_t batches = memrt__load_relaxed(&slot->state) / STATES;
    MEMRT__ASSERT(memrt__load_relaxed(&slot->state) % STATES == BUSY);
    memrt__store_release(&slot->state, (batches + (state == FULL)) * STATES + state);
}

static void fill_slot(slot_t *slot, void *list, size_t count)
{
    memrt__store_relaxed(&slot->count, count);
    for (size_t i = 0; i < count; i++) {
        slot->blocks[i] = list;
        list = memrt__block_next(list);
    }
    MEMRT__ASSERT(list == NULL);
}

/// Return whether the calling thread should push: another thread popped last, and no fork is in
/// progress, so that no block is of a detour.
static bool has_taker(const relay_t *relay)
{
    size_t taker = memrt__load_relaxed(&relay->taker);
    return taker != 0 && taker != (size_t)memrt__self && !memrt__lock_is_forking();
}

static void mark_used(relay_t *relay)
{
    if (memrt__load_relaxed(&relay->used) == 0) {
        memrt__store_relaxed(&relay->used, 1);
    }
}

bool memrt__handover_push(unsigned class, void *list, size_t count)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES && list != NULL && count != 0);
    relay_t *relay = &relays[class];
    size_t most = BYTES_MAX / (count * memrt__class_bytes(class));
    if (!has_taker(relay) || count > MEMRT__HANDOVER_BLOCKS) {
        return false;
    }
    mark_used(relay);
    for (size_t i = 0; i < MEMRT__HANDOVER_SLOTS && i < most; i++) {
        if (try_enter(&relay->slots[i], EMPTY)) {
            fill_slot(&relay->slots[i], list, count);
            leave(&relay->slots[i], FULL);
            /* By the fences here and in the purger, the purger sees the batch before the end of the
               purger, or this thread sees that no purger runs. */
            memrt__fence_full();
            memrt__purger_wake();
            return true;
        }
    }
    return false;
}

/// Take the last `*taken` blocks at most of a busy slot. The thread that pushed the blocks has the
/// cache lines of their headers; prefetching moves all lines at once.
static void *take_blocks(slot_t *slot, size_t most, size_t *taken)
{
    size_t count = memrt__load_relaxed(&slot->count), left = count > most ? count - most : 0;
    MEMRT__ASSERT(count != 0 && count <= MEMRT__HANDOVER_BLOCKS);
    for (size_t i = left; i < count; i++) {
        MEMRT__PREFETCH(slot->blocks[i]);
    }
    if (left != 0) {
        memrt__block_set_next(slot->blocks[left - 1], NULL);
    }
    *taken = count - left;
    memrt__store_relaxed(&slot->count, left);
    return slot->blocks[left];
}

void *memrt__handover_pop(unsigned class, size_t most, size_t *taken)
{
    MEMRT__ASSERT(class < MEMRT__CLASSES && most != 0);
    relay_t *relay = &relays[class];
    if (memrt__load_relaxed(&relay->taker) != (size_t)memrt__self) {
        memrt__store_relaxed(&relay->taker, (size_t)memrt__self);
    }
    if (memrt__load_relaxed(&relay->used) == 0) {
        return NULL;
    }
    for (size_t i = 0; i < MEMRT__HANDOVER_SLOTS; i++) {
        slot_t *slot = &relay->slots[i];
        if (try_enter(slot, FULL)) {
            void *list = take_blocks(slot, most, taken);
            leave(slot, memrt__load_relaxed(&slot->count) == 0 ? EMPTY : FULL);
            return list;
        }
    }
    return NULL;
}

/// Call `visit` for each slot of the classes in use.
static void visit_slots(void (*visit)(slot_t *slot, unsigned class, void *context), void *context)
{
    for (unsigned class = 0; class < MEMRT__CLASSES; class++) {
        relay_t *relay = &relays[class];
        if (memrt__load_relaxed(&relay->used) != 0) {
            for (size_t i = 0; i < MEMRT__HANDOVER_SLOTS; i++) {
                visit(&relay->slots[i], class, context);
            }
        }
    }
}

/// Give a batch back: each batch if `*all`, a bool, else a batch that the previous purge has seen.
static void purge_slot(slot_t *slot, unsigned class, void *all)
{
    size_t state = memrt__load_relaxed(&slot->state), taken;
    if ((*(const bool *)all || state == memrt__load_relaxed(&slot->seen)) &&
        try_enter(slot, FULL)) {
        void *list = take_blocks(slot, MEMRT__HANDOVER_BLOCKS, &taken);
        leave(slot, EMPTY);
        memrt__central_list_give(class, list);
    }
    memrt__store_relaxed(&slot->seen, memrt__load_relaxed(&slot->state));
}

void memrt__handover_purge(bool all)
{
    visit_slots(purge_slot, &all);
}

static void add_slot(slot_t *slot, unsigned class, void *bytes)
{
    bool full = memrt__load_acquire(&slot->state) % STATES == FULL;
    *(size_t *)bytes += full ? memrt__load_relaxed(&slot->count) * memrt__class_bytes(class) : 0;
}

size_t memrt__handover_cached(void)
{
    size_t bytes = 0;
    visit_slots(add_slot, &bytes);
    return bytes;
}

static bool is_aging(void)
{
    return memrt__handover_cached() != 0;
}

static void purge_old(void)
{
    memrt__handover_purge(false);
}

void memrt__handover_start(void)
{
    static const memrt__purged_t cache = {is_aging, purge_old};
    memrt__purger_add(&cache);
}

static void clear_busy_slot(slot_t *slot, unsigned class, void *unused)
{
    (void)class, (void)unused;
    if (memrt__load_relaxed(&slot->state) % STATES == BUSY) {
        leave(slot, EMPTY);
    }
}

void memrt__handover_forked(void)
{
    visit_slots(clear_busy_slot, NULL);
}

#if MEMRT_DEBUG

/// Return whether a slot has a complete list of blocks of the class, unless the slot is not full.
static bool is_slot_valid(const slot_t *slot, unsigned class)
{
    bool full = memrt__load_acquire(&slot->state) % STATES == FULL;
    bool valid = !full || (MEMRT__HOLDS(slot->count - 1 < MEMRT__HANDOVER_BLOCKS) &&
                           MEMRT__HOLDS(memrt__block_next(slot->blocks[slot->count - 1]) == NULL));
    for (size_t i = 0; full && valid && i < slot->count; i++) {
        valid = MEMRT__HOLDS(memrt__page_heap_span_of(slot->blocks[i])->class == class) &&
                MEMRT__HOLDS(i == 0 || memrt__block_next(slot->blocks[i - 1]) == slot->blocks[i]);
    }
    return valid;
}

bool memrt__handover_is_valid(void)
{
    bool valid = true;
    for (unsigned class = 0; valid && class < MEMRT__CLASSES; class++) {
        for (size_t i = 0; valid && i < MEMRT__HANDOVER_SLOTS; i++) {
            const slot_t *slot = &relays[class].slots[i];
            valid = is_slot_valid(slot, class) &&
                    MEMRT__HOLDS(relays[class].used != 0 || slot->count == 0);
        }
    }
    return valid;
}

#endif
