#ifndef MEMRT_EVENT_LIVE_OBSERVER_H
#define MEMRT_EVENT_LIVE_OBSERVER_H

#include "runtime/event/block_event.h"
#include "runtime/observe/tracking.h"

/// Live set as an observer: a resize that moves a block moves its entry, a free removes the entry.
void memrt__live_observe(const memrt__block_event_t *event);

/// Add an unpublished block to the live set, and count `size` bytes at the allocation site. False:
/// out of memory, nothing changed.
bool memrt__live_admit(memrt_meminfo_t *mi, memrt__alloc_event_t event, size_t size);

/// Add the header to which a resize moves a listed block. The event of the resize fills the entry.
/// False: out of memory, nothing changed.
bool memrt__live_admit_moved(const memrt_meminfo_t *moved);

/// Add a block to the live set unless it is listed, and return its serial number. The caller holds
/// a reference, so that the last release sees the flag. 0: out of memory, nothing changed.
uint64_t memrt__block_list(memrt_meminfo_t *mi);

/// Set the name of a block and add the block to the live set if it is not listed. NULL removes the
/// name. False: out of memory, nothing changed.
bool memrt__block_set_name(memrt_meminfo_t *mi, const char *name);

#endif
