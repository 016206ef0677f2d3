#include "runtime/alloc/quarantine.h"

#include "runtime/base/lock.h"

static size_t slot(const memrt__quarantine_t *quarantine, size_t position)
{
    return (quarantine->first + position) % MEMRT__QUARANTINE_BLOCKS;
}

bool memrt__quarantine_put(memrt__quarantine_t *quarantine, void *ptr, size_t size)
{
    memrt__lock(MEMRT__RANK_QUARANTINE);
    bool room = quarantine->count < MEMRT__QUARANTINE_BLOCKS &&
                size <= MEMRT__QUARANTINE_BYTES - quarantine->bytes;
    if (room) {
        size_t index = slot(quarantine, quarantine->count++);
        quarantine->ring[index].ptr = ptr;
        quarantine->ring[index].size = size;
        quarantine->bytes += size;
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return room;
}

void *memrt__quarantine_take(memrt__quarantine_t *quarantine)
{
    void *ptr = NULL;
    memrt__lock(MEMRT__RANK_QUARANTINE);
    if (quarantine->count != 0) {
        size_t index = quarantine->first;
        quarantine->first = slot(quarantine, 1);
        quarantine->count--;
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
        ended = visit(quarantine->ring[slot(quarantine, i)].ptr, context);
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return ended;
}
