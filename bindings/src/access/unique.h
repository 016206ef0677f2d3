#ifndef MEMRT_BINDINGS_ACCESS_UNIQUE_H
#define MEMRT_BINDINGS_ACCESS_UNIQUE_H

#include "support/binding.h"

/// Proof that a function holds the only reference to an array and to the memory of the array.

extern PyMethodDef memrt__unique_methods[];

#endif
