#ifndef MEMRT_BINDINGS_ALLOCATORS_FILE_H
#define MEMRT_BINDINGS_ALLOCATORS_FILE_H

#include "support/binding.h"

/// Allocators of memory in files.

extern PyMethodDef memrt__file_methods[];

#endif
