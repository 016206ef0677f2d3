#ifndef MEMRT_BINDINGS_ACCESS_COLD_H
#define MEMRT_BINDINGS_ACCESS_COLD_H

#include "support/binding.h"

/// Advice to the system that the pages of an array are not needed soon.

extern PyMethodDef memrt__cold_methods[];

#endif
