#ifndef MEMRT_BINDINGS_SUPPORT_THREADS_H
#define MEMRT_BINDINGS_SUPPORT_THREADS_H

#include "support/binding.h"

/// Let enable() run code at the start of threads without a frame in their tracebacks.
extern PyMethodDef memrt__thread_methods[];

#endif
