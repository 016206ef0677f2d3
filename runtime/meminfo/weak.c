#include "runtime/meminfo/weak.h"

#include "runtime/event/live_observer.h"
#include "runtime/meminfo/block_layout.h"
#include "runtime/meminfo/references.h"
#include "runtime/observe/live_set.h"

memrt_status_t memrt__weak_new(memrt_meminfo_t *mi, memrt_weak_t *out)
{
    uint64_t id = memrt__block_list(mi);
    if (id == 0) {
        return MEMRT_ENOMEM;
    }
    memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_WEAK);
    *out = (memrt_weak_t){(uintptr_t)mi, id};
    return MEMRT_OK;
}

typedef struct upgrade {
    uint64_t id;
    memrt_meminfo_t *found; ///< owned reference, or NULL
} upgrade_t;

/// Acquire the MemInfo of an entry with the serial number. The partition of the live set is locked,
/// so the MemInfo cannot be freed during the call.
static void acquire_if_same(const memrt__live_entry_t *entry, void *context)
{
    upgrade_t *upgrade = context;
    memrt_meminfo_t *mi = (memrt_meminfo_t *)entry->key;
    if (entry->id == upgrade->id && memrt__meminfo_try_acquire(mi)) {
        upgrade->found = mi;
    }
}

memrt_meminfo_t *memrt__weak_acquire(const memrt_weak_t *weak)
{
    upgrade_t upgrade = {.id = weak->id};
    if (weak->meminfo != 0) {
        memrt__live_visit(weak->meminfo, acquire_if_same, &upgrade);
    }
    return upgrade.found;
}
