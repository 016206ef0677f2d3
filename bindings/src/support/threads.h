#ifndef MEMRT_BINDINGS_SUPPORT_THREADS_H
#define MEMRT_BINDINGS_SUPPORT_THREADS_H

#include "support/binding.h"

/// Call setup code of memrt at the start of a new thread, then the code of the thread: the module
/// function call_after(), with which memrt.enable() patches threading.Thread. A C function leaves
/// no Python frame of memrt in call stacks and tracebacks of the thread. A failed setup is reported
/// as unraisable, and the thread still runs.
extern PyMethodDef memrt__thread_methods[];

#endif
