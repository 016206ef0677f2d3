#ifndef MEMRT_BINDINGS_SUPPORT_PROCESS_INFO_H
#define MEMRT_BINDINGS_SUPPORT_PROCESS_INFO_H

#include "support/binding.h"

/// Expose process-wide information: options, version, and the file of the library.
extern PyMethodDef memrt__process_methods[];

#endif
