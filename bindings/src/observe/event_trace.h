#ifndef MEMRT_BINDINGS_OBSERVE_EVENT_TRACE_H
#define MEMRT_BINDINGS_OBSERVE_EVENT_TRACE_H

#include "support/binding.h"

/// Start, stop and mark event traces.
extern PyMethodDef memrt__recording_methods[];

#endif
