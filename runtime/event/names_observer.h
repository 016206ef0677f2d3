#ifndef MEMRT_EVENT_NAMES_OBSERVER_H
#define MEMRT_EVENT_NAMES_OBSERVER_H

#include "runtime/event/block_event.h"

/// Named references as an observer: a free forgets the names of the block.
void memrt__names_observe(const memrt__block_event_t *event);

/// Forget the named references that are still recorded. The references themselves were released
/// without their names.
void memrt__block_drop_names(const memrt_meminfo_t *mi);

#endif
