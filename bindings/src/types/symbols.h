#ifndef MEMRT_BINDINGS_TYPES_SYMBOLS_H
#define MEMRT_BINDINGS_TYPES_SYMBOLS_H

#include "support/binding.h"

/// Report calls of undefined symbols as Python exceptions.
extern PyMethodDef memrt__symbols_methods[];

/// Make calls on threads that hold the GIL raise RuntimeError. Call once, at import.
void memrt__symbols_setup(void);

#endif
