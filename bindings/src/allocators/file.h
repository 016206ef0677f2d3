#ifndef MEMRT_BINDINGS_ALLOCATORS_FILE_H
#define MEMRT_BINDINGS_ALLOCATORS_FILE_H

#include "support/binding.h"

/// Allocators in files.

extern PyMethodDef memrt__file_methods[];

#endif
