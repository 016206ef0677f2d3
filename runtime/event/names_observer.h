#ifndef MEMRT_EVENT_NAMES_OBSERVER_H
#define MEMRT_EVENT_NAMES_OBSERVER_H

#include "runtime/event/block_event.h"

/// Observer of named references: a free drops the names of the block.
void memrt__names_observe(const memrt__block_event_t *event);

/// Drop the named references that are still recorded for a block without other references, and
/// count the exports among them as ended. The holders released these references without the name.
void memrt__block_drop_names(const memrt_meminfo_t *mi);

#endif
