#include "runtime/alloc/guard/quarantine.h"

#include "runtime/os/lock.h"

static size_t get_ring_index(const memrt__quarantine_t *quarantine, size_t position)
{
    MEMRT__ASSERT(position <= quarantine->count);
    return (quarantine->first + position) % MEMRT__QUARANTINE_BLOCKS;
}

bool memrt__quarantine_put(memrt__quarantine_t *quarantine, void *ptr, size_t size)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_QUARANTINE)) {
        return false;
    }
    bool room = quarantine->count < MEMRT__QUARANTINE_BLOCKS &&
                size <= MEMRT__QUARANTINE_BYTES - quarantine->bytes;
    if (room) {
        size_t index = get_ring_index(quarantine, quarantine->count++);
        quarantine->ring[index].ptr = ptr;
        quarantine->ring[index].size = size;
        quarantine->bytes += size;
        MEMRT__ASSERT(ptr != NULL && quarantine->bytes <= MEMRT__QUARANTINE_BYTES);
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return room;
}

void *memrt__quarantine_take(memrt__quarantine_t *quarantine)
{
    void *ptr = NULL;
    if (!memrt__lock_or_fork(MEMRT__RANK_QUARANTINE)) {
        return NULL;
    }
    if (quarantine->count != 0) {
        size_t index = quarantine->first;
        quarantine->first = get_ring_index(quarantine, 1);
        quarantine->count--;
        MEMRT__ASSERT(quarantine->bytes >= quarantine->ring[index].size);
        quarantine->bytes -= quarantine->ring[index].size;
        ptr = quarantine->ring[index].ptr;
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return ptr;
}

bool memrt__quarantine_visit(const memrt__quarantine_t *quarantine,
                             memrt__quarantine_visit_fn visit, void *context)
{
    bool ended = false;
    memrt__lock(MEMRT__RANK_QUARANTINE);
    for (size_t i = 0; i < quarantine->count && !ended; i++) {
        ended = visit(quarantine->ring[get_ring_index(quarantine, i)].ptr, context);
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return ended;
}

#if MEMRT_DEBUG

/// Check the blocks and add up their sizes.
static bool is_ring_valid(const memrt__quarantine_t *quarantine)
{
    size_t bytes = 0;
    for (size_t i = 0; i < quarantine->count; i++) {
        size_t index = get_ring_index(quarantine, i);
        if (!MEMRT__HOLDS(quarantine->ring[index].ptr != NULL)) {
            return false;
        }
        bytes += quarantine->ring[index].size;
    }
    return MEMRT__HOLDS(bytes == quarantine->bytes);
}

bool memrt__quarantine_is_valid(const memrt__quarantine_t *quarantine)
{
    memrt__lock(MEMRT__RANK_QUARANTINE);
    bool valid = MEMRT__HOLDS(quarantine->count <= MEMRT__QUARANTINE_BLOCKS) &&
                 MEMRT__HOLDS(quarantine->bytes <= MEMRT__QUARANTINE_BYTES) &&
                 MEMRT__HOLDS(quarantine->first < MEMRT__QUARANTINE_BLOCKS) &&
                 is_ring_valid(quarantine);
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return valid;
}

#endif
