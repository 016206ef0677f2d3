#ifndef MEMRT_FAILURE_H
#define MEMRT_FAILURE_H

#include "binding.h"

/// Allocations that fail on purpose.
extern PyMethodDef memrt__failure_methods[];

#endif
