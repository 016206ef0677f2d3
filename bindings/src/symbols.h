#ifndef MEMRT_SYMBOLS_METHODS_H
#define MEMRT_SYMBOLS_METHODS_H

#include "binding.h"

/// Calls of symbols that are not defined, as exceptions.
extern PyMethodDef memrt__symbols_methods[];

/// Have calls on threads that hold the GIL raise RuntimeError; once, at import.
void memrt__symbols_setup(void);

#endif
