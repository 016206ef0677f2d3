#ifndef MEMRT_BINDINGS_OBSERVE_LIVE_H
#define MEMRT_BINDINGS_OBSERVE_LIVE_H

#include "support/binding.h"

/// Control tracking, and list the live buffers that tracking records.
extern PyMethodDef memrt__live_methods[];

#endif
