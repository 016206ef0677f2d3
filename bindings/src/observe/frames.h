#ifndef MEMRT_BINDINGS_OBSERVE_FRAMES_H
#define MEMRT_BINDINGS_OBSERVE_FRAMES_H

#include "support/binding.h"

/// Read the Python call stack of a thread. From Python 3.11 on the interpreter's own frame stack is
/// read, if its layout is known. The public API would create a frame object for each call without a
/// frame object, which costs several times as much.

typedef struct memrt_call {
    PyCodeObject *code; ///< borrowed; valid while the call lasts, of another thread under the GIL
    int instruction;    ///< offset in bytes, for PyCode_Addr2Line; negative: nothing executed yet
} memrt_call_t;

/// Write the Python calls of a thread to `out`, innermost first, at most `max`. Returns the number
/// of calls.
/// Threads: needs the GIL. Without a GIL, `thread` must be the calling thread. A pending exception
/// stays pending.
size_t memrt__frames_of(PyThreadState *thread, memrt_call_t *out, size_t max);

/// Register the function that writes Python calls into reports of refused accesses, if the layout
/// of frames is known. Call once, at import.
void memrt__frames_setup(void);

#endif
