#ifndef MEMRT_BINDINGS_TYPES_PEAK_H
#define MEMRT_BINDINGS_TYPES_PEAK_H

#include "support/binding.h"

/// Open and close blocks of code with exact peak measurement.
extern PyMethodDef memrt__peak_methods[];

#endif
