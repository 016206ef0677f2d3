#ifndef MEMRT_LIVE_H
#define MEMRT_LIVE_H

#include "binding.h"

/// Tracking, and the list of live buffers that it keeps.
extern PyMethodDef memrt__live_methods[];

#endif
