#ifndef MEMRT_PROCESS_H
#define MEMRT_PROCESS_H

#include "binding.h"

/// What belongs to the process as a whole: options, version, the library's file.
extern PyMethodDef memrt__process_methods[];

#endif
