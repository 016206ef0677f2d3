#ifndef MEMRT_EVENT_TRACE_OBSERVER_H
#define MEMRT_EVENT_TRACE_OBSERVER_H

#include "runtime/event/block_event.h"

/// Event trace as an observer: writes block events to the event trace that is being recorded. The
/// resizes and free of a block whose allocation belongs to an earlier trace are not recorded.
void memrt__trace_observe(const memrt__block_event_t *event);

#endif
