#ifndef MEMRT_CALLS_H
#define MEMRT_CALLS_H

#include "binding.h"

/// The calls of Python code that a thread is in. Where Python can be seen into, 3.11 to 3.13, they
/// are read from the interpreter's own stack: Python itself would make a frame object for each call
/// that has none, which costs several times as much.

typedef struct memrt_call {
    PyCodeObject *code; ///< borrowed; valid while the call lasts
    int instruction;    ///< offset in bytes, for PyCode_Addr2Line; negative: none yet
} memrt_call_t;

/// Write the calls that the calling thread is in, innermost first, up to `max` of them; returns how
/// many. Needs the GIL; what was raised stays raised.
size_t memrt__calls_here(memrt_call_t *out, size_t max);

#endif
