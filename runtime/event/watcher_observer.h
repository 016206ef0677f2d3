#ifndef MEMRT_EVENT_WATCHER_OBSERVER_H
#define MEMRT_EVENT_WATCHER_OBSERVER_H

#include <memrt/observe/watcher.h>

#include "runtime/event/block_event.h"

/// Watcher as an observer: calls a user's callbacks for the resizes and frees of watched blocks.
void memrt__watcher_observe(const memrt__block_event_t *event);

/// Set the callbacks for the events of watched blocks; NULL removes the callbacks. The release
/// store pairs with the acquire load before each call of a callback.
void memrt__watcher_set(const memrt_watcher_t *watcher);

/// Report that `mi`, which must have data, is watched from now on.
void memrt__watcher_mark(const memrt_meminfo_t *mi);

#endif
