#ifndef MEMRT_BINDINGS_FRAMES_H
#define MEMRT_BINDINGS_FRAMES_H

#include "binding.h"

/// Where Python code is when memory is born, for memrt_api_t.set_frames.

/// Let tracking know of Python's frames. Once, at import.
void memrt__frames_setup(void);

/// Hold no code objects any more; what is known of sites stays. Needs the GIL.
void memrt__frames_forget(void);

extern PyMethodDef memrt__frames_methods[];

#endif
