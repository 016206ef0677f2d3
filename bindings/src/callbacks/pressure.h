#ifndef MEMRT_BINDINGS_CALLBACKS_PRESSURE_H
#define MEMRT_BINDINGS_CALLBACKS_PRESSURE_H

#include "support/binding.h"

/// Expose the memory pressure, and calls of Python callbacks on the main thread.
extern PyMethodDef memrt__pressure_methods[];

#endif
