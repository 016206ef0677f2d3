#ifndef MEMRT_BINDINGS_OBSERVE_SITE_RECORDER_H
#define MEMRT_BINDINGS_OBSERVE_SITE_RECORDER_H

#include "support/binding.h"

/// Provide Python call stacks for allocation sites, as the callback of memrt_api_t.set_frames.

/// Register the callback that reports Python frames to tracking. Call once, at import.
void memrt__site_recorder_setup(void);

/// Release all code objects of the cache. Recorded sites keep their frames. Needs the GIL.
void memrt__site_recorder_forget(void);

extern PyMethodDef memrt__frames_methods[];

#endif
