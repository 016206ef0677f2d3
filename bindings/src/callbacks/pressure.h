#ifndef MEMRT_BINDINGS_CALLBACKS_PRESSURE_H
#define MEMRT_BINDINGS_CALLBACKS_PRESSURE_H

#include "support/binding.h"

/// Memory pressure for Python: read the pressure, and add callbacks for the main thread.
extern PyMethodDef memrt__pressure_methods[];

#endif
