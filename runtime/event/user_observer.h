#ifndef MEMRT_EVENT_USER_OBSERVER_H
#define MEMRT_EVENT_USER_OBSERVER_H

#include <memrt/observe/observer.h>

#include "runtime/event/block_event.h"

/// Observer of the user: calls the callbacks of memrt_observer_t for blocks with the mark
/// MEMRT_FLAG_OBSERVED. The process has at most one such struct, which stays valid for good.

/// Call `resize` or `free` for an event of a marked block.
void memrt__user_observer_notify(const memrt__block_event_t *event);

/// Set the callbacks for the events of marked blocks; NULL removes the callbacks. The release
/// store pairs with the acquire load before each call of a callback.
void memrt__user_observer_set(const memrt_observer_t *observer);

/// Call `observe`, if the struct has the member: `mi`, which must have data, was marked.
void memrt__user_observer_mark(const memrt_meminfo_t *mi);

#endif
