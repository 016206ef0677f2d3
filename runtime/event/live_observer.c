#include "runtime/event/live_observer.h"

#include "runtime/base/check.h"
#include "runtime/config/options.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/sites.h"

bool memrt__live_admit(memrt_meminfo_t *mi, memrt__alloc_event_t event, size_t size)
{
    MEMRT__ASSERT(!memrt__block_is_listed(mi) && event.weight > 0);
    mi->flags |= MEMRT__FLAG_LISTED; /* no other thread knows the block yet */
    if (!memrt__live_insert((uintptr_t)mi, event.site, event.weight)) {
        mi->flags &= ~MEMRT__FLAG_LISTED;
        return false;
    }
    memrt__site_count(event.site, size);
    return true;
}

bool memrt__live_admit_moved(const memrt_meminfo_t *moved)
{
    return memrt__live_insert((uintptr_t)moved, 0, 0);
}

/// Remove a block from the live set. In checking mode, the live set remembers the data, size and
/// policy, to explain pointers to freed blocks.
static void unlist_block(const memrt_meminfo_t *mi)
{
    memrt__live_details_t details = {
        .data = (uintptr_t)mi->data, .size = mi->size, .policy = memrt__policy_of(mi)->name};
    memrt__live_remove((uintptr_t)mi, memrt__options.check ? &details : NULL);
}

void memrt__live_observe(const memrt__block_event_t *event)
{
    if (event->type == MEMRT__EVENT_RESIZE && event->before->mi == event->mi) {
        return; /* the block grew at its address */
    }
    if (event->type == MEMRT__EVENT_RESIZE) {
        memrt__live_move((uintptr_t)event->before->mi, (uintptr_t)event->mi);
        unlist_block(event->before->mi);
    } else {
        unlist_block(event->mi);
    }
}

uint64_t memrt__block_list(memrt_meminfo_t *mi)
{
    uint64_t id = memrt__live_ensure((uintptr_t)mi);
    if (id != 0) {
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_LISTED);
    }
    return id;
}

bool memrt__block_set_name(memrt_meminfo_t *mi, const char *name)
{
    if (name == NULL && !memrt__block_is_listed(mi)) {
        return true;
    }
    if (!memrt__live_set_name((uintptr_t)mi, name)) {
        return false;
    }
    memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_LISTED);
    return true;
}
